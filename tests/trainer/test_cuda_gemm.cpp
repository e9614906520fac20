// The matmuls of a Linear on a CUDA device compared with the CPU's, and their description in terms of cuBLAS,
// whose matrices are column-major. The simulated matmul uses column-major matrices with exactly the sizes,
// transposes and leading dimensions that cuBLASLt is given: so the translation is tested.
#include "tests/trainer/cuda_testing.h"

namespace shardscope::trainer {
namespace TEST_FILE {

using namespace cuda_testing;

struct Linear {
    std::size_t rows, in, out;
    std::array<std::int64_t, 6> dims() const {
        return {static_cast<std::int64_t>(rows), static_cast<std::int64_t>(in),
                static_cast<std::int64_t>(out)};
    }
};
// No two sizes are equal, or a transposed operand would not be noticed; also vectors and single numbers.
constexpr Linear kLinears[] = {{5, 3, 7},  {33, 20, 65}, {1, 40, 9},  {17, 1, 6},
                               {8, 30, 1}, {1, 1, 1},    {64, 96, 48}};

Op linear_op(Kernel kernel, std::size_t args, bool checks_output = false) {
    Op op;
    op.kernel = kernel;
    op.dims = {2, 3, 5};  // rows, in, out
    op.checks_output = checks_output;
    op.args.resize(args);
    return op;
}

// y [2,5] row-major is a column-major [5,2]: y = w x, where w [5,3] is the transpose of the memory read as a
// column-major [3,5], and x is a column-major [3,2].
TEST(CudaProduct, OfTheForward) {
    const cuda::Product p = cuda::describe(linear_op(Kernel::linear_forward, 3));
    EXPECT_EQ(p.m, 5);
    EXPECT_EQ(p.n, 2);
    EXPECT_EQ(p.k, 3);
    EXPECT_TRUE(p.transpose_a);
    EXPECT_FALSE(p.transpose_b);
    EXPECT_EQ(p.lda, 3);
    EXPECT_EQ(p.ldb, 3);
    EXPECT_EQ(p.ldc, 5);
    EXPECT_EQ(p.a, 2u);  // the weight
    EXPECT_EQ(p.b, 1u);  // the input
    EXPECT_EQ(p.c, 0u);
}

// The flag for values that are not finite is not a bias.
TEST(CudaProduct, HasABiasWhereTheKernelHasOne) {
    EXPECT_EQ(cuda::describe(linear_op(Kernel::linear_forward, 3)).bias, 0u);
    EXPECT_EQ(cuda::describe(linear_op(Kernel::linear_forward, 4)).bias, 3u);
    EXPECT_EQ(cuda::describe(linear_op(Kernel::linear_forward, 4, true)).bias, 0u);
    EXPECT_EQ(cuda::describe(linear_op(Kernel::linear_forward, 5, true)).bias, 3u);
}

// y [, sum], x, w [, b]: GELU's sum shifts the others by one, whether it is kept or not.
TEST(CudaProduct, OfTheForwardWithAnActivation) {
    const cuda::Product relu = cuda::describe(linear_op(Kernel::linear_relu_forward, 4));
    EXPECT_EQ(relu.activation, cuda::Activation::relu);
    EXPECT_EQ(relu.b, 1u);
    EXPECT_EQ(relu.a, 2u);
    EXPECT_EQ(relu.bias, 3u);
    EXPECT_EQ(relu.sum, 0u);
    Op op = linear_op(Kernel::linear_gelu_forward, 5);
    op.args[1].buffer = 7;
    const cuda::Product gelu = cuda::describe(op);
    EXPECT_EQ(gelu.activation, cuda::Activation::gelu);
    EXPECT_EQ(gelu.b, 2u);
    EXPECT_EQ(gelu.a, 3u);
    EXPECT_EQ(gelu.bias, 4u);
    EXPECT_EQ(gelu.sum, 1u);
    EXPECT_TRUE(gelu.transpose_a);
    EXPECT_EQ(gelu.m, 5);
    EXPECT_EQ(gelu.n, 2);
    EXPECT_EQ(gelu.k, 3);
    op.args[1].buffer = -1;
    EXPECT_EQ(cuda::describe(op).sum, 0u);
    EXPECT_EQ(cuda::describe(linear_op(Kernel::linear_gelu_forward, 5, true)).bias, 0u);
}

// dx [2,3] is a column-major [3,2] = w [3,5] dy [5,2], neither transposed.
TEST(CudaProduct, OfTheInputsGradient) {
    const cuda::Product p = cuda::describe(linear_op(Kernel::linear_backward_input, 3));
    EXPECT_EQ(p.m, 3);
    EXPECT_EQ(p.n, 2);
    EXPECT_EQ(p.k, 5);
    EXPECT_FALSE(p.transpose_a);
    EXPECT_FALSE(p.transpose_b);
    EXPECT_EQ(p.lda, 3);
    EXPECT_EQ(p.ldb, 5);
    EXPECT_EQ(p.ldc, 3);
}

// dw [5,3] is a column-major [3,5] = x [3,2] times the transpose of dy [5,2].
TEST(CudaProduct, OfTheWeightsGradient) {
    const cuda::Product p = cuda::describe(linear_op(Kernel::linear_backward_weight, 3));
    EXPECT_EQ(p.m, 3);
    EXPECT_EQ(p.n, 5);
    EXPECT_EQ(p.k, 2);
    EXPECT_FALSE(p.transpose_a);
    EXPECT_TRUE(p.transpose_b);
    EXPECT_EQ(p.lda, 3);
    EXPECT_EQ(p.ldb, 5);
    EXPECT_EQ(p.ldc, 3);
}

TEST(CudaProduct, IsOnlyForMatmulKernels) {
    EXPECT_THROW(cuda::describe(linear_op(Kernel::add, 3)), std::logic_error);
}

template <class T>
class CudaGemm : public TypedCudaTest<T> {};
TYPED_TEST_SUITE(CudaGemm, Elements, ElementNames);

// Operands of every size, aligned and not.
template <class Check>
void for_linears(Check check) {
    for (const Linear& linear : kLinears) {
        for (const std::size_t shift : {0, 1}) {
            SCOPED_TRACE(std::to_string(linear.rows) + " x " + std::to_string(linear.in) + " x " +
                         std::to_string(linear.out) + ", shifted by " + std::to_string(shift));
            check(linear, shift);
        }
    }
}

TYPED_TEST(CudaGemm, Forward) {
    using T = TypeParam;
    for_linears([](const Linear& l, std::size_t shift) {
        Comparison(Kernel::linear_forward, kDType<T>, l.dims())
            .arg(unwritten<T>(l.rows * l.out))
            .arg(as<T>(normals(l.rows * l.in, "x")))
            .arg(as<T>(normals(l.out * l.in, "w")))
            .shifted(shift)
            .run()
            .template expect_near<T>(0);
    });
}

TYPED_TEST(CudaGemm, ForwardWithABiasAndACheck) {
    using T = TypeParam;
    for_linears([](const Linear& l, std::size_t shift) {
        Comparison comparison(Kernel::linear_forward, kDType<T>, l.dims());
        comparison.arg(unwritten<T>(l.rows * l.out))
            .arg(as<T>(normals(l.rows * l.in, "x")))
            .arg(as<T>(normals(l.out * l.in, "w")))
            .arg(as<T>(normals(l.out, "b")))
            .checked(-1)
            .shifted(shift)
            .run();
        comparison.template expect_near<T>(0);
        comparison.template expect_same<std::int32_t>(4);
    });
}

TYPED_TEST(CudaGemm, ForwardWithRelu) {
    using T = TypeParam;
    for_linears([](const Linear& l, std::size_t shift) {
        Comparison comparison(Kernel::linear_relu_forward, kDType<T>, l.dims());
        comparison.arg(unwritten<T>(l.rows * l.out))
            .arg(as<T>(normals(l.rows * l.in, "x")))
            .arg(as<T>(normals(l.out * l.in, "w")))
            .arg(as<T>(normals(l.out, "b")))
            .checked(-1)
            .shifted(shift)
            .run();
        comparison.template expect_near<T>(0);
        comparison.template expect_same<std::int32_t>(4);
    });
}

// With the sum and a bias, and without both. The CPU takes GELU of the rounded sum: a step of bf16 there is
// up to four in the result, as the GELU of a negative argument is steep relative to its size.
TYPED_TEST(CudaGemm, ForwardWithGelu) {
    using T = TypeParam;
    constexpr double kApart = std::is_same_v<T, float> ? testing::kTolerance<T> : 0x1p-6;
    for_linears([](const Linear& l, std::size_t shift) {
        Comparison kept(Kernel::linear_gelu_forward, kDType<T>, l.dims());
        kept.arg(unwritten<T>(l.rows * l.out))
            .arg(unwritten<T>(l.rows * l.out))
            .arg(as<T>(normals(l.rows * l.in, "x")))
            .arg(as<T>(normals(l.out * l.in, "w")))
            .arg(as<T>(normals(l.out, "b")))
            .checked(-1)
            .shifted(shift)
            .run();
        kept.template expect_near<T>(0, kApart);
        kept.template expect_near<T>(1);
        kept.template expect_same<std::int32_t>(5);
        Comparison alone(Kernel::linear_gelu_forward, kDType<T>, l.dims());
        alone.arg(unwritten<T>(l.rows * l.out))
            .nothing()
            .arg(as<T>(normals(l.rows * l.in, "x")))
            .arg(as<T>(normals(l.out * l.in, "w")))
            .shifted(shift)
            .run();
        alone.template expect_near<T>(0, kApart);
    });
}

TYPED_TEST(CudaGemm, BackwardInput) {
    using T = TypeParam;
    for_linears([](const Linear& l, std::size_t shift) {
        Comparison(Kernel::linear_backward_input, kDType<T>, l.dims())
            .arg(unwritten<T>(l.rows * l.in))
            .arg(as<T>(normals(l.rows * l.out, "dy")))
            .arg(as<T>(normals(l.out * l.in, "w")))
            .shifted(shift)
            .run()
            .template expect_near<T>(0);
    });
}

TYPED_TEST(CudaGemm, BackwardWeight) {
    using T = TypeParam;
    for_linears([](const Linear& l, std::size_t shift) {
        Comparison(Kernel::linear_backward_weight, kDType<T>, l.dims())
            .arg(unwritten<T>(l.out * l.in))
            .arg(as<T>(normals(l.rows * l.out, "dy")))
            .arg(as<T>(normals(l.rows * l.in, "x")))
            .shifted(shift)
            .run()
            .template expect_near<T>(0);
    });
}

// Also more rows than a block's 512 threads, and columns that end within a block's 16 or 8.
TYPED_TEST(CudaGemm, BackwardBias) {
    using T = TypeParam;
    for (const Linear& l :
         {Linear{1, 0, 1}, Linear{31, 0, 7}, Linear{513, 0, 33}, Linear{1500, 0, 16}, Linear{700, 0, 40}}) {
        for (const std::size_t shift : {0, 1}) {
            SCOPED_TRACE(std::to_string(l.rows) + " x " + std::to_string(l.out));
            Comparison(Kernel::linear_backward_bias, kDType<T>,
                       {static_cast<std::int64_t>(l.rows), static_cast<std::int64_t>(l.out)})
                .arg(unwritten<T>(l.out))
                .arg(as<T>(normals(l.rows * l.out, "dy")))
                .shifted(shift)
                .run()
                .template expect_near<T>(0);
        }
    }
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer
