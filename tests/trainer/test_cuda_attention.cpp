// Attention's CUDA kernels against the plain form in double, and against each other: plain and fused, fp32 on
// ordinary arithmetic and Bf16 on tensor cores, over head widths that fill their tiles and that do not.
#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include "tests/trainer/device_memory.h"
#include "tests/trainer/kernel_testing.h"
#include "trainer/cuda/attention.h"
#include "trainer/kernels/attention.h"

#ifdef SHARDSCOPE_PLAYED_CUDA
#include "tests/trainer/played_cuda/tensor_cores.h"
#endif

namespace shardscope::trainer {
namespace {

using namespace testing;
using kernels::AttentionShape;
using kernels::Bf16;

std::size_t elements(const AttentionShape& s) {
    return static_cast<std::size_t>(s.batch) * s.context * s.width;
}
std::size_t qkv_elements(const AttentionShape& s) {
    return static_cast<std::size_t>(s.batch) * s.context * s.row();
}
std::size_t rows(const AttentionShape& s) {
    return static_cast<std::size_t>(s.batch) * s.heads * s.context;
}

Op attention_op(Kernel kernel, DType dtype, const AttentionShape& s) {
    Op op;
    op.kind = OpKind::kernel;
    op.kernel = kernel;
    op.dtype = dtype;
    op.dims = {s.batch, s.context, s.heads, s.width, s.kv_heads};
    return op;
}

template <class T>
inline constexpr DType kType = std::is_same_v<T, float> ? DType::fp32 : DType::bf16;

// What a forward and a backward leave behind.
template <class T>
struct Result {
    std::vector<T> out, dqkv;
    Floats lse;                    // fused
    std::vector<T> probabilities;  // plain
};

template <class T>
Result<T> run_fused(const std::vector<T>& qkv, const std::vector<T>& dout, const AttentionShape& s) {
    const DeviceMemory<T> in(qkv), gradient(dout), out(unwritten<T>(elements(s))),
        dqkv(unwritten<T>(qkv.size()));
    const DeviceMemory<float> lse(Floats(rows(s), NAN)), delta(Floats(rows(s), NAN));
    cuda::launch_attention(attention_op(Kernel::fused_attention_forward, kType<T>, s),
                           {out.bytes_at(), lse.bytes_at(), in.bytes_at()}, nullptr);
    cuda::launch_attention(attention_op(Kernel::fused_attention_backward, kType<T>, s),
                           {dqkv.bytes_at(), delta.bytes_at(), gradient.bytes_at(), in.bytes_at(),
                            out.bytes_at(), lse.bytes_at()},
                           nullptr);
    return {out.read(), dqkv.read(), lse.read(), {}};
}

template <class T>
Result<T> run_plain(const std::vector<T>& qkv, const std::vector<T>& dout, const AttentionShape& s) {
    const DeviceMemory<T> in(qkv), gradient(dout), out(unwritten<T>(elements(s))),
        dqkv(unwritten<T>(qkv.size()));
    const DeviceMemory<T> probabilities(unwritten<T>(rows(s) * static_cast<std::size_t>(s.context)));
    const DeviceMemory<float> scratch(Floats(kernels::attention_backward_scratch(s), NAN));
    cuda::launch_attention(attention_op(Kernel::attention_forward, kType<T>, s),
                           {out.bytes_at(), probabilities.bytes_at(), in.bytes_at()}, nullptr);
    cuda::launch_attention(
        attention_op(Kernel::attention_backward, kType<T>, s),
        {dqkv.bytes_at(), scratch.bytes_at(), gradient.bytes_at(), in.bytes_at(), probabilities.bytes_at()},
        nullptr);
    return {out.read(), dqkv.read(), {}, probabilities.read()};
}

// The natural logarithm of each row's sum of e^score, in double.
Vector log_sums(const Vector& qkv, const AttentionShape& s) {
    const reference::QkvPlaces at(s.width, s.heads, s.kv_heads);
    Vector lse;
    for (int b = 0; b < s.batch; ++b) {
        for (int h = 0; h < s.heads; ++h) {
            for (int t = 0; t < s.context; ++t) {
                double sum = 0.0;
                for (int j = 0; j <= t; ++j) {
                    double score = 0.0;
                    for (int e = 0; e < at.d; ++e) {
                        score += qkv[static_cast<std::size_t>((b * s.context + t) * at.row + h * at.d + e)] *
                                 qkv[static_cast<std::size_t>((b * s.context + j) * at.row + at.keys +
                                                              h / at.group * at.d + e)];
                    }
                    sum += std::exp(score / std::sqrt(at.d));
                }
                lse.push_back(std::log(sum));
            }
        }
    }
    return lse;
}

class CudaAttention : public ::testing::TestWithParam<AttentionShape> {
  protected:
    void SetUp() override {
        if (const std::string why = no_device(); !why.empty()) GTEST_SKIP() << why;
    }
};

// {batch, context, width, heads, kv heads}. Contexts of one position, around the tiles of 16, 64 and 128, and
// over several; head widths 1 … 256, of 16 and of others, aligned for 16-byte pieces and not; keys for every
// query head, for groups of them, and one for all.
INSTANTIATE_TEST_SUITE_P(Shapes, CudaAttention,
                         ::testing::Values(AttentionShape{1, 1, 16, 1, 1}, AttentionShape{1, 17, 32, 2, 2},
                                           AttentionShape{2, 64, 64, 1, 1}, AttentionShape{1, 65, 64, 2, 1},
                                           AttentionShape{1, 130, 128, 2, 2},
                                           AttentionShape{1, 200, 64, 1, 1}, AttentionShape{1, 70, 80, 1, 1},
                                           AttentionShape{1, 40, 192, 2, 1}, AttentionShape{1, 66, 128, 1, 1},
                                           AttentionShape{1, 37, 256, 1, 1}, AttentionShape{1, 35, 400, 2, 2},
                                           AttentionShape{2, 33, 24, 3, 1}, AttentionShape{1, 50, 20, 4, 2},
                                           AttentionShape{1, 3, 6, 6, 1}, AttentionShape{1, 67, 120, 4, 2}),
                         [](const auto& named) {
                             const AttentionShape& s = named.param;
                             return "B" + std::to_string(s.batch) + "T" + std::to_string(s.context) + "C" +
                                    std::to_string(s.width) + "H" + std::to_string(s.heads) + "G" +
                                    std::to_string(s.kv_heads);
                         });

template <class T>
struct Operands {
    std::vector<T> qkv, dout;
    explicit Operands(const AttentionShape& s)
        : qkv(as<T>(normals(qkv_elements(s), "qkv"))), dout(as<T>(normals(elements(s), "dout"))) {}
};

// Shares of probabilities and of their gradients are rounded to Bf16 on their way into a product, once each,
// beside the rounding of the result.
template <class T>
inline constexpr double kRoundings = std::is_same_v<T, float> ? 2 : 4;

template <class T>
void expect_the_plain_form(const Result<T>& result, const Operands<T>& in, const AttentionShape& s) {
    const Vector wide = in_double(in.qkv);
    const auto plain = reference::attention_forward(wide, s.batch, s.context, s.width, s.heads, s.kv_heads);
    EXPECT_LE(relative_error(in_double(result.out), plain.out), kRoundings<T> * kTolerance<T>);
    EXPECT_LE(relative_error(in_double(result.dqkv),
                             reference::attention_backward(in_double(in.dout), wide, plain.probabilities,
                                                           s.batch, s.context, s.width, s.heads, s.kv_heads)),
              kRoundings<T> * kTolerance<T>);
}

TEST_P(CudaAttention, FusedAgreesWithThePlainForm) {
    const Operands<float> in(GetParam());
    const auto result = run_fused(in.qkv, in.dout, GetParam());
    expect_the_plain_form(result, in, GetParam());
    EXPECT_LE(relative_error(result.lse, log_sums(in_double(in.qkv), GetParam())), 2 * kFloatTolerance);
}

TEST_P(CudaAttention, FusedAgreesWithThePlainFormInBf16) {
    const Operands<Bf16> in(GetParam());
    const auto result = run_fused(in.qkv, in.dout, GetParam());
    expect_the_plain_form(result, in, GetParam());
    EXPECT_LE(relative_error(result.lse, log_sums(in_double(in.qkv), GetParam())), 2 * kFloatTolerance);
}

TEST_P(CudaAttention, PlainAgreesWithThePlainForm) {
    const Operands<float> in(GetParam());
    const auto result = run_plain(in.qkv, in.dout, GetParam());
    expect_the_plain_form(result, in, GetParam());
    const AttentionShape s = GetParam();
    EXPECT_LE(relative_error(result.probabilities,
                             reference::attention_forward(in_double(in.qkv), s.batch, s.context, s.width,
                                                          s.heads, s.kv_heads)
                                 .probabilities),
              2 * kFloatTolerance);
}

TEST_P(CudaAttention, PlainAgreesWithThePlainFormInBf16) {
    const Operands<Bf16> in(GetParam());
    expect_the_plain_form(run_plain(in.qkv, in.dout, GetParam()), in, GetParam());
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

TEST_P(CudaAttention, GivesTheSameBitsAgain) {
    const Operands<Bf16> in(GetParam());
    const auto once = run_fused(in.qkv, in.dout, GetParam()), again = run_fused(in.qkv, in.dout, GetParam());
    EXPECT_TRUE(same_bits(once.out, again.out));
    EXPECT_TRUE(same_bits(once.dqkv, again.dqkv));
}

#ifdef SHARDSCOPE_PLAYED_CUDA
// A tile that is used before it was waited for, or overwritten while it is used, would tell.
TEST_P(CudaAttention, DoesNotCareWhenCopiesToSharedMemoryArrive) {
    const Operands<Bf16> in(GetParam());
    const auto early = run_fused(in.qkv, in.dout, GetParam());
    const played_cuda::LateCopies late;
    const auto result = run_fused(in.qkv, in.dout, GetParam());
    EXPECT_TRUE(same_bits(early.out, result.out));
    EXPECT_TRUE(same_bits(early.dqkv, result.dqkv));
}
#endif

class CudaAttentionRange : public ::testing::Test {
  protected:
    void SetUp() override {
        if (const std::string why = no_device(); !why.empty()) GTEST_SKIP() << why;
    }
};

TEST_F(CudaAttentionRange, HandsANanOn) {
    const AttentionShape s{1, 70, 16, 1, 1};
    Operands<Bf16> in(s);
    in.qkv[0] = kernels::to_bf16(NAN);  // the first query
    const auto result = run_fused(in.qkv, in.dout, s);
    EXPECT_TRUE(std::isnan(kernels::to_float(result.out[0])));
    EXPECT_FALSE(std::isnan(kernels::to_float(result.out[static_cast<std::size_t>(s.width)])));
}

// e^score is beyond fp32 here.
TEST_F(CudaAttentionRange, HoldsForLargeScores) {
    const AttentionShape s{1, 100, 16, 1, 1};
    Operands<float> in(s);
    for (float& x : in.qkv) x *= 30.0f;
    const auto plain =
        reference::attention_forward(in_double(in.qkv), s.batch, s.context, s.width, s.heads, s.kv_heads);
    // A score of some thousands is off by some 10^-4 in fp32, and so is its probability.
    EXPECT_LE(relative_error(run_fused(in.qkv, in.dout, s).out, plain.out), 2e-3);
}

}  // namespace
}  // namespace shardscope::trainer
