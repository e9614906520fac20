// The linear layer compared with its plain form, and its gradients with finite differences.
#include <cstring>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/trainer/kernel_testing.h"
#include "trainer/kernels/linear.h"

namespace shardscope::trainer::kernels {
namespace TEST_FILE {

using namespace testing;

struct Shape {
    int rows, in, out;
};

// Small, odd, one row, one column, and larger than the tiles of the column sum (128 columns, 64 rows).
constexpr Shape kShapes[] = {{3, 4, 5},    {1, 7, 1},      {1, 70, 6},   {4, 40, 9},
                             {33, 65, 17}, {130, 48, 150}, {8, 256, 256}};

class Linear : public ::testing::TestWithParam<Shape> {
  protected:
    const int rows = GetParam().rows, in = GetParam().in, out = GetParam().out;
    const Floats x = normals(static_cast<std::size_t>(rows) * in, "x");
    const Floats w = normals(static_cast<std::size_t>(out) * in, "w");
    const Floats b = normals(out, "b");
    const Floats dy = normals(static_cast<std::size_t>(rows) * out, "dy");
};

TEST_P(Linear, ForwardIsTheProductWithTheTransposedWeightPlusBias) {
    Floats y(dy.size(), NAN);
    linear_forward(x.data(), w.data(), b.data(), y.data(), rows, in, out);
    const Vector expected =
        reference::linear_forward(in_double(x), in_double(w), in_double(b), rows, in, out);
    EXPECT_LE(relative_error(y, expected), kFloatTolerance);
    std::fill(y.begin(), y.end(), NAN);
    linear_forward_of_few(x.data(), w.data(), b.data(), y.data(), rows, in, out);
    EXPECT_LE(relative_error(y, expected), kFloatTolerance);
}

TEST_P(Linear, ForwardWithoutBias) {
    Floats y(dy.size(), NAN);
    linear_forward(x.data(), w.data(), nullptr, y.data(), rows, in, out);
    const Vector expected = reference::linear_forward(in_double(x), in_double(w), {}, rows, in, out);
    EXPECT_LE(relative_error(y, expected), kFloatTolerance);
}

TEST_P(Linear, BackwardOverwritesWithTheThreeGradients) {
    Floats dx(x.size(), NAN);
    Floats dw(w.size(), NAN);
    Floats db(b.size(), NAN);
    linear_backward_input(dy.data(), w.data(), dx.data(), rows, in, out);
    linear_backward_weight(dy.data(), x.data(), dw.data(), rows, in, out);
    linear_backward_bias(dy.data(), db.data(), rows, out);
    EXPECT_LE(
        relative_error(dx, reference::linear_backward_input(in_double(dy), in_double(w), rows, in, out)),
        kFloatTolerance);
    EXPECT_LE(
        relative_error(dw, reference::linear_backward_weight(in_double(dy), in_double(x), rows, in, out)),
        kFloatTolerance);
    EXPECT_LE(relative_error(db, reference::linear_backward_bias(in_double(dy), rows, out)), kFloatTolerance);
}

TEST_P(Linear, AgreesWithThePlainFormInBf16) {
    const auto x16 = as<Bf16>(x), w16 = as<Bf16>(w), b16 = as<Bf16>(b), dy16 = as<Bf16>(dy);
    const Vector x64 = in_double(x16), w64 = in_double(w16), b64 = in_double(b16), dy64 = in_double(dy16);
    auto y = unwritten<Bf16>(dy.size()), dx = unwritten<Bf16>(x.size()), dw = unwritten<Bf16>(w.size());
    auto db = unwritten<Bf16>(b.size());
    const double tolerance = kTolerance<Bf16>;
    linear_forward(x16.data(), w16.data(), b16.data(), y.data(), rows, in, out);
    EXPECT_LE(relative_error(in_double(y), reference::linear_forward(x64, w64, b64, rows, in, out)),
              tolerance);
    linear_forward(x16.data(), w16.data(), nullptr, y.data(), rows, in, out);
    EXPECT_LE(relative_error(in_double(y), reference::linear_forward(x64, w64, {}, rows, in, out)),
              tolerance);
    linear_backward_input(dy16.data(), w16.data(), dx.data(), rows, in, out);
    EXPECT_LE(relative_error(in_double(dx), reference::linear_backward_input(dy64, w64, rows, in, out)),
              tolerance);
    linear_backward_weight(dy16.data(), x16.data(), dw.data(), rows, in, out);
    EXPECT_LE(relative_error(in_double(dw), reference::linear_backward_weight(dy64, x64, rows, in, out)),
              tolerance);
    linear_backward_bias(dy16.data(), db.data(), rows, out);
    EXPECT_LE(relative_error(in_double(db), reference::linear_backward_bias(dy64, rows, out)), tolerance);
}

// Buffers are at different addresses in each run; results must not change.
TEST_P(Linear, BitsDoNotDependOnAlignment) {
    Floats y(dy.size());
    Floats dx(x.size());
    Floats dw(w.size());
    Floats db(b.size());
    linear_forward(x.data(), w.data(), b.data(), y.data(), rows, in, out);
    linear_backward_input(dy.data(), w.data(), dx.data(), rows, in, out);
    linear_backward_weight(dy.data(), x.data(), dw.data(), rows, in, out);
    linear_backward_bias(dy.data(), db.data(), rows, out);
    for (std::size_t shift = 1; shift < 16; shift += 5) {
        const auto shifted = [shift](const Floats& from) {
            Floats to(from.size() + shift);
            std::copy(from.begin(), from.end(), to.begin() + static_cast<std::ptrdiff_t>(shift));
            return to;
        };
        const auto same = [shift](const Floats& moved, const Floats& original) {
            return std::memcmp(moved.data() + shift, original.data(), original.size() * sizeof(float)) == 0;
        };
        const Floats x2 = shifted(x), w2 = shifted(w), b2 = shifted(b), dy2 = shifted(dy);
        Floats y2(y.size() + shift), dx2(dx.size() + shift), dw2(dw.size() + shift), db2(db.size() + shift);
        linear_forward(&x2[shift], &w2[shift], &b2[shift], &y2[shift], rows, in, out);
        linear_backward_input(&dy2[shift], &w2[shift], &dx2[shift], rows, in, out);
        linear_backward_weight(&dy2[shift], &x2[shift], &dw2[shift], rows, in, out);
        linear_backward_bias(&dy2[shift], &db2[shift], rows, out);
        EXPECT_TRUE(same(y2, y) && same(dx2, dx) && same(dw2, dw) && same(db2, db)) << "shift " << shift;
    }
}

INSTANTIATE_TEST_SUITE_P(Shapes, Linear, ::testing::ValuesIn(kShapes), [](const auto& shape) {
    return std::to_string(shape.param.rows) + "x" + std::to_string(shape.param.in) + "x" +
           std::to_string(shape.param.out);
});

TEST(LinearGradients, AgreeWithFiniteDifferences) {
    constexpr int kRows = 3, kIn = 4, kOut = 5;
    const Vector x = in_double(normals(kRows * kIn, "x"));
    const Vector w = in_double(normals(kOut * kIn, "w"));
    const Vector b = in_double(normals(kOut, "b"));
    const Vector dy = in_double(normals(kRows * kOut, "dy"));
    const auto loss = [&](const Vector& x_, const Vector& w_, const Vector& b_) {
        return dot(dy, reference::linear_forward(x_, w_, b_, kRows, kIn, kOut));
    };
    EXPECT_LE(relative_error(reference::linear_backward_input(dy, w, kRows, kIn, kOut),
                             finite_differences(x, [&](const Vector& v) { return loss(v, w, b); })),
              kFiniteDifferenceTolerance);
    EXPECT_LE(relative_error(reference::linear_backward_weight(dy, x, kRows, kIn, kOut),
                             finite_differences(w, [&](const Vector& v) { return loss(x, v, b); })),
              kFiniteDifferenceTolerance);
    EXPECT_LE(relative_error(reference::linear_backward_bias(dy, kRows, kOut),
                             finite_differences(b, [&](const Vector& v) { return loss(x, w, v); })),
              kFiniteDifferenceTolerance);
}

// Workers of the executor call the same kernel at the same time, each for its own rank.
TEST(LinearThreads, ManyCallersAtOnceGetTheBitsOfOne) {
    constexpr int kRows = 64, kIn = 96, kOut = 80, kThreads = 4, kRepeats = 10;
    const Floats x = normals(kRows * kIn, "x"), w = normals(kOut * kIn, "w"), b = normals(kOut, "b");
    Floats alone(kRows * kOut);
    linear_forward(x.data(), w.data(), b.data(), alone.data(), kRows, kIn, kOut);
    std::vector<int> wrong(kThreads, 0);
    std::vector<std::thread> threads;
    for (int thread = 0; thread < kThreads; ++thread) {
        threads.emplace_back([&, thread] {
            Floats y(alone.size());
            for (int repeat = 0; repeat < kRepeats; ++repeat) {
                linear_forward(x.data(), w.data(), b.data(), y.data(), kRows, kIn, kOut);
                if (std::memcmp(y.data(), alone.data(), y.size() * sizeof(float)) != 0) ++wrong[thread];
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, std::vector<int>(kThreads, 0));
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::kernels
