// Rotary embedding compared with its plain form, and invariants of rotations.
#include <gtest/gtest.h>

#include "tests/trainer/kernel_testing.h"
#include "trainer/kernels/rotary.h"

namespace shardscope::trainer::kernels {
namespace TEST_FILE {

using namespace testing;

constexpr int kBatch = 2, kContext = 11, kRotated = 3, kHeads = 5, kHeadWidth = 6;
constexpr std::size_t kElements = kBatch * kContext * kHeads * kHeadWidth;
constexpr double kBase = 10000.0;

// Head width 4, position 1: the speeds are 1 and 10000^(-1/2) = 0.01.
TEST(RotaryTable, HoldsCosinesThenSinesOfPositionTimesSpeed) {
    Floats table(2 * 4);
    rotary_table(table.data(), 2, 4, kBase);
    const float cos1 = static_cast<float>(std::cos(1.0)), cos2 = static_cast<float>(std::cos(0.01));
    const float sin1 = static_cast<float>(std::sin(1.0)), sin2 = static_cast<float>(std::sin(0.01));
    EXPECT_EQ(table, (Floats{1.0f, 1.0f, cos1, cos2, 0.0f, 0.0f, sin1, sin2}));
}

template <class Types>
class Rotary : public ::testing::Test {};
template <class X, class T>
struct Pair {
    using Element = X;
    using Table = T;
};
using Pairs = ::testing::Types<Pair<float, float>, Pair<float, Bf16>, Pair<Bf16, float>, Pair<Bf16, Bf16>,
                               Pair<float, Fp16>, Pair<Fp16, float>, Pair<Fp16, Fp16>>;
TYPED_TEST_SUITE(Rotary, Pairs);

TYPED_TEST(Rotary, RotatesTheFirstHeadsAndCopiesTheRest) {
    using T = typename TypeParam::Element;
    using Table = typename TypeParam::Table;
    const auto x = as<T>(normals(kElements, "x"));
    auto table = unwritten<Table>(kContext * kHeadWidth);
    auto y = unwritten<T>(kElements), back = y;
    rotary_table(table.data(), kContext, kHeadWidth, kBase);
    rotary_forward(x.data(), table.data(), y.data(), kBatch, kContext, kRotated, kHeads, kHeadWidth);
    rotary_backward(x.data(), table.data(), back.data(), kBatch, kContext, kRotated, kHeads, kHeadWidth);
    // Cosine, sine and result are each rounded.
    const double tolerance = 3 * std::max(kTolerance<T>, kTolerance<Table>);
    const auto plain = [&](double direction) {
        return reference::rotary(in_double(x), kBatch, kContext, kRotated, kHeads, kHeadWidth, kBase,
                                 direction);
    };
    EXPECT_LE(relative_error(in_double(y), plain(1.0)), tolerance);
    EXPECT_LE(relative_error(in_double(back), plain(-1.0)), tolerance);
    for (std::size_t i = 0; i < kElements; ++i) {
        const bool copied = i / kHeadWidth % kHeads >= kRotated;
        EXPECT_TRUE(!copied || y[i] == x[i]) << i;
    }
    auto in_place = x;
    rotary_forward(in_place.data(), table.data(), in_place.data(), kBatch, kContext, kRotated, kHeads,
                   kHeadWidth);
    EXPECT_EQ(in_place, y);
}

// The gradient of a rotation is the inverse rotation, so the two cancel.
TEST(RotaryGradient, IsTheInverseRotation) {
    const Floats x = normals(kElements, "x");
    Floats table(kContext * kHeadWidth), y(kElements), back(kElements);
    rotary_table(table.data(), kContext, kHeadWidth, kBase);
    rotary_forward(x.data(), table.data(), y.data(), kBatch, kContext, kHeads, kHeads, kHeadWidth);
    rotary_backward(y.data(), table.data(), back.data(), kBatch, kContext, kHeads, kHeads, kHeadWidth);
    EXPECT_LE(relative_error(back, in_double(x)), kFloatTolerance);
}

TEST(RotaryGradient, AgreesWithFiniteDifferences) {
    constexpr int kSmall = 2 * 3 * 2 * 4;
    const Vector x = in_double(normals(kSmall, "x")), dy = in_double(normals(kSmall, "dy"));
    const auto turned = [](const Vector& v, double direction) {
        return reference::rotary(v, 2, 3, 1, 2, 4, kBase, direction);
    };
    EXPECT_LE(relative_error(turned(dy, -1.0),
                             finite_differences(x, [&](const Vector& v) { return dot(dy, turned(v, 1.0)); })),
              kFiniteDifferenceTolerance);
}

// Why it is a position embedding: a product of two rotated heads depends only on the distance of their
// positions.
TEST(RotaryHeads, ProductsDependOnTheDistance) {
    const Floats query = normals(kHeadWidth, "query"), key = normals(kHeadWidth, "key");
    Floats q, k, table(kContext * kHeadWidth);
    for (int i = 0; i < kContext; ++i) {
        q.insert(q.end(), query.begin(), query.end());
        k.insert(k.end(), key.begin(), key.end());
    }
    rotary_table(table.data(), kContext, kHeadWidth, kBase);
    rotary_forward(q.data(), table.data(), q.data(), 1, kContext, 1, 1, kHeadWidth);
    rotary_forward(k.data(), table.data(), k.data(), 1, kContext, 1, 1, kHeadWidth);
    const auto product = [&](int at, int other) {
        double sum = 0.0;
        for (int i = 0; i < kHeadWidth; ++i)
            sum += double(q[at * kHeadWidth + i]) * k[other * kHeadWidth + i];
        return sum;
    };
    EXPECT_NEAR(product(5, 2), product(10, 7), 1e-5);
    EXPECT_NEAR(product(4, 4), product(0, 0), 1e-5);
    EXPECT_GT(std::abs(product(5, 2) - product(5, 3)), 1e-3);
}

// The rows of given positions are those of a table of all.
TEST(RotaryTable, OfGivenPositionsHasTheirRows) {
    constexpr int kHalf = kHeadWidth / 2;
    const std::vector<std::int32_t> positions = {3, 0, kContext - 1, 3};
    const int rows = static_cast<int>(positions.size());
    Floats whole(kContext * kHeadWidth), own(positions.size() * kHeadWidth);
    rotary_table(whole.data(), kContext, kHeadWidth, kBase);
    rotary_table(own.data(), rows, kHeadWidth, kBase, positions.data());
    for (int r = 0; r < rows; ++r) {
        for (int i = 0; i < kHalf; ++i) {
            const int at = positions[static_cast<std::size_t>(r)];
            EXPECT_EQ(own[r * kHalf + i], whole[at * kHalf + i]);
            EXPECT_EQ(own[(rows + r) * kHalf + i], whole[(kContext + at) * kHalf + i]);
        }
    }
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::kernels
