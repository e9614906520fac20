// Measures the CUDA device's kernels against their bounds: matmuls against the same cuBLASLt call alone,
// kernels that only move memory against cudaMemcpy, attention by its rate. Prints one row each;
// tests/gpu/speed.sh reads them and has the goals.
//
//   bench_cuda [gemm|memory|attention|convolution] ...      all of them without an argument
//
//   gemm bf16 forward 8192x768x2304      <us of ours>  <us of the call alone>  <alone / ours>  <TFLOP/s>
//   fused bf16 gelu 8192x768x3072        <us in the matmul>  <us of matmul and kernel>  <their ratio>
//   memory adam fp32 124439808           <us>  <GB/s>  <of a copy's GB/s>
//   attention bf16 forward 8x1024 12x64  <us>  <TFLOP/s>
//   convolution forward 64x56x56x64 3/1 64  <us>  <TFLOP/s>
//
// Times are of the device (events around many calls), medians of rounds; the compared calls alternate. Exit
// status 77: not run, since there is no GPU.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include <cublasLt.h>
#include <dlfcn.h>

#include "trainer/cuda/activation.h"
#include "trainer/cuda/attention.h"
#include "trainer/cuda/batch_norm.h"
#include "trainer/cuda/convolution.h"
#include "trainer/cuda/gemm.h"
#include "trainer/cuda/loss.h"
#include "trainer/cuda/norms.h"
#include "trainer/cuda/optimizer.h"
#include "trainer/cuda/types.h"

namespace shardscope::trainer::cuda {
namespace {

constexpr int kRounds = 7;
constexpr float kRoundMs = 10;  // the length of a round, which determines the number of calls
constexpr std::int64_t kWorkspace = std::int64_t{32} << 20;

// --- device memory and time --------------------------------------------------------------------------------

// Numbers that resemble a model's: zeros would draw less power, and run faster, than any real matmul.
template <class T>
__global__ void fill(T* to, std::size_t n, float scale) {
    const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
    for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n;
         i += stride) {
        std::uint32_t bits = static_cast<std::uint32_t>(i) * 2654435761u + 12345u;
        bits = (bits ^ (bits >> 15)) * 2246822519u;
        bits ^= bits >> 13;
        to[i] = rounded<T>(scale * (static_cast<float>(bits >> 8) * (2.0f / 16777216.0f) - 1.0f));
    }
}

template <class T>
class Buffer {
  public:
    // Filled with numbers from -scale to scale; with zeros if `scale` is 0.
    explicit Buffer(std::size_t n, float scale = 0) : n_(n) {
        void* memory = nullptr;
        check(cudaMalloc(&memory, n * sizeof(T)), "cudaMalloc");
        data_ = static_cast<T*>(memory);
        check(cudaMemset(data_, 0, n * sizeof(T)), "cudaMemset");
        if constexpr (!std::is_integral_v<T> && !std::is_same_v<T, double>) {
            if (scale > 0) launch(fill<T>, dim3(1024), dim3(256), 0, nullptr, data_, n, scale);
        }
        check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    }
    ~Buffer() { cudaFree(data_); }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;

    operator T*() const { return data_; }
    std::byte* bytes() const { return reinterpret_cast<std::byte*>(data_); }
    std::size_t size() const { return n_; }

  private:
    T* data_ = nullptr;
    std::size_t n_;
};

using Call = std::function<void()>;

// Milliseconds per call for `calls` calls, one after the other on the default stream.
float time_of(const Call& call, int calls) {
    struct Event {
        cudaEvent_t event = nullptr;
        Event() { check(cudaEventCreate(&event), "cudaEventCreate"); }
        ~Event() { cudaEventDestroy(event); }
    };
    const Event begin, end;
    check(cudaEventRecord(begin.event, nullptr), "cudaEventRecord");
    for (int i = 0; i < calls; ++i) call();
    check(cudaEventRecord(end.event, nullptr), "cudaEventRecord");
    check(cudaEventSynchronize(end.event), "cudaEventSynchronize");
    float ms = 0;
    check(cudaEventElapsedTime(&ms, begin.event, end.event), "cudaEventElapsedTime");
    return ms / static_cast<float>(calls);
}

// Microseconds of each call: the median of rounds, in which they take turns.
std::vector<double> measure(const std::vector<Call>& calls) {
    std::vector<int> counts;
    std::vector<std::vector<float>> times(calls.size());
    for (const Call& call : calls) {
        time_of(call, 3);
        counts.push_back(std::clamp(static_cast<int>(kRoundMs / std::max(time_of(call, 3), 1e-3f)), 1, 500));
    }
    for (int round = 0; round < kRounds; ++round) {
        for (std::size_t i = 0; i < calls.size(); ++i) times[i].push_back(time_of(calls[i], counts[i]));
    }
    std::vector<double> medians;
    for (std::vector<float>& of_call : times) {
        std::sort(of_call.begin(), of_call.end());
        medians.push_back(1e3 * static_cast<double>(of_call[of_call.size() / 2]));
    }
    return medians;
}

// --- products ----------------------------------------------------------------------------------------------

void check_status(cublasStatus_t status, const char* what) {
    if (status == CUBLAS_STATUS_SUCCESS) return;
    throw CudaError(std::string(what) + " failed with status " + std::to_string(static_cast<int>(status)));
}

// One matmul by cuBLASLt alone: everything is prepared before, a call is cublasLtMatmul and nothing else. The
// algorithm is the heuristic's first for the same operands, epilogue and workspace.
class Alone {
  public:
    Alone(const Matmul& p, plan::DType dtype, bool tf32) {
        open();
        const bool bf16 = dtype == plan::DType::bf16;
        const cudaDataType_t type = bf16 ? CUDA_R_16BF : CUDA_R_32F;
        const auto layout = [&](bool transposed, std::int64_t rows, std::int64_t columns,
                                std::int64_t leading) {
            cublasLtMatrixLayout_t made = nullptr;
            if (transposed) std::swap(rows, columns);
            check_status(layout_create_(&made, type, static_cast<std::uint64_t>(rows),
                                        static_cast<std::uint64_t>(columns), leading),
                         "cublasLtMatrixLayoutCreate");
            return made;
        };
        a_ = layout(p.transpose_a, p.m, p.k, p.lda);
        b_ = layout(p.transpose_b, p.k, p.n, p.ldb);
        c_ = layout(false, p.m, p.n, p.ldc);
        check_status(
            desc_create_(&desc_, tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F),
            "cublasLtMatmulDescCreate");
        set(CUBLASLT_MATMUL_DESC_TRANSA, p.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
        set(CUBLASLT_MATMUL_DESC_TRANSB, p.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
        biased_ = p.bias > 0;
        if (biased_) set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    }
    // The handles live until the process ends.

    void choose(const void* bias) {
        if (biased_) set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
        cublasLtMatmulPreference_t preference = nullptr;
        check_status(preference_create_(&preference), "cublasLtMatmulPreferenceCreate");
        const std::uint64_t workspace = kWorkspace;
        check_status(preference_set_(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace,
                                     sizeof workspace),
                     "cublasLtMatmulPreferenceSetAttribute");
        const std::uint32_t fp32_sums = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
        check_status(preference_set_(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &fp32_sums,
                                     sizeof fp32_sums),
                     "cublasLtMatmulPreferenceSetAttribute");
        cublasLtMatmulHeuristicResult_t found = {};
        int count = 0;
        check_status(heuristic_(handle_, desc_, a_, b_, c_, c_, preference, 1, &found, &count),
                     "cublasLtMatmulAlgoGetHeuristic");
        if (count == 0) throw CudaError("cuBLASLt has no algorithm for a product");
        algorithm_ = found.algo;
        workspace_bytes_ = found.workspaceSize;
    }

    void run(const void* a, const void* b, void* c, void* workspace) const {
        const float one = 1, zero = 0;
        check_status(multiply_(handle_, desc_, &one, a, a_, b, b_, &zero, c, c_, c, c_, &algorithm_,
                               workspace, workspace_bytes_, nullptr),
                     "cublasLtMatmul");
    }

  private:
    void open() {
        const char* wanted = std::getenv("SHARDSCOPE_CUBLASLT");
        const std::string name =
            wanted && *wanted ? wanted : "libcublasLt.so." + std::to_string(CUBLAS_VER_MAJOR);
        void* library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (!library) throw CudaError(::dlerror());
        const auto find = [&](auto& function, const char* symbol) {
            function =
                reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, symbol));
            if (!function) throw CudaError(name + " has no " + symbol);
        };
        decltype(&cublasLtCreate) create = nullptr;
        find(create, "cublasLtCreate");
        find(multiply_, "cublasLtMatmul");
        find(heuristic_, "cublasLtMatmulAlgoGetHeuristic");
        find(desc_create_, "cublasLtMatmulDescCreate");
        find(desc_set_, "cublasLtMatmulDescSetAttribute");
        find(layout_create_, "cublasLtMatrixLayoutCreate");
        find(preference_create_, "cublasLtMatmulPreferenceCreate");
        find(preference_set_, "cublasLtMatmulPreferenceSetAttribute");
        static cublasLtHandle_t of_all = nullptr;
        if (!of_all) check_status(create(&of_all), "cublasLtCreate");
        handle_ = of_all;
    }
    template <class T>
    void set(cublasLtMatmulDescAttributes_t attribute, const T& value) {
        check_status(desc_set_(desc_, attribute, &value, sizeof value), "cublasLtMatmulDescSetAttribute");
    }

    decltype(&cublasLtMatmul) multiply_ = nullptr;
    decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic_ = nullptr;
    decltype(&cublasLtMatmulDescCreate) desc_create_ = nullptr;
    decltype(&cublasLtMatmulDescSetAttribute) desc_set_ = nullptr;
    decltype(&cublasLtMatrixLayoutCreate) layout_create_ = nullptr;
    decltype(&cublasLtMatmulPreferenceCreate) preference_create_ = nullptr;
    decltype(&cublasLtMatmulPreferenceSetAttribute) preference_set_ = nullptr;
    cublasLtHandle_t handle_ = nullptr;
    cublasLtMatmulDesc_t desc_ = nullptr;
    cublasLtMatrixLayout_t a_ = nullptr, b_ = nullptr, c_ = nullptr;
    cublasLtMatmulAlgo_t algorithm_ = {};
    std::size_t workspace_bytes_ = 0;
    bool biased_ = false;
};

struct LinearShape {
    std::int64_t rows, in, out;
    bool bias;
};

template <class T>
void bench_product(const char* type, plan::Kernel kernel, const char* what, const LinearShape& shape,
                   bool tf32) {
    const auto [rows, in, out, bias] = shape;
    plan::Op op;
    op.kind = plan::OpKind::kernel;
    op.own = plan::KernelOp{.kernel = kernel,
                            .dtype = sizeof(T) == 2 ? plan::DType::bf16 : plan::DType::fp32,
                            .dims = {rows, in, out}};
    op.phase = kernel == plan::Kernel::linear_forward ? plan::Phase::forward : plan::Phase::backward;
    op.args.resize(kernel == plan::Kernel::linear_forward && bias ? 4 : 3);

    const Buffer<T> x(static_cast<std::size_t>(rows * in), 1), y(static_cast<std::size_t>(rows * out), 1),
        weight(static_cast<std::size_t>(in * out), 0.05f), own_bias(static_cast<std::size_t>(out), 0.1f);
    std::vector<std::byte*> data;
    if (kernel == plan::Kernel::linear_forward)
        data = {y.bytes(), x.bytes(), weight.bytes(), own_bias.bytes()};
    if (kernel == plan::Kernel::linear_backward_input) data = {x.bytes(), y.bytes(), weight.bytes()};
    if (kernel == plan::Kernel::linear_backward_weight) data = {weight.bytes(), y.bytes(), x.bytes()};

    const Buffer<std::uint8_t> workspaces(2 * kWorkspace);
    Gemm gemm(tf32);
    gemm.use_workspaces(workspaces.bytes(), kWorkspace);
    const Matmul product = describe(op);
    Alone alone(product, op.kernel().dtype, tf32);
    alone.choose(product.bias > 0 ? data[product.bias] : nullptr);
    const std::vector<double> us =
        measure({[&] { gemm.launch(op, data, nullptr); },
                 [&] { alone.run(data[product.a], data[product.b], data[product.c], workspaces.bytes()); }});
    const double flop = 2.0 * static_cast<double>(rows) * static_cast<double>(in) * static_cast<double>(out);
    std::printf("gemm %s %s %lldx%lldx%lld  %.2f  %.2f  %.3f  %.1f\n", type, what,
                static_cast<long long>(rows), static_cast<long long>(in), static_cast<long long>(out), us[0],
                us[1], us[1] / us[0], flop / us[0] / 1e6);
}

// A GPT's widest Linear with its activation, computed in the matmul and separately; GELU's sum is kept.
template <class T>
void bench_activation(const char* type, plan::Kernel fused, const char* what, const DeviceContext& device) {
    constexpr std::int64_t kRows = 8192, kIn = 768, kOut = 3072;
    const bool gelu = fused == plan::Kernel::linear_gelu_forward;
    const kernels::ActivationKind kind = gelu ? kernels::ActivationKind::gelu : kernels::ActivationKind::relu;
    const Buffer<T> x(kRows * kIn, 1), weight(kIn * kOut, 0.05f), bias(kOut, 0.1f), sum(kRows * kOut),
        y(kRows * kOut);
    const Buffer<std::uint8_t> workspaces(2 * kWorkspace);
    Gemm gemm(false);
    gemm.use_workspaces(workspaces.bytes(), kWorkspace);
    const auto op_of = [&](plan::Kernel kernel, std::size_t args) {
        plan::Op op;
        op.kind = plan::OpKind::kernel;
        op.own = plan::KernelOp{.kernel = kernel,
                                .dtype = sizeof(T) == 2 ? plan::DType::bf16 : plan::DType::fp32,
                                .dims = {kRows, kIn, kOut}};
        op.phase = plan::Phase::forward;
        for (std::size_t i = 0; i < args; ++i) op.args.push_back({static_cast<plan::BufferId>(i), 0, 0, 0});
        return op;
    };
    std::vector<std::byte*> together = {y.bytes()}, apart = {sum.bytes()};
    if (gelu) together.push_back(sum.bytes());
    for (std::vector<std::byte*>* args : {&together, &apart})
        args->insert(args->end(), {x.bytes(), weight.bytes(), bias.bytes()});
    const plan::Op in_product = op_of(fused, together.size()),
                   product = op_of(plan::Kernel::linear_forward, apart.size());
    const std::vector<double> us =
        measure({[&] { gemm.launch(in_product, together, nullptr); },
                 [&] {
                     gemm.launch(product, apart, nullptr);
                     activation_forward<T>(kind, sum, y, y.size(), {}, device.stream);
                 }});
    std::printf("fused %s %s %lldx%lldx%lld  %.2f  %.2f  %.3f\n", type, what, static_cast<long long>(kRows),
                static_cast<long long>(kIn), static_cast<long long>(kOut), us[0], us[1], us[1] / us[0]);
}

void bench_activations(const DeviceContext& device) {
    bench_activation<Bf16>("bf16", plan::Kernel::linear_gelu_forward, "gelu", device);
    bench_activation<Bf16>("bf16", plan::Kernel::linear_relu_forward, "relu", device);
    bench_activation<float>("fp32", plan::Kernel::linear_gelu_forward, "gelu", device);
    bench_activation<float>("fp32", plan::Kernel::linear_relu_forward, "relu", device);
}

// The Linears of a GPT of 124 M parameters on 8 samples of 1024 tokens.
void bench_products() {
    constexpr std::int64_t kRows = 8192;
    const LinearShape shapes[] = {{kRows, 768, 2304, true},
                                  {kRows, 768, 768, true},
                                  {kRows, 768, 3072, true},
                                  {kRows, 3072, 768, true},
                                  {kRows, 768, 50257, false}};
    const std::pair<plan::Kernel, const char*> kernels[] = {
        {plan::Kernel::linear_forward, "forward"},
        {plan::Kernel::linear_backward_input, "backward_input"},
        {plan::Kernel::linear_backward_weight, "backward_weight"}};
    for (const auto& [kernel, what] : kernels) {
        for (const LinearShape& shape : shapes) {
            bench_product<Bf16>("bf16", kernel, what, shape, false);
            bench_product<float>("tf32", kernel, what, shape, true);
            bench_product<float>("fp32", kernel, what, shape, false);
        }
    }
}

// --- what only moves memory --------------------------------------------------------------------------------

void bench_memory(const DeviceContext& device) {
    double copied = 0;  // GB/s
    const auto row = [&](const char* what, std::size_t n, double bytes, const Call& call) {
        const double us = measure({call})[0], rate = bytes / us / 1e3;
        if (copied == 0) copied = rate;
        std::printf("memory %s %zu  %.2f  %.1f  %.3f\n", what, n, us, rate, rate / copied);
    };
    {
        const Buffer<float> from(std::size_t{1} << 28, 1), to(std::size_t{1} << 28);
        const std::size_t bytes = from.size() * sizeof(float);
        row("copy fp32", from.size(), 2.0 * static_cast<double>(bytes), [&] {
            check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, nullptr), "cudaMemcpyAsync");
        });
    }
    {  // as many segments as a GPT of 12 blocks has parameters, in one launch
        constexpr std::int64_t kParameters = 124'439'808, kSegments = 148;
        const Buffer<float> param(kParameters, 0.05f), grad(kParameters, 0.01f), m(kParameters),
            v(kParameters);
        std::vector<Range> ranges;
        for (std::int64_t i = 0; i < kSegments; ++i) {
            ranges.push_back({kParameters * i / kSegments, kParameters * (i + 1) / kSegments,
                              static_cast<std::int32_t>(i), true});
        }
        AdamSettings settings;
        settings.lr = 1e-4;
        settings.weight_decay = 0.01;
        row("adamw fp32", kParameters, 28.0 * kParameters,
            [&] { adam(device, ranges, param, grad, m, v, settings, true); });
    }
    {
        constexpr int kRows = 131072, kCols = 768;
        constexpr double kN = static_cast<double>(kRows) * kCols;
        const Buffer<Bf16> x(std::size_t{kRows} * kCols, 1), y(std::size_t{kRows} * kCols, 1),
            dx(std::size_t{kRows} * kCols), gamma(kCols, 1), beta(kCols, 1);
        const Buffer<float> mean(kRows), rstd(kRows);
        row("layer_norm_forward bf16", x.size(), 4 * kN,
            [&] { layer_norm_forward<Bf16>(device, x, gamma, beta, y, mean, rstd, kRows, kCols, 1e-5f); });
        row("layer_norm_backward_input bf16", x.size(), 6 * kN,
            [&] { layer_norm_backward_input<Bf16>(device, y, x, gamma, mean, rstd, dx, kRows, kCols); });
        row("gelu_forward bf16", x.size(), 4 * kN, [&] {
            activation_forward<Bf16>(kernels::ActivationKind::gelu, x, y, x.size(), {}, device.stream);
        });
        row("gelu_backward bf16", x.size(), 6 * kN, [&] {
            activation_backward<Bf16>(kernels::ActivationKind::gelu, y, x, dx, x.size(), {}, device.stream);
        });
    }
    {
        constexpr int kRows = 8192, kClasses = 50257;
        constexpr double kN = static_cast<double>(kRows) * kClasses;
        const Buffer<float> logits(std::size_t{kRows} * kClasses, 4), probabilities(logits.size());
        const Buffer<std::int32_t> targets(kRows);
        const Buffer<double> loss(1);
        row("cross_entropy_forward fp32", logits.size(), 8 * kN,
            [&] { cross_entropy_forward(device, logits, targets, probabilities, loss, kRows, kClasses); });
        row("cross_entropy_backward fp32", logits.size(), 8 * kN,
            [&] { cross_entropy_backward(device, probabilities, targets, logits, kRows, kClasses); });
    }
    {  // a resnet50's first batch norm and its widest, of 64 images; bytes as each kernel moves them
        for (const auto& [rows, columns] : {std::pair(802816, 64), std::pair(3136, 2048)}) {
            const auto n = static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns);
            const auto each = static_cast<std::size_t>(columns);
            const Buffer<float> x(n, 1), y(n, 1), dx(n), gamma(each, 1), beta(each, 1), mean(each),
                rstd(each), average(each), variance(each), dgamma(each), dbeta(each);
            const kernels::RunningStatistics running{average, variance, 0.1f};
            row("batch_norm_forward fp32", n, 16.0 * static_cast<double>(n), [&] {
                batch_norm_forward(device, x, gamma, beta, y, mean, rstd, running, rows, columns, 1e-5f);
            });
            row("batch_norm_backward fp32", n, 20.0 * static_cast<double>(n), [&] {
                batch_norm_backward(device, y, x, gamma, mean, rstd, dx, dgamma, dbeta, rows, columns);
            });
        }
    }
}

// --- attention ---------------------------------------------------------------------------------------------

template <class T>
void bench_attention(const char* type, int batch, int context, int heads, int features) {
    const std::int64_t width = std::int64_t{heads} * features, rows = std::int64_t{batch} * context;
    const auto n = static_cast<std::size_t>(rows * width);
    const Buffer<T> qkv(3 * n, 1), out(n), dout(n, 1), dqkv(3 * n);
    const Buffer<float> lse(static_cast<std::size_t>(rows * heads)),
        delta(static_cast<std::size_t>(rows * heads));
    const auto call = [&](plan::Kernel kernel, std::vector<std::byte*> data) {
        plan::Op op;
        op.kind = plan::OpKind::kernel;
        op.own = plan::KernelOp{.kernel = kernel,
                                .dtype = std::is_same_v<T, Fp16> ? plan::DType::fp16 : plan::DType::bf16,
                                .dims = {batch, context, heads, width, heads}};
        op.args.resize(data.size());
        return [op, data] { launch_attention(op, data, nullptr); };
    };
    // The matmuls with [context, features], of which the mask leaves half: 2 in the forward, 5 in the
    // backward.
    const double product = 2.0 * batch * heads * features * static_cast<double>(context) * context / 2;
    const auto row = [&](const char* what, double products, const Call& run) {
        const double us = measure({run})[0];
        std::printf("attention %s %s %dx%d %dx%d  %.2f  %.1f\n", type, what, batch, context, heads, features,
                    us, products * product / us / 1e6);
    };
    row("forward", 2, call(plan::Kernel::fused_attention_forward, {out.bytes(), lse.bytes(), qkv.bytes()}));
    row("backward", 5,
        call(plan::Kernel::fused_attention_backward,
             {dqkv.bytes(), delta.bytes(), dout.bytes(), qkv.bytes(), out.bytes(), lse.bytes()}));
}

// --- convolutions ------------------------------------------------------------------------------------------

void bench_convolution(const DeviceContext& device, const kernels::ConvolutionShape& shape) {
    const kernels::ImageShape& image = shape.image;
    const kernels::Window& window = shape.window;
    const std::size_t elements = shape.result().elements(), depth = static_cast<std::size_t>(shape.depth());
    const Buffer<float> x(image.elements(), 1), y(elements, 1), dx(image.elements()),
        w(static_cast<std::size_t>(shape.out) * depth, 0.05f), dw(w.size());
    const double flop = 2.0 * static_cast<double>(elements) * static_cast<double>(depth);
    const auto row = [&](const char* what, const Call& call) {
        const double us = measure({call})[0];
        std::printf("convolution %s %dx%dx%dx%d %d/%d %d  %.2f  %.1f\n", what, image.batch, image.height,
                    image.width, image.channels, window.size, window.stride, shape.out, us, flop / us / 1e6);
    };
    row("forward", [&] { convolution_forward(device, x, w, nullptr, y, shape); });
    row("backward_input", [&] { convolution_backward_input(device, y, w, dx, shape); });
    row("backward_weight", [&] { convolution_backward_weight(device, y, x, dw, shape); });
}

// The convolutions of a resnet50 that have a window, on 64 images: the first, one of each stage, one that
// halves the image.
void bench_convolutions(const DeviceContext& device) {
    for (const kernels::ConvolutionShape& shape :
         {kernels::ConvolutionShape{{64, 224, 224, 3}, 64, {7, 2, 3}},
          kernels::ConvolutionShape{{64, 56, 56, 64}, 64, {3, 1, 1}},
          kernels::ConvolutionShape{{64, 28, 28, 128}, 128, {3, 1, 1}},
          kernels::ConvolutionShape{{64, 28, 28, 256}, 256, {3, 2, 1}},
          kernels::ConvolutionShape{{64, 14, 14, 256}, 256, {3, 1, 1}},
          kernels::ConvolutionShape{{64, 7, 7, 512}, 512, {3, 1, 1}}})
        bench_convolution(device, shape);
}

int run(const std::vector<std::string>& parts) {
    int devices = 0;
    const cudaError_t result = cudaGetDeviceCount(&devices);
    if (result != cudaSuccess || devices == 0) {
        std::printf("not run: no CUDA device: %s\n",
                    result != cudaSuccess ? cudaGetErrorString(result) : "the driver counts none");
        return 77;
    }
    Gemm gemm(false);
    Workspace workspace(nullptr);
    const DeviceContext device{nullptr, workspace, gemm};
    for (const std::string& part : parts) {
        if (part == "gemm") {
            bench_products();
            bench_activations(device);
        }
        if (part == "memory") bench_memory(device);
        if (part == "attention") {
            bench_attention<Bf16>("bf16", 8, 1024, 12, 64);
            bench_attention<Bf16>("bf16", 8, 1024, 6, 128);
            bench_attention<Bf16>("bf16", 2, 8192, 12, 64);
            bench_attention<Bf16>("bf16", 2, 8192, 6, 128);
            bench_attention<Fp16>("fp16", 8, 1024, 12, 64);
        }
        if (part == "convolution") bench_convolutions(device);
        std::fflush(stdout);
    }
    return 0;
}

}  // namespace
}  // namespace shardscope::trainer::cuda

int main(int argc, char** argv) {
    const std::vector<std::string> known = {"gemm", "memory", "attention", "convolution"};
    std::vector<std::string> parts(argv + 1, argv + argc);
    for (const std::string& part : parts) {
        if (std::find(known.begin(), known.end(), part) != known.end()) continue;
        std::fprintf(stderr, "bench_cuda: \"%s\" is not a part; use gemm, memory, attention or convolution\n",
                     part.c_str());
        return 2;
    }
    try {
        return shardscope::trainer::cuda::run(parts.empty() ? known : parts);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "bench_cuda: %s\n", error.what());
        return 1;
    }
}
