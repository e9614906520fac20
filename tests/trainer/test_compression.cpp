// What compresses gradients: orthonormal vectors, and the largest numbers of many.
#include <algorithm>
#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include "tests/trainer/kernel_testing.h"
#include "trainer/kernels/compression.h"

namespace shardscope::trainer::kernels {
namespace TEST_FILE {

using namespace testing;

// --- orthonormal vectors -----------------------------------------------------------------------------------

// The numbers of column c, in double.
Vector column(const Floats& matrix, std::size_t columns, std::size_t c) {
    Vector made;
    for (std::size_t i = c; i < matrix.size(); i += columns) made.push_back(matrix[i]);
    return made;
}

Floats transposed(const Floats& matrix, std::size_t rows, std::size_t columns) {
    Floats made(matrix.size());
    for (std::size_t r = 0; r < rows; ++r)
        for (std::size_t c = 0; c < columns; ++c) made[c * rows + r] = matrix[r * columns + c];
    return made;
}

// By the definition, in double: w_c = v_c - sum over b < c of (q_b . v_c) q_b, q_c = w_c / |w_c|.
std::vector<Vector> gram_schmidt(const Floats& matrix, std::size_t columns) {
    std::vector<Vector> q;
    for (std::size_t c = 0; c < columns; ++c) {
        Vector v = column(matrix, columns, c), w = v;
        for (const Vector& before : q) {
            const double along = dot(before, v);
            for (std::size_t i = 0; i < w.size(); ++i) w[i] -= along * before[i];
        }
        const double norm = std::sqrt(dot(w, w));
        for (double& number : w) number /= norm;
        q.push_back(w);
    }
    return q;
}

TEST(Orthogonalize, IsGramSchmidtOfColumnsAndOfRows) {
    for (const std::size_t rows : {4, 33, 1000}) {
        for (const std::size_t columns : {1, 2, 4}) {
            const Floats matrix = normals(rows * columns, "matrix");
            Floats result = matrix, other_way = transposed(matrix, rows, columns);
            orthogonalize_columns(result.data(), rows, columns, 0);
            orthogonalize_rows(other_way.data(), columns, rows, 0);
            const std::vector<Vector> expected = gram_schmidt(matrix, columns);
            for (std::size_t c = 0; c < columns; ++c)
                EXPECT_LE(relative_error(column(result, columns, c), expected[c]), kFloatTolerance);
            EXPECT_EQ(other_way, transposed(result, rows, columns));
        }
    }
}

// The third is the sum of the others, but for rounding, which is divided by its tiny norm.
TEST(Orthogonalize, WhatDependsOnTheOthersIsStillOrthogonalToThem) {
    constexpr std::size_t kRows = 500;
    Floats matrix = normals(kRows * 3, "matrix");
    for (std::size_t r = 0; r < kRows; ++r) matrix[3 * r + 2] = matrix[3 * r] + matrix[3 * r + 1];
    orthogonalize_columns(matrix.data(), kRows, 3, 0);
    for (std::size_t a = 0; a < 3; ++a) {
        for (std::size_t b = 0; b <= a; ++b) {
            EXPECT_NEAR(dot(column(matrix, 3, a), column(matrix, 3, b)), a == b ? 1 : 0, 1e-6) << a << b;
        }
    }
}

// As PyTorch's _orthogonalize_gram_schmidt: epsilon is added to the norm.
TEST(Orthogonalize, EpsilonIsAddedToTheNormAndZerosStay) {
    Floats matrix = {3, 0, 4, 0};  // columns (3, 4) and (0, 0)
    orthogonalize_columns(matrix.data(), 2, 2, 0);
    EXPECT_EQ(matrix, (Floats{0.6f, 0, 0.8f, 0}));
    matrix = {3, 0, 4, 0};
    orthogonalize_columns(matrix.data(), 2, 2, 5);
    EXPECT_EQ(matrix, (Floats{0.3f, 0, 0.4f, 0}));
}

// --- the largest numbers -----------------------------------------------------------------------------------

struct Selected {
    std::vector<std::int32_t> places;
    Floats values, left;
};

Selected select(const Floats& x, std::size_t k) {
    Selected made{std::vector<std::int32_t>(k), Floats(k), x};
    select_largest(made.left.data(), x.size(), k, made.places.data(), made.values.data());
    return made;
}

// Sorted by size, the first of equal ones first.
Selected plainly(const Floats& x, std::size_t k) {
    std::vector<std::int32_t> order(x.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
        return std::abs(x[static_cast<std::size_t>(a)]) > std::abs(x[static_cast<std::size_t>(b)]);
    });
    order.resize(k);
    std::sort(order.begin(), order.end());
    Selected made{order, {}, x};
    for (const std::int32_t place : order) {
        made.values.push_back(x[static_cast<std::size_t>(place)]);
        made.left[static_cast<std::size_t>(place)] = 0;
    }
    return made;
}

void expect_equal(const Selected& result, const Selected& expected) {
    EXPECT_EQ(result.places, expected.places);
    EXPECT_EQ(result.values, expected.values);
    EXPECT_EQ(result.left, expected.left);
}

TEST(SelectLargest, FindsThoseThatSortingFinds) {
    for (const std::size_t n : {1, 2, 100, 5000}) {
        const Floats x = normals(n, "x");
        for (const std::size_t k : {std::size_t{1}, (n + 9) / 10, (n + 1) / 2, n})
            expect_equal(select(x, k), plainly(x, k));
    }
}

// Of a Q that is zero after a step without gradients: later ones would be multiplied by it.
TEST(Orthogonalize, ARowOfZerosBecomesOneThatIsOrthogonalToTheOthers) {
    Floats rows = {3, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 2};
    orthogonalize_rows(rows.data(), 3, 4, 0);
    for (std::size_t a = 0; a < 3; ++a) {
        for (std::size_t b = 0; b < 3; ++b) {
            double product = 0;
            for (std::size_t i = 0; i < 4; ++i) product += double(rows[4 * a + i]) * rows[4 * b + i];
            EXPECT_NEAR(product, a == b ? 1 : 0, 1e-6) << a << " " << b;
        }
    }
    Floats columns(6, 0.0f);
    orthogonalize_columns(columns.data(), 3, 2, 0);
    EXPECT_EQ(columns, Floats(6, 0.0f));
}

// Neighbours in fp32, both signs, equal ones, zeros, the smallest and the largest number.
TEST(SelectLargest, TellsNeighboursApartAndTakesTheFirstOfEqualOnes) {
    const float one = 1.0f, more = std::nextafter(one, 2.0f), tiny = 1e-45f, huge = 3.4e38f;
    const Floats x = {one, -more, more, 0.0f, -one, tiny, -0.0f, -huge, one, huge, tiny, -tiny};
    for (std::size_t k = 1; k <= x.size(); ++k) expect_equal(select(x, k), plainly(x, k));
}

TEST(SelectLargest, ANumberThatIsNotOneIsSentFirst) {
    EXPECT_EQ(select({1.0f, std::nanf(""), HUGE_VALF, 2.0f}, 2).places, (std::vector<std::int32_t>{1, 2}));
}

TEST(AddSelected, AddsTheRanksInOrderAndDividesOnce) {
    const std::vector<std::int32_t> places = {0, 3, 3, 4};  // two of each of two ranks
    const Floats values = {1, 2, 4, 8};
    Floats y = {9, 9, 9, 9, 9, 9};
    add_selected(places.data(), values.data(), 2, 2, 0.5f, y.data(), y.size());
    EXPECT_EQ(y, (Floats{0.5f, 0, 0, 3, 4, 0}));
}

// The sum of what is sent is the sum of the gradients less the last error, to the bit: each is a part of x.
TEST(SelectLargest, WhatIsNotSentIsNotLost) {
    constexpr std::size_t kCount = 200, kSent = 7;
    Floats error(kCount, 0.0f);
    Vector gradients(kCount, 0.0), sent(kCount, 0.0);
    for (const char* step : {"a", "b", "c", "d", "e"}) {
        // Whole numbers, whose sums are exact.
        Floats gradient = normals(kCount, step);
        for (float& number : gradient) number = std::round(number * 100);
        for (std::size_t i = 0; i < kCount; ++i) {
            gradients[i] += gradient[i];
            error[i] += gradient[i];
        }
        std::vector<std::int32_t> places(kSent);
        Floats values(kSent);
        select_largest(error.data(), kCount, kSent, places.data(), values.data());
        for (std::size_t i = 0; i < kSent; ++i) sent[static_cast<std::size_t>(places[i])] += values[i];
    }
    for (std::size_t i = 0; i < kCount; ++i) EXPECT_EQ(sent[i], gradients[i] - error[i]);
}

// --- signs -------------------------------------------------------------------------------------------------

// Whatever part of a word they begin in: x + error is +-scale plus the new error, and the scale is the root
// of the mean square.
TEST(Signs, AreTheNumbersLessTheNewError) {
    for (const std::size_t first : {0, 5, 32, 63}) {
        for (const std::size_t n : {1, 31, 64, 1000}) {
            const Floats x = normals(n, "x"), variance(n, 1.0f);
            Floats error = normals(n, "error"), sent(n), sum(n, 1.0f);
            double squares = 0;
            Floats wanted(n);
            for (std::size_t i = 0; i < n; ++i) {
                wanted[i] = x[i] + error[i];
                squares += static_cast<double>(wanted[i]) * wanted[i];
            }
            std::vector<std::uint32_t> words((first + n + 31) / 32, 0xaaaaaaaau);
            const float scale =
                compress_signs(x.data(), error.data(), variance.data(), n, words.data(), first);
            EXPECT_FLOAT_EQ(scale, static_cast<float>(std::sqrt(squares / static_cast<double>(n))));
            expand_signs(words.data(), first, scale, variance.data(), sent.data(), n);
            add_signs(words.data(), first, scale, sum.data(), n);
            for (std::size_t i = 0; i < n; ++i) {
                EXPECT_EQ(sent[i], wanted[i] >= 0 ? scale : -scale);
                EXPECT_EQ(error[i], wanted[i] - sent[i]);
                EXPECT_EQ(sum[i], 1.0f + sent[i]);
            }
            for (std::size_t bit = 0; bit < first; ++bit)
                EXPECT_EQ(words[bit / 32] >> bit % 32 & 1u, bit % 2) << "another number's bit";
        }
    }
}

TEST(Signs, ZeroIsPositive) {
    const Floats x = {0.0f, -0.0f, -2.0f}, variance(3, 1.0f);
    Floats error(3, 0.0f), sent(3);
    std::uint32_t word = 0;
    const float scale = compress_signs(x.data(), error.data(), variance.data(), 3, &word, 0);
    EXPECT_EQ(word, 3u);
    EXPECT_FLOAT_EQ(scale, 2 / std::sqrt(3.0f));
}

TEST(Signs, NumbersWithoutAVarianceAreLeftOut) {
    const Floats x = {3.0f, 100.0f, -3.0f}, variance = {1.0f, 0.0f, 1.0f};
    Floats error(3, 0.0f), sent(3);
    std::uint32_t word = 0;
    const float scale = compress_signs(x.data(), error.data(), variance.data(), 3, &word, 0);
    expand_signs(&word, 0, scale, variance.data(), sent.data(), 3);
    EXPECT_EQ(sent, (Floats{3, 0, -3}));
    EXPECT_EQ(error, Floats(3, 0.0f));
    const Floats nothing(3, 0.0f);
    EXPECT_EQ(compress_signs(x.data(), error.data(), nothing.data(), 3, &word, 0), 0.0f);
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::kernels
