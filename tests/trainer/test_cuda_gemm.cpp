// The matmuls of a Linear on a CUDA device compared with the CPU's, and their description in terms of cuBLAS,
// whose matrices are column-major. The simulated matmul uses column-major matrices with exactly the sizes,
// transposes and leading dimensions that cuBLASLt is given, so this tests the translation.
#include "tests/trainer/cuda_testing.h"

namespace shardscope::trainer::cuda {
namespace TEST_FILE {

using namespace cuda_testing;

struct Linear {
    std::size_t rows, in, out;
    std::array<std::int64_t, 6> dims() const {
        return {static_cast<std::int64_t>(rows), static_cast<std::int64_t>(in),
                static_cast<std::int64_t>(out)};
    }
};
// All sizes differ, because otherwise a transposed operand would not be noticed; also vectors and single
// numbers.
constexpr Linear kLinears[] = {{5, 3, 7},  {33, 20, 65}, {1, 40, 9},  {17, 1, 6},
                               {8, 30, 1}, {1, 1, 1},    {64, 96, 48}};

plan::Op linear_op(plan::Kernel kernel, std::size_t args, bool checks_output = false) {
    plan::Op op;
    op.own =
        plan::KernelOp{.kernel = kernel, .checks_output = checks_output, .dims = {2, 3, 5}};  // rows, in, out
    op.args.resize(args);
    return op;
}

// The matmul [m, n] of depth k that a kernel computes, its transposes and leading dimensions, and the args
// that are its matrices.
struct Described {
    plan::Kernel kernel;
    std::int64_t m, n, k;
    bool transpose_a, transpose_b;
    std::int64_t lda, ldb, ldc;
    std::size_t a, b;
};
constexpr Described kDescribed[] = {
    // y [2,5] row-major is a column-major [5,2]: y = w x, where w [5,3] is the transpose of the memory read
    // as a column-major [3,5], and x is a column-major [3,2].
    {plan::Kernel::linear_forward, 5, 2, 3, true, false, 3, 3, 5, 2, 1},
    // dx [2,3] is a column-major [3,2] = w [3,5] dy [5,2], neither transposed.
    {plan::Kernel::linear_backward_input, 3, 2, 5, false, false, 3, 5, 3, 2, 1},
    // dw [5,3] is a column-major [3,5] = x [3,2] times the transpose of dy [5,2].
    {plan::Kernel::linear_backward_weight, 3, 5, 2, false, true, 3, 5, 3, 2, 1}};

TEST(CudaMatmul, IsOfColumnMajorMatrices) {
    for (const Described& expected : kDescribed) {
        SCOPED_TRACE(static_cast<int>(expected.kernel));
        const Matmul p = describe(linear_op(expected.kernel, 3));
        EXPECT_EQ(p.m, expected.m);
        EXPECT_EQ(p.n, expected.n);
        EXPECT_EQ(p.k, expected.k);
        EXPECT_EQ(p.transpose_a, expected.transpose_a);
        EXPECT_EQ(p.transpose_b, expected.transpose_b);
        EXPECT_EQ(p.lda, expected.lda);
        EXPECT_EQ(p.ldb, expected.ldb);
        EXPECT_EQ(p.ldc, expected.ldc);
        EXPECT_EQ(p.a, expected.a);
        EXPECT_EQ(p.b, expected.b);
        EXPECT_EQ(p.c, 0u);
    }
}

// The flag for values that are not finite must not be taken for a bias.
TEST(CudaMatmul, HasABiasWhereTheKernelHasOne) {
    EXPECT_EQ(describe(linear_op(plan::Kernel::linear_forward, 3)).bias, 0u);
    EXPECT_EQ(describe(linear_op(plan::Kernel::linear_forward, 4)).bias, 3u);
    EXPECT_EQ(describe(linear_op(plan::Kernel::linear_forward, 4, true)).bias, 0u);
    EXPECT_EQ(describe(linear_op(plan::Kernel::linear_forward, 5, true)).bias, 3u);
}

// y [, sum], x, w [, b]: GELU's sum shifts the others by one, whether it is kept or not.
TEST(CudaMatmul, OfTheForwardWithAnActivation) {
    const Matmul relu = describe(linear_op(plan::Kernel::linear_relu_forward, 4));
    EXPECT_EQ(relu.activation, kernels::ActivationKind::relu);
    EXPECT_EQ(relu.b, 1u);
    EXPECT_EQ(relu.a, 2u);
    EXPECT_EQ(relu.bias, 3u);
    EXPECT_EQ(relu.sum, 0u);
    plan::Op op = linear_op(plan::Kernel::linear_gelu_forward, 5);
    op.args[1].buffer = 7;
    const Matmul gelu = describe(op);
    EXPECT_EQ(gelu.activation, kernels::ActivationKind::gelu);
    EXPECT_EQ(gelu.b, 2u);
    EXPECT_EQ(gelu.a, 3u);
    EXPECT_EQ(gelu.bias, 4u);
    EXPECT_EQ(gelu.sum, 1u);
    EXPECT_TRUE(gelu.transpose_a);
    EXPECT_EQ(gelu.m, 5);
    EXPECT_EQ(gelu.n, 2);
    EXPECT_EQ(gelu.k, 3);
    op.args[1].buffer = -1;
    EXPECT_EQ(describe(op).sum, 0u);
    EXPECT_EQ(describe(linear_op(plan::Kernel::linear_gelu_forward, 5, true)).bias, 0u);
}

TEST(CudaMatmul, IsNoOtherKernel) {
    EXPECT_THROW(describe(linear_op(plan::Kernel::add, 3)), std::logic_error);
}

template <class T>
class CudaGemm : public TypedCudaTest<T> {};
TYPED_TEST_SUITE(CudaGemm, Elements, ElementNames);

std::string text_of(const Linear& l) {
    return std::to_string(l.rows) + " x " + std::to_string(l.in) + " x " + std::to_string(l.out);
}

// GELU with its sum and a bias, and without both. The CPU applies GELU to the rounded sum: one step of bf16
// in the sum is up to four in the result, because GELU of a negative argument is steep relative to its size.
template <class T>
std::vector<KernelCase<T>> cases(const Linear& l) {
    constexpr double kNear = testing::kTolerance<T>, kGelu = std::is_same_v<T, float> ? kNear : 0x1p-6;
    const auto of = [&](plan::Kernel kernel) { return Comparison(kernel, kDType<T>, l.dims()); };
    const auto y = unwritten<T>(l.rows * l.out), dx = unwritten<T>(l.rows * l.in),
               dw = unwritten<T>(l.out * l.in), x = as<T>(normals(l.rows * l.in, "x")),
               w = as<T>(normals(l.out * l.in, "w")), b = as<T>(normals(l.out, "b")),
               dy = as<T>(normals(l.rows * l.out, "dy"));
    const Comparison gelu = of(plan::Kernel::linear_gelu_forward).args(y, y, x, w, b).checked(-1);
    return {{"forward", of(plan::Kernel::linear_forward).args(y, x, w), kNear},
            {"with a bias", of(plan::Kernel::linear_forward).args(y, x, w, b).checked(-1), kNear},
            {"with ReLU", of(plan::Kernel::linear_relu_forward).args(y, x, w, b).checked(-1), kNear},
            {"with GELU", gelu, kGelu},
            {"GELU's sum", gelu, kNear, {1}},
            {"with GELU alone", of(plan::Kernel::linear_gelu_forward).args(y).nothing().args(x, w), kGelu},
            {"input's gradient", of(plan::Kernel::linear_backward_input).args(dx, dy, w), kNear},
            {"weight's gradient", of(plan::Kernel::linear_backward_weight).args(dw, dy, x), kNear}};
}

TYPED_TEST(CudaGemm, ComputesWhatTheCpuComputes) {
    check_cases(kLinears, text_of, cases<TypeParam>);
}

// Also covers columns beside packs of 4 and tiles of 128, more rows than a slice has, and more slices than a
// warp adds at once.
TYPED_TEST(CudaGemm, BackwardBias) {
    using T = TypeParam;
    constexpr Linear kTall[] = {{1, 0, 1},     {31, 0, 7},    {513, 0, 33},
                                {1500, 0, 16}, {700, 0, 140}, {40000, 0, 3}};
    check_cases(kTall, text_of, [](const Linear& l) {
        Comparison sums(plan::Kernel::linear_backward_bias, kDType<T>,
                        {static_cast<std::int64_t>(l.rows), static_cast<std::int64_t>(l.out)});
        sums.args(unwritten<T>(l.out), as<T>(normals(l.rows * l.out, "dy")));
        return std::array{KernelCase<T>{"bias", sums, testing::kTolerance<T>}};
    });
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::cuda
