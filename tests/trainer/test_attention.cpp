// Attention compared with its plain form, its gradient with finite differences.
#include <gtest/gtest.h>

#include "tests/trainer/kernel_testing.h"
#include "trainer/kernels/attention.h"

namespace shardscope::trainer::kernels {
namespace TEST_FILE {

using namespace testing;

struct Shape {
    int batch, context, width, heads, kv_heads;
    bool causal = true;
    AttentionShape shape() const { return {batch, context, width, heads, kv_heads, causal}; }
    int seen(int position) const { return causal ? position + 1 : context; }
    std::size_t elements() const { return static_cast<std::size_t>(batch) * context * width; }
    std::size_t qkv() const { return static_cast<std::size_t>(batch) * context * shape().row(); }
    std::size_t squares() const { return static_cast<std::size_t>(batch) * heads * context * context; }
};

class Attention : public ::testing::TestWithParam<Shape> {};

// Contexts of one position, within a strip of 64 rows, of exactly one strip, and of several; keys for every
// query head, for every other one, for every third, and one for all. The last shapes are bidirectional.
INSTANTIATE_TEST_SUITE_P(Shapes, Attention,
                         ::testing::Values(Shape{1, 1, 4, 1, 1}, Shape{2, 5, 6, 2, 2}, Shape{1, 64, 8, 2, 2},
                                           Shape{2, 70, 12, 3, 3}, Shape{1, 150, 16, 4, 4},
                                           Shape{2, 70, 16, 4, 2}, Shape{1, 9, 18, 6, 2},
                                           Shape{2, 65, 24, 3, 1}, Shape{1, 1, 4, 1, 1, false},
                                           Shape{2, 5, 6, 2, 2, false}, Shape{1, 64, 8, 2, 2, false},
                                           Shape{2, 150, 16, 4, 2, false}));

template <class T>
void expect_the_plain_form(const Shape& s) {
    const auto qkv = as<T>(normals(s.qkv(), "qkv")), dout = as<T>(normals(s.elements(), "dout"));
    auto out = unwritten<T>(s.elements()), probabilities = unwritten<T>(s.squares());
    auto dqkv = unwritten<T>(s.qkv());
    Floats scratch(attention_backward_scratch(s.shape()), NAN);
    attention_forward(qkv.data(), out.data(), probabilities.data(), s.shape());
    attention_backward(dout.data(), qkv.data(), probabilities.data(), dqkv.data(), scratch.data(), s.shape());
    const auto expected = reference::attention_forward(in_double(qkv), s.batch, s.context, s.width, s.heads,
                                                       s.kv_heads, s.causal);
    // The output is made of rounded probabilities and is itself rounded; the gradient, like the plain form
    // here, is made of the stored probabilities.
    EXPECT_LE(relative_error(in_double(out), expected.out), 2 * kTolerance<T>);
    EXPECT_LE(relative_error(in_double(probabilities), expected.probabilities), kTolerance<T>);
    EXPECT_LE(
        relative_error(in_double(dqkv), reference::attention_backward(
                                            in_double(dout), in_double(qkv), in_double(probabilities),
                                            s.batch, s.context, s.width, s.heads, s.kv_heads, s.causal)),
        kTolerance<T>);
}

TEST_P(Attention, AgreesWithThePlainForm) {
    expect_the_plain_form<float>(GetParam());
}

TEST_P(Attention, AgreesWithThePlainFormInNarrowTypes) {
    expect_the_plain_form<Bf16>(GetParam());
    expect_the_plain_form<Fp16>(GetParam());
}

TEST_P(Attention, ProbabilitiesOfEachPositionSumToOne) {
    const Shape s = GetParam();
    const Floats qkv = normals(s.qkv(), "qkv");
    Floats out(s.elements()), probabilities(s.squares());
    attention_forward(qkv.data(), out.data(), probabilities.data(), s.shape());
    for (int row = 0; row < s.batch * s.heads * s.context; ++row) {
        const float* p = probabilities.data() + static_cast<std::size_t>(row) * s.context;
        double seen = 0.0;
        for (int i = 0; i < s.seen(row % s.context); ++i) seen += p[i];
        EXPECT_NEAR(seen, 1.0, 1e-6);
        for (int i = s.seen(row % s.context); i < s.context; ++i) EXPECT_EQ(p[i], 0.0f) << "looks ahead";
    }
}

TEST(AttentionGradient, AgreesWithFiniteDifferences) {
    constexpr int kBatch = 2, kContext = 4, kWidth = 8, kHeads = 4;
    for (const int kv_heads : {4, 2, 1}) {
        const int row = kWidth + 2 * kv_heads * (kWidth / kHeads);
        const Vector qkv = in_double(normals(static_cast<std::size_t>(kBatch * kContext * row), "qkv"));
        const Vector dout = in_double(normals(kBatch * kContext * kWidth, "dout"));
        const auto forward = [&](const Vector& v) {
            return reference::attention_forward(v, kBatch, kContext, kWidth, kHeads, kv_heads);
        };
        const Vector gradient = reference::attention_backward(dout, qkv, forward(qkv).probabilities, kBatch,
                                                              kContext, kWidth, kHeads, kv_heads);
        const Vector expected =
            finite_differences(qkv, [&](const Vector& v) { return dot(dout, forward(v).out); });
        EXPECT_LE(relative_error(gradient, expected), kFiniteDifferenceTolerance) << kv_heads;
    }
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::kernels
