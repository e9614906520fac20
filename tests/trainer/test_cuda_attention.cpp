// Attention's CUDA kernels compared with the CPU's: plain and fused, fp32 on ordinary arithmetic, Bf16 and
// Fp16 on tensor cores, with head widths that fill their tiles and with others.
#include "tests/trainer/cuda_testing.h"
#include "trainer/cuda/attention.h"
#include "trainer/kernels/attention.h"
#include "trainer/kernels/attention_fused.h"

#ifdef SHARDSCOPE_PLAYED_CUDA
#include "tests/trainer/played_cuda/tensor_cores.h"
#endif

namespace shardscope::trainer::cuda {
namespace TEST_FILE {

using namespace cuda_testing;
using kernels::AttentionShape;
using kernels::Bf16;
using kernels::Fp16;

// {batch, context, width, heads, kv heads}. Contexts of one position, around the tiles of 16, 64 and 128, and
// over several; head widths 1 … 256, multiples of 16 and others; keys for every query head, for groups of
// them, and one for all.
constexpr AttentionShape kShapes[] = {
    {1, 1, 16, 1, 1},   {1, 17, 32, 2, 2}, {2, 64, 64, 1, 1},  {1, 65, 64, 2, 1},  {1, 130, 64, 1, 1},
    {1, 200, 32, 1, 1}, {1, 70, 80, 1, 1}, {1, 66, 128, 1, 1}, {1, 37, 256, 1, 1}, {1, 35, 200, 1, 1},
    {2, 33, 24, 3, 1},  {1, 50, 20, 4, 2}, {1, 3, 6, 6, 1},    {1, 67, 120, 4, 2}};

// Every position attends to its whole sequence: only the plain kernels support this.
constexpr AttentionShape kBothWays[] = {
    {1, 1, 16, 1, 1, false}, {2, 33, 24, 3, 1, false}, {1, 65, 64, 2, 2, false}, {2, 70, 40, 4, 2, false}};

std::vector<AttentionShape> plain_shapes() {
    std::vector<AttentionShape> shapes(std::begin(kShapes), std::end(kShapes));
    shapes.insert(shapes.end(), std::begin(kBothWays), std::end(kBothWays));
    return shapes;
}

std::string text(const AttentionShape& s) {
    return "batch " + std::to_string(s.batch) + ", context " + std::to_string(s.context) + ", width " +
           std::to_string(s.width) + ", heads " + std::to_string(s.heads) + " over " +
           std::to_string(s.kv_heads) + (s.causal ? "" : ", both ways");
}

std::size_t elements(const AttentionShape& s) {
    return static_cast<std::size_t>(s.batch) * s.context * s.width;
}
std::size_t qkv_elements(const AttentionShape& s) {
    return static_cast<std::size_t>(s.batch) * s.context * s.row();
}
std::size_t rows(const AttentionShape& s) {
    return static_cast<std::size_t>(s.batch) * s.heads * s.context;
}
std::array<std::int64_t, 6> dims(const AttentionShape& s) {
    return {s.batch, s.context, s.heads, s.width, s.kv_heads, s.causal ? 0 : 1};
}

// The operands of a backward, as the CPU's forward has written them.
template <class T>
struct Operands {
    std::vector<T> qkv, dout, out, probabilities;
    Floats lse;

    explicit Operands(const AttentionShape& s)
        : qkv(as<T>(normals(qkv_elements(s), "qkv"))),
          dout(as<T>(normals(elements(s), "dout"))),
          out(elements(s)),
          probabilities(rows(s) * static_cast<std::size_t>(s.context)),
          lse(rows(s)) {
        kernels::attention_forward(qkv.data(), out.data(), probabilities.data(), s);
        kernels::fused_attention_forward(qkv.data(), out.data(), lse.data(), s);
    }
};

template <class T>
Comparison fused_forward(const AttentionShape& s, const std::vector<T>& qkv) {
    Comparison comparison(plan::Kernel::fused_attention_forward, kDType<T>, dims(s));
    comparison.args(unwritten<T>(elements(s)), Floats(rows(s), NAN), qkv);
    return comparison;
}
template <class T>
Comparison fused_backward(const AttentionShape& s, const Operands<T>& in) {
    Comparison comparison(plan::Kernel::fused_attention_backward, kDType<T>, dims(s));
    comparison.args(unwritten<T>(qkv_elements(s)), Floats(rows(s), NAN), in.dout, in.qkv, in.out, in.lse);
    return comparison;
}

// In Bf16 and Fp16 the device rounds shares of probabilities and of their gradients once each before a
// matmul, in addition to the rounding of the result.
template <class T>
inline constexpr double kDistance =
    std::is_same_v<T, float> ? 2 * testing::kTolerance<T> : 4 * testing::kTolerance<T>;

template <class T>
class CudaAttention : public TypedCudaTest<T> {};
TYPED_TEST_SUITE(CudaAttention, Elements, ElementNames);

TYPED_TEST(CudaAttention, FusedForward) {
    for (const AttentionShape& s : kShapes) {
        SCOPED_TRACE(text(s));
        Comparison comparison = fused_forward(s, Operands<TypeParam>(s).qkv);
        comparison.run();
        comparison.template expect_near<TypeParam>(0, kDistance<TypeParam>);
        comparison.template expect_near<float>(1, 2 * testing::kFloatTolerance);
    }
}

TYPED_TEST(CudaAttention, FusedBackward) {
    for (const AttentionShape& s : kShapes) {
        SCOPED_TRACE(text(s));
        Comparison comparison = fused_backward(s, Operands<TypeParam>(s));
        comparison.run();
        comparison.template expect_near<TypeParam>(0, kDistance<TypeParam>);
        comparison.template expect_near<float>(1, 2 * testing::kFloatTolerance);
    }
}

// If a tensor does not begin at a multiple of 16 bytes, its rows cannot be read in packs of 16 bytes.
TYPED_TEST(CudaAttention, FusedTakesTensorsThatAreNotAligned) {
    const AttentionShape s{1, 66, 64, 2, 1};
    fused_forward(s, Operands<TypeParam>(s).qkv)
        .shifted(1)
        .run()
        .template expect_near<TypeParam>(0, kDistance<TypeParam>);
    fused_backward(s, Operands<TypeParam>(s))
        .shifted(1)
        .run()
        .template expect_near<TypeParam>(0, kDistance<TypeParam>);
}

TYPED_TEST(CudaAttention, FusedPropagatesNan) {
    const AttentionShape s{1, 70, 16, 1, 1};
    Operands<TypeParam> in(s);
    in.qkv[0] = as<TypeParam>({NAN})[0];  // the first query
    const auto out = in_double(fused_forward(s, in.qkv).run().template cuda<TypeParam>(0));
    EXPECT_TRUE(std::isnan(out[0]));
    EXPECT_FALSE(std::isnan(out[static_cast<std::size_t>(s.width)]));
}

// Scores of some thousands: e^score is beyond fp32. In fp32 they have errors of some 10^-4, and so do their
// probabilities.
TEST_F(CudaTest, FusedAttentionHoldsForLargeScores) {
    const AttentionShape s{1, 100, 16, 1, 1};
    Floats qkv = normals(qkv_elements(s), "qkv");
    for (float& x : qkv) x *= 30.0f;
    fused_forward(s, qkv).run().expect_near<float>(0, 2e-3);
}

TYPED_TEST(CudaAttention, PlainForward) {
    for (const AttentionShape& s : plain_shapes()) {
        SCOPED_TRACE(text(s));
        Comparison comparison(plan::Kernel::attention_forward, kDType<TypeParam>, dims(s));
        comparison
            .args(unwritten<TypeParam>(elements(s)),
                  unwritten<TypeParam>(rows(s) * static_cast<std::size_t>(s.context)),
                  Operands<TypeParam>(s).qkv)
            .run();
        comparison.template expect_near<TypeParam>(0, kDistance<TypeParam>);
        comparison.template expect_near<TypeParam>(1, 2 * testing::kTolerance<TypeParam>);
    }
}

TYPED_TEST(CudaAttention, PlainBackward) {
    for (const AttentionShape& s : plain_shapes()) {
        SCOPED_TRACE(text(s));
        const Operands<TypeParam> in(s);
        Comparison(plan::Kernel::attention_backward, kDType<TypeParam>, dims(s))
            .args(unwritten<TypeParam>(qkv_elements(s)), Floats(kernels::attention_backward_scratch(s), NAN),
                  in.dout, in.qkv, in.probabilities)
            .run()
            .template expect_near<TypeParam>(0, 2 * testing::kTolerance<TypeParam>);
    }
}

using NarrowElements = ::testing::Types<Bf16, Fp16>;

#ifdef SHARDSCOPE_PLAYED_CUDA
template <class T>
class FusedCopies : public TypedCudaTest<T> {};
TYPED_TEST_SUITE(FusedCopies, NarrowElements, ElementNames);

// This would detect a tile that is used before it was waited for, or overwritten while it is used.
TYPED_TEST(FusedCopies, MayArriveInSharedMemoryAtAnyTime) {
    using T = TypeParam;
    for (const AttentionShape& s : {AttentionShape{1, 200, 32, 1, 1}, AttentionShape{1, 150, 64, 2, 1},
                                    AttentionShape{1, 100, 256, 1, 1}}) {
        SCOPED_TRACE(text(s));
        const Operands<T> in(s);
        const auto out = fused_forward(s, in.qkv).run().template cuda<T>(0);
        const auto dqkv = fused_backward(s, in).run().template cuda<T>(0);
        const played_cuda::LateCopies late;
        EXPECT_EQ(fused_forward(s, in.qkv).run().template cuda<T>(0), out);
        EXPECT_EQ(fused_backward(s, in).run().template cuda<T>(0), dqkv);
    }
}
#else
template <class T>
class FusedAgain : public TypedCudaTest<T> {};
TYPED_TEST_SUITE(FusedAgain, NarrowElements, ElementNames);

// Simulated blocks run in one order, blocks of a device in any.
TYPED_TEST(FusedAgain, GivesTheSameBits) {
    using T = TypeParam;
    const AttentionShape s{4, 1024, 768, 12, 4};
    const Operands<T> in(s);
    const auto dqkv = fused_backward(s, in).run().template cuda<T>(0);
    for (int i = 0; i < 5; ++i) EXPECT_EQ(fused_backward(s, in).run().template cuda<T>(0), dqkv);
}
#endif

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::cuda
