// Causal attention against its plain form, its gradient against finite differences.
#include <gtest/gtest.h>

#include "tests/trainer/kernel_testing.h"
#include "trainer/kernels/attention.h"

namespace shardscope::trainer {
namespace {

using namespace testing;

struct Shape {
    int batch, context, width, heads;
};

class Attention : public ::testing::TestWithParam<Shape> {};

// Contexts of one position, within a strip of 64 rows, exactly one, and over several.
INSTANTIATE_TEST_SUITE_P(Shapes, Attention,
                         ::testing::Values(Shape{1, 1, 4, 1}, Shape{2, 5, 6, 2}, Shape{1, 64, 8, 2},
                                           Shape{2, 70, 12, 3}, Shape{1, 150, 16, 4}));

TEST_P(Attention, AgreesWithThePlainForm) {
    const auto [batch, context, width, heads] = GetParam();
    const std::size_t n = static_cast<std::size_t>(batch) * context * width;
    const std::size_t squares = static_cast<std::size_t>(batch) * heads * context * context;
    const Floats qkv = normals(3 * n, "qkv"), dout = normals(n, "dout");
    Floats out(n, NAN), probabilities(squares, NAN), dqkv(3 * n, NAN);
    Floats scratch(kernels::attention_backward_scratch(context), NAN);
    kernels::attention_forward(qkv.data(), out.data(), probabilities.data(),
                               {batch, context, width, heads, heads});
    kernels::attention_backward(dout.data(), qkv.data(), probabilities.data(), dqkv.data(), scratch.data(),
                                {batch, context, width, heads, heads});
    const auto expected = reference::attention_forward(in_double(qkv), batch, context, width, heads);
    EXPECT_LE(relative_error(out, expected.out), kFloatTolerance);
    EXPECT_LE(relative_error(probabilities, expected.probabilities), kFloatTolerance);
    EXPECT_LE(relative_error(
                  dqkv, reference::attention_backward(in_double(dout), in_double(qkv), expected.probabilities,
                                                      batch, context, width, heads)),
              kFloatTolerance);
}

TEST_P(Attention, EachPositionSpreadsOneOverWhatItMaySee) {
    const auto [batch, context, width, heads] = GetParam();
    const std::size_t n = static_cast<std::size_t>(batch) * context * width;
    const Floats qkv = normals(3 * n, "qkv");
    Floats out(n), probabilities(static_cast<std::size_t>(batch) * heads * context * context);
    kernels::attention_forward(qkv.data(), out.data(), probabilities.data(),
                               {batch, context, width, heads, heads});
    for (int row = 0; row < batch * heads * context; ++row) {
        const float* p = probabilities.data() + static_cast<std::size_t>(row) * context;
        double seen = 0.0;
        for (int s = 0; s <= row % context; ++s) seen += p[s];
        EXPECT_NEAR(seen, 1.0, 1e-6);
        for (int s = row % context + 1; s < context; ++s) EXPECT_EQ(p[s], 0.0f) << "looks ahead";
    }
}

TEST(AttentionGradient, AgreesWithFiniteDifferences) {
    constexpr int kBatch = 2, kContext = 4, kWidth = 6, kHeads = 2;
    const Vector qkv = in_double(normals(3 * kBatch * kContext * kWidth, "qkv"));
    const Vector dout = in_double(normals(kBatch * kContext * kWidth, "dout"));
    const auto loss = [&](const Vector& v) {
        return dot(dout, reference::attention_forward(v, kBatch, kContext, kWidth, kHeads).out);
    };
    const Vector probabilities =
        reference::attention_forward(qkv, kBatch, kContext, kWidth, kHeads).probabilities;
    EXPECT_LE(relative_error(
                  reference::attention_backward(dout, qkv, probabilities, kBatch, kContext, kWidth, kHeads),
                  finite_differences(qkv, loss)),
              kFiniteDifferenceTolerance);
}

}  // namespace
}  // namespace shardscope::trainer
