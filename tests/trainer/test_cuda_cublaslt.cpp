// What Gemm passes to cuBLASLt, compared with a library of the same functions that multiplies on the CPU
// (played_cublaslt.cpp); and its error if there is no usable library. Built if the CUDA toolkit is installed;
// needs no GPU.
#include <cstdlib>
#include <type_traits>

#include <dlfcn.h>
#include <gmock/gmock.h>

#include "tests/trainer/kernel_testing.h"
#include "trainer/cuda/activation.h"
#include "trainer/cuda/gemm.h"
#include "trainer/cuda/row_sums.h"
#include "trainer/kernels/activation.h"
#include "trainer/kernels/linear.h"

namespace shardscope::trainer {

// Stubs that replace the kernels.
namespace cuda {

int repeated_rows = 0;
int activations = 0;

template <class T>
void launch_repeat_row(const T* row, T* x, std::int64_t rows, std::int64_t columns, cudaStream_t) {
    ++repeated_rows;
    for (std::int64_t i = 0; i < rows; ++i) std::copy_n(row, columns, x + i * columns);
}
// The CPU's type that has the bits of the device's type.
template <class T>
using Host = std::conditional_t<sizeof(T) == 2, kernels::Bf16, float>;
template <class T>
void activation_forward(kernels::ActivationKind kind, const T* x, T* y, std::size_t n, const Existing&,
                        cudaStream_t) {
    ++activations;
    const auto* from = reinterpret_cast<const Host<T>*>(x);
    auto* to = reinterpret_cast<Host<T>*>(y);
    kind == kernels::ActivationKind::relu ? kernels::relu_forward(from, to, n)
                                          : kernels::gelu_forward(from, to, n);
}
template void launch_repeat_row(const float*, float*, std::int64_t, std::int64_t, cudaStream_t);
template void launch_repeat_row(const Bf16*, Bf16*, std::int64_t, std::int64_t, cudaStream_t);
template void activation_forward(kernels::ActivationKind, const float*, float*, std::size_t, const Existing&,
                                 cudaStream_t);
template void activation_forward(kernels::ActivationKind, const Bf16*, Bf16*, std::size_t, const Existing&,
                                 cudaStream_t);

}  // namespace cuda

namespace TEST_FILE {

using namespace testing;
using kernels::Bf16;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::string error_with(const char* library) {
    setenv("SHARDSCOPE_CUBLASLT", library, 1);
    try {
        const cuda::Gemm gemm(false);
    } catch (const cuda::CudaError& error) {
        return error.what();
    }
    return "no error";
}

// The tests run one after the other, because a library stays open.
class CublasLt : public ::testing::Test {
  protected:
    static void SetUpTestSuite() {
        missing_ = error_with("/nonexistent/libcublasLt.so.13");
        foreign_ = error_with("libm.so.6");
        setenv("SHARDSCOPE_CUBLASLT", SHARDSCOPE_PLAYED_CUBLASLT, 1);
    }
    int count(const char* function) const {
        void* handle = dlopen(SHARDSCOPE_PLAYED_CUBLASLT, RTLD_NOW | RTLD_NOLOAD);
        const int counted = reinterpret_cast<int (*)()>(dlsym(handle, function))();
        dlclose(handle);
        return counted;
    }
    inline static std::string missing_, foreign_;
};

TEST_F(CublasLt, ReportsWhatIsMissingAndWhatToDo) {
    EXPECT_THAT(missing_, AllOf(HasSubstr("cannot be opened (/nonexistent/libcublasLt.so.13: "),
                                HasSubstr("install CUDA's cuBLAS"), HasSubstr("SHARDSCOPE_CUBLASLT")));
    EXPECT_EQ(foreign_, "libm.so.6 has no cublasLtCreate; install cuBLAS 12 or later");
}

struct Linear {
    int rows, in, out;
};

template <class T>
struct Operands {
    std::vector<T> x, w, b, y, dy;
    explicit Operands(const Linear& l)
        : x(as<T>(normals(count(l.rows, l.in), "x"))),
          w(as<T>(normals(count(l.out, l.in), "w"))),
          b(as<T>(normals(count(l.out, 1), "b"))),
          y(unwritten<T>(count(l.rows, l.out))),
          dy(as<T>(normals(count(l.rows, l.out), "dy"))) {}
    static std::size_t count(int a, int b) {
        return static_cast<std::size_t>(a) * static_cast<std::size_t>(b);
    }
};

template <class T>
std::byte* bytes(std::vector<T>& values) {
    return reinterpret_cast<std::byte*>(values.data());
}

template <class T>
plan::Op op_of(plan::Kernel kernel, const Linear& l, std::size_t args) {
    plan::Op op;
    op.own = plan::KernelOp{.kernel = kernel,
                            .dtype = std::is_same_v<T, float> ? plan::DType::fp32 : plan::DType::bf16,
                            .dims = {l.rows, l.in, l.out}};
    op.stream = plan::Stream::compute;
    op.args.resize(args);
    return op;
}

constexpr Linear kLinears[] = {{5, 3, 7}, {33, 20, 65}, {1, 40, 9}, {17, 1, 6}, {8, 30, 1}};

template <class T>
void expect_the_cpus_products(cuda::Gemm& gemm) {
    for (const Linear& l : kLinears) {
        Operands<T> o(l);
        std::vector<T> expected = o.y, dx = o.x, dw = o.w, expected_dx = o.x, expected_dw = o.w;
        gemm.launch(op_of<T>(plan::Kernel::linear_forward, l, 3), {bytes(o.y), bytes(o.x), bytes(o.w)},
                    nullptr);
        kernels::linear_forward(o.x.data(), o.w.data(), nullptr, expected.data(), l.rows, l.in, l.out);
        EXPECT_LE(relative_error(in_double(o.y), in_double(expected)), kTolerance<T>);

        gemm.launch(op_of<T>(plan::Kernel::linear_backward_input, l, 3), {bytes(dx), bytes(o.dy), bytes(o.w)},
                    nullptr);
        kernels::linear_backward_input(o.dy.data(), o.w.data(), expected_dx.data(), l.rows, l.in, l.out);
        EXPECT_LE(relative_error(in_double(dx), in_double(expected_dx)), kTolerance<T>);

        gemm.launch(op_of<T>(plan::Kernel::linear_backward_weight, l, 3),
                    {bytes(dw), bytes(o.dy), bytes(o.x)}, nullptr);
        kernels::linear_backward_weight(o.dy.data(), o.x.data(), expected_dw.data(), l.rows, l.in, l.out);
        EXPECT_LE(relative_error(in_double(dw), in_double(expected_dw)), kTolerance<T>);
    }
}

TEST_F(CublasLt, ComputesTheCpusMatmuls) {
    cuda::Gemm gemm(false);
    expect_the_cpus_products<float>(gemm);
    expect_the_cpus_products<Bf16>(gemm);
}

TEST_F(CublasLt, UsesTheWorkspaceOfThePass) {
    cuda::Gemm gemm(false);
    std::vector<std::byte> both(2 * 256, std::byte{0});
    gemm.use_workspaces(both.data(), 256);
    const Linear l{3, 4, 5};  // 3 columns of 64 bytes
    Operands<float> o(l);
    plan::Op op = op_of<float>(plan::Kernel::linear_forward, l, 3);
    op.phase = plan::Phase::backward;  // for example a recomputed forward
    gemm.launch(op, {bytes(o.y), bytes(o.x), bytes(o.w)}, nullptr);
    for (std::size_t i = 0; i < both.size(); ++i) {
        EXPECT_EQ(both[i], i >= 256 && i < 256 + 3 * 64 ? std::byte{0xff} : std::byte{0}) << i;
    }
}

TEST_F(CublasLt, UsesNoWorkspaceBesideTheComputeStream) {
    cuda::Gemm gemm(false);
    std::vector<std::byte> both(2 * 256, std::byte{0});
    gemm.use_workspaces(both.data(), 256);
    const Linear l{3, 4, 5};
    Operands<float> o(l);
    plan::Op op = op_of<float>(plan::Kernel::linear_forward, l, 3);
    op.stream = plan::Stream::post_backward;  // a communication hook's matmul
    gemm.launch(op, {bytes(o.y), bytes(o.x), bytes(o.w)}, nullptr);
    EXPECT_EQ(both, std::vector<std::byte>(both.size(), std::byte{0}));
}

TEST_F(CublasLt, RoundsToTf32OnlyOnRequest) {
    const Linear l{3, 4, 5};
    Operands<float> o(l);
    Operands<Bf16> narrow(l);
    cuda::Gemm exact(false), rounding(true);
    const int before = count("played_tf32_products");
    exact.launch(op_of<float>(plan::Kernel::linear_forward, l, 3), {bytes(o.y), bytes(o.x), bytes(o.w)},
                 nullptr);
    rounding.launch(op_of<Bf16>(plan::Kernel::linear_forward, l, 3),
                    {bytes(narrow.y), bytes(narrow.x), bytes(narrow.w)}, nullptr);
    EXPECT_EQ(count("played_tf32_products") - before, 0);
    rounding.launch(op_of<float>(plan::Kernel::linear_forward, l, 3), {bytes(o.y), bytes(o.x), bytes(o.w)},
                    nullptr);
    EXPECT_EQ(count("played_tf32_products") - before, 1);
}

TEST_F(CublasLt, ChoosesAnAlgorithmOncePerShapeAndAlignment) {
    const Linear l{4, 8, 16};
    Operands<float> o(l);
    const plan::Op op = op_of<float>(plan::Kernel::linear_forward, l, 3);
    cuda::Gemm gemm(false);
    const int before = count("played_heuristics");
    for (int i = 0; i < 3; ++i) gemm.launch(op, {bytes(o.y), bytes(o.x), bytes(o.w)}, nullptr);
    EXPECT_EQ(count("played_heuristics") - before, 1);
    o.x.insert(o.x.begin(), 0.0f);  // x begins 4 bytes after its memory does
    gemm.launch(op, {bytes(o.y), bytes(o.x) + sizeof(float), bytes(o.w)}, nullptr);
    EXPECT_EQ(count("played_heuristics") - before, 2);
}

// The first element of the memory is aligned to 16 bytes, the second is not: no algorithm takes the bias
// there, so a kernel writes it before the matmul. A second bias of the same kind must not use the first one's
// address.
TEST_F(CublasLt, AddsABiasWhetherOrNotAnAlgorithmTakesIt) {
    const Linear l{6, 8, 16};
    for (const std::size_t shift : {0, 1}) {
        cuda::Gemm gemm(false);
        const int before = cuda::repeated_rows;
        for (const char* name : {"b", "another"}) {
            Operands<float> o(l);
            Floats bias = normals(shift + 16, name), expected = o.y;
            const float* first = bias.data() + shift;
            ASSERT_EQ(reinterpret_cast<std::uintptr_t>(bias.data()) % 16, 0u);
            ASSERT_EQ(reinterpret_cast<std::uintptr_t>(o.y.data()) % 16, 0u);
            gemm.launch(op_of<float>(plan::Kernel::linear_forward, l, 4),
                        {bytes(o.y), bytes(o.x), bytes(o.w), bytes(bias) + shift * sizeof(float)}, nullptr);
            kernels::linear_forward(o.x.data(), o.w.data(), first, expected.data(), l.rows, l.in, l.out);
            EXPECT_LE(relative_error(o.y, expected), kFloatTolerance);
        }
        EXPECT_EQ(cuda::repeated_rows - before, shift == 0 ? 0 : 2);
    }
}

// --- activations -------------------------------------------------------------------------------------------

struct Fused {
    plan::Kernel kernel;
    bool bias, keeps_sum;
};
constexpr Fused kFused[] = {
    {plan::Kernel::linear_relu_forward, false, false}, {plan::Kernel::linear_relu_forward, true, false},
    {plan::Kernel::linear_gelu_forward, false, false}, {plan::Kernel::linear_gelu_forward, true, false},
    {plan::Kernel::linear_gelu_forward, false, true},  {plan::Kernel::linear_gelu_forward, true, true}};

// One matmul and the results of the CPU's two kernels, y and the sum; y begins `shift` elements after a
// multiple of 16 bytes.
template <class T>
void expect_the_cpus_activation(cuda::Gemm& gemm, const Fused& fused, const Linear& l, std::size_t shift) {
    Operands<T> o(l);
    const bool gelu = fused.kernel == plan::Kernel::linear_gelu_forward;
    std::vector<T> sum = o.y, expected_sum = o.y, expected = o.y;
    kernels::linear_forward(o.x.data(), o.w.data(), fused.bias ? o.b.data() : nullptr, expected_sum.data(),
                            l.rows, l.in, l.out);
    gelu ? kernels::gelu_forward(expected_sum.data(), expected.data(), expected.size())
         : kernels::relu_forward(expected_sum.data(), expected.data(), expected.size());
    o.y.insert(o.y.begin(), shift, T{});
    ASSERT_EQ(reinterpret_cast<std::uintptr_t>(o.y.data()) % 16, 0u);

    std::vector<std::byte*> data = {bytes(o.y) + shift * sizeof(T)};
    plan::Op op = op_of<T>(fused.kernel, l, 0);
    op.args.push_back({0, 0, 0, 0});
    if (gelu) {
        data.push_back(fused.keeps_sum ? bytes(sum) : nullptr);
        op.args.push_back({fused.keeps_sum ? 1 : -1, 0, 0, 0});
    }
    for (std::vector<T>* input : {&o.x, &o.w, &o.b}) {
        if (input == &o.b && !fused.bias) continue;
        data.push_back(bytes(*input));
        op.args.push_back({2, 0, 0, 0});
    }
    gemm.launch(op, data, nullptr);
    o.y.erase(o.y.begin(), o.y.begin() + static_cast<std::ptrdiff_t>(shift));
    EXPECT_LE(relative_error(in_double(o.y), in_double(expected)), kTolerance<T>);
    if (fused.keeps_sum) {
        EXPECT_LE(relative_error(in_double(sum), in_double(expected_sum)), kTolerance<T>);
    }
}

// Each runs twice, to detect that the second uses the first one's addresses.
TEST_F(CublasLt, ComputesTheActivationInTheProduct) {
    const Linear l{6, 5, 16};
    for (const Fused& fused : kFused) {
        cuda::Gemm gemm(false);
        const int before = count("played_activating_products"), apart = cuda::activations;
        for (int i = 0; i < 2; ++i) {
            expect_the_cpus_activation<float>(gemm, fused, l, 0);
            expect_the_cpus_activation<Bf16>(gemm, fused, l, 0);
        }
        EXPECT_EQ(count("played_activating_products") - before, 4);
        EXPECT_EQ(cuda::activations - apart, 0);
    }
}

// The output is aligned well enough for the matmul only; all algorithms are then queried until one accepts.
TEST_F(CublasLt, LeavesTheActivationToAKernelWhereNoAlgorithmTakesIt) {
    const Linear l{6, 5, 16};
    for (const Fused& fused : kFused) {
        cuda::Gemm gemm(false);
        const int before = count("played_activating_products"), apart = cuda::activations;
        expect_the_cpus_activation<float>(gemm, fused, l, 1);
        expect_the_cpus_activation<Bf16>(gemm, fused, l, 1);
        EXPECT_EQ(count("played_activating_products") - before, 0);
        EXPECT_EQ(cuda::activations - apart, 2);
    }
}

// Columns of 7 elements: GELU's sum cannot be kept; ReLU and a GELU that keeps none do not need such columns.
TEST_F(CublasLt, RequestsNoActivationWhoseSumItCannotKeep) {
    const Linear l{6, 5, 7};
    for (const Fused& fused : kFused) {
        cuda::Gemm gemm(false);
        const int before = count("played_activating_products"), asked = count("played_heuristics");
        expect_the_cpus_activation<float>(gemm, fused, l, 0);
        EXPECT_EQ(count("played_activating_products") - before, fused.keeps_sum ? 0 : 1);
        EXPECT_EQ(count("played_heuristics") - asked, 1);
    }
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer
