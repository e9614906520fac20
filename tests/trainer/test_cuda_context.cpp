// The CUDA kernels of context groups compared with the CPU's.
#include "tests/trainer/cuda_testing.h"
#include "trainer/kernels/context_attention.h"

namespace shardscope::trainer::cuda {
namespace TEST_FILE {

using namespace cuda_testing;
using kernels::Bf16;
using kernels::ContextCut;

// {batch, rows, heads, width, kv heads} of a rank; keys for every query head, for two, and for all.
struct Shape {
    std::int64_t batch, rows, heads, width, kv_heads;
    ContextCut cut;

    std::array<std::int64_t, 6> dims(int step) const { return {batch, rows, heads, width, kv_heads, step}; }
    std::int64_t kv_row() const { return 2 * kv_heads * (width / heads); }
    std::size_t of(std::int64_t columns) const { return static_cast<std::size_t>(batch * rows * columns); }
    std::size_t keys(int step) const {
        return of(kv_row()) * static_cast<std::size_t>(step == 0 ? cut.ranks : 1);
    }
    device::KernelContext context() const {
        device::KernelContext made;
        made.cut = cut;
        return made;
    }
};

const Shape kShapes[] = {{2, 2, 2, 16, 2, {2, 0, true}},
                         {1, 66, 4, 32, 2, {2, 1, true}},
                         {2, 34, 3, 120, 1, {3, 1, true}},
                         {1, 33, 2, 40, 2, {2, 1, false}}};

// Of the ring's steps the rank sees all keys in 0, half of its queries or of the keys in the others.
constexpr int kSteps[] = {0, 1, 2};

template <class T>
class CudaContext : public TypedCudaTest<T> {};
TYPED_TEST_SUITE(CudaContext, Elements, ElementNames);

TYPED_TEST(CudaContext, AttendsAsTheCpuDoes) {
    for (const Shape& s : kShapes) {
        for (const int step : kSteps) {
            const auto qkv = as<TypeParam>(normals(s.of(s.width + s.kv_row()), "qkv")),
                       kv = as<TypeParam>(normals(s.keys(step), "kv"));
            Comparison forward(plan::Kernel::context_attention_forward, kDType<TypeParam>, s.dims(step));
            forward.args(Floats(s.of(s.width), NAN), Floats(s.of(s.heads), NAN), qkv, kv).run(s.context());
            forward.template expect_near<float>(0, 4 * testing::kFloatTolerance);
            const auto lse = forward.template cpu<float>(1), cuda_lse = forward.template cuda<float>(1);
            for (std::size_t i = 0; i < lse.size(); ++i) {
                if (std::isinf(lse[i])) {
                    EXPECT_EQ(cuda_lse[i], lse[i]);
                } else {
                    EXPECT_NEAR(cuda_lse[i], lse[i], 1e-5 * (1 + std::abs(lse[i])));
                }
            }
            // In a backward lse is that of all keys, so it is finite.
            const auto dout = as<TypeParam>(normals(s.of(s.width), "dout"));
            const auto out = as<TypeParam>(forward.template cpu<float>(0));
            Comparison backward(plan::Kernel::context_attention_backward, kDType<TypeParam>, s.dims(step));
            backward.args(normals(s.of(s.width), "dq"), Floats(s.keys(step), NAN), Floats(s.of(s.heads), NAN))
                .args(dout, qkv, kv, out, Floats(s.of(s.heads), 3.0F))
                .run(s.context());
            for (const std::size_t arg : {0U, 1U, 2U})
                backward.template expect_near<float>(arg, 8 * testing::kFloatTolerance);
        }
    }
}

// A query that is not a number gives a row that is none, not one that sees no keys.
TYPED_TEST(CudaContext, KeepsWhatIsNotANumber) {
    const Shape s = kShapes[0];
    Floats queries = normals(s.of(s.width + s.kv_row()), "qkv");
    queries[0] = NAN;  // of the first row and head
    Comparison forward(plan::Kernel::context_attention_forward, kDType<TypeParam>, s.dims(0));
    forward
        .args(Floats(s.of(s.width), 0.0F), Floats(s.of(s.heads), 0.0F), as<TypeParam>(queries),
              as<TypeParam>(normals(s.keys(0), "kv")))
        .run(s.context());
    for (const Floats& out : {forward.template cpu<float>(0), forward.template cuda<float>(0)}) {
        EXPECT_TRUE(std::isnan(out[0]));
        EXPECT_FALSE(std::isnan(out[static_cast<std::size_t>(s.width / s.heads)]));
    }
    EXPECT_TRUE(std::isnan(forward.template cpu<float>(1)[0]));
    EXPECT_TRUE(std::isnan(forward.template cuda<float>(1)[0]));
}

TYPED_TEST(CudaContext, MergesAsTheCpuDoes) {
    const Shape s = kShapes[1];
    Floats part_lse = normals(s.of(s.heads), "part lse");
    part_lse[3] = -INFINITY;
    Comparison merge(plan::Kernel::attention_merge, kDType<TypeParam>, {s.batch, s.rows, s.heads, s.width});
    merge.args(normals(s.of(s.width), "y"), normals(s.of(s.heads), "lse"), normals(s.of(s.width), "part"),
               part_lse);
    merge.run();
    merge.template expect_near<float>(0, 4 * testing::kFloatTolerance);
    merge.template expect_near<float>(1, 4 * testing::kFloatTolerance);
}

TYPED_TEST(CudaContext, CopiesColumnsAndCountsPositions) {
    Comparison columns(plan::Kernel::copy_columns, kDType<TypeParam>,
                       {7, 5, 9, 6, input_dim(plan::DType::fp32)});
    columns.args(as<TypeParam>(normals(63, "y")), normals(42, "x")).run();
    columns.template expect_same<TypeParam>(0);
    for (const Shape& s : kShapes) {
        Comparison positions(plan::Kernel::context_positions, plan::DType::int32, {s.rows});
        positions.arg(std::vector<std::int32_t>(static_cast<std::size_t>(s.rows), -1)).run(s.context());
        positions.template expect_same<std::int32_t>(0);
    }
}

// The masks of a context group's ranks are those of the whole, in runs.
TYPED_TEST(CudaContext, DropsAsTheCpuDoes) {
    for (const Shape& s : kShapes) {
        device::KernelContext context = s.context();
        context.data_rank = 1;
        context.data_ranks = context.tensors = 2;
        context.micro_step = 3;
        const std::int64_t n = s.batch * s.rows * s.width;
        Comparison dropout(plan::Kernel::dropout_forward, kDType<TypeParam>, {n, 42, 0, n / s.batch}, {0.5});
        const auto size = static_cast<std::size_t>(n);
        dropout.args(unwritten<TypeParam>(size), as<TypeParam>(normals(size, "x"))).run(context);
        dropout.template expect_same<TypeParam>(0);
    }
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::cuda
