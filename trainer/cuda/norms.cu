// The norms along rows: one block per row; see norms.h and rows.h. The gradients of their parameters, sums
// over the rows, are in norm_parameters.cu.
#include "trainer/cuda/norms.h"
#include "trainer/cuda/rows.h"

namespace shardscope::trainer::cuda {
namespace {

// kLayer: layer norm, with a mean and beta; else RMS norm.
template <class T, int kPacks, bool kLayer>
__global__ void __launch_bounds__(kRowThreads)
    norm_forward_kernel(const T* x, const T* gamma, const T* beta, T* y, float* mean, float* rstd, int cols,
                        float eps, bool packed) {
    constexpr int kCount = kPackOf<T>;
    const std::size_t begin = std::size_t{blockIdx.x} * static_cast<std::size_t>(cols);
    const Row<T, kPacks> row(x + begin, cols, packed);
    const auto mean_of = [&](auto f) {
        float sum = 0.0f;
        each_pack<kPacks, kCount>(cols, [&](int k, int first) {
            float in[kCount];
            row.get(k, first, in);
#pragma unroll
            for (int i = 0; i < kCount; ++i) sum += first + i < cols ? f(in[i]) : 0.0f;
        });
        return block_sum(sum) / static_cast<float>(cols);
    };
    float center = 0.0f;
    if constexpr (kLayer) center = mean_of([](float value) { return value; });
    const float variance = mean_of([=](float value) { return (value - center) * (value - center); });
    const float inverse = 1.0f / sqrtf(variance + eps);
    each_pack<kPacks, kCount>(cols, [&](int k, int first) {
        float in[kCount], factor[kCount];
        row.get(k, first, in);
        load_part(gamma, first, cols, packed, factor);
#pragma unroll
        for (int i = 0; i < kCount; ++i) in[i] = (in[i] - center) * inverse * factor[i];
        if constexpr (kLayer) {
            load_part(beta, first, cols, packed, factor);
#pragma unroll
            for (int i = 0; i < kCount; ++i) in[i] += factor[i];
        }
        store_part(y + begin, first, cols, packed, in);
    });
    if (threadIdx.x != 0) return;
    if constexpr (kLayer) mean[blockIdx.x] = center;
    rstd[blockIdx.x] = inverse;
}

// With xhat = (x - mean) rstd and g = dy gamma:  dx = rstd (g - mean(g) - xhat mean(g xhat)), means over the
// row; RMS norm has no mean(g).
template <class T, int kPacks, bool kLayer>
__global__ void __launch_bounds__(kRowThreads)
    norm_backward_kernel(const T* dy, const T* x, const T* gamma, const float* mean, const float* rstd, T* dx,
                         int cols, bool packed) {
    constexpr int kCount = kPackOf<T>;
    const std::size_t begin = std::size_t{blockIdx.x} * static_cast<std::size_t>(cols);
    const Row<T, kPacks> gradients(dy + begin, cols, packed), inputs(x + begin, cols, packed);
    const float center = kLayer ? mean[blockIdx.x] : 0.0f;
    const float inverse = rstd[blockIdx.x];
    // Gets g and xhat of a pack. Beyond the row g is 0, because dy is.
    const auto get = [&](int k, int first, float(&g)[kCount], float(&xhat)[kCount]) {
        float factor[kCount];
        gradients.get(k, first, g);
        inputs.get(k, first, xhat);
        load_part(gamma, first, cols, packed, factor);
#pragma unroll
        for (int i = 0; i < kCount; ++i) {
            g[i] *= factor[i];
            xhat[i] = (xhat[i] - center) * inverse;
        }
    };
    float sum_g = 0.0f, sum_gx = 0.0f;
    each_pack<kPacks, kCount>(cols, [&](int k, int first) {
        float g[kCount], xhat[kCount];
        get(k, first, g, xhat);
#pragma unroll
        for (int i = 0; i < kCount; ++i) {
            sum_g += g[i];
            sum_gx += g[i] * xhat[i];
        }
    });
    const float mean_g = kLayer ? block_sum(sum_g) / static_cast<float>(cols) : 0.0f;
    const float mean_gx = block_sum(sum_gx) / static_cast<float>(cols);
    each_pack<kPacks, kCount>(cols, [&](int k, int first) {
        float g[kCount], xhat[kCount];
        get(k, first, g, xhat);
#pragma unroll
        for (int i = 0; i < kCount; ++i) g[i] = (g[i] - mean_g - xhat[i] * mean_gx) * inverse;
        store_part(dx + begin, first, cols, packed, g);
    });
}

template <class T, bool kLayer>
void norm_forward(const DeviceContext& device, const T* x, const T* gamma, const T* beta, T* y, float* mean,
                  float* rstd, int rows, int cols, float eps) {
    const RowForm form = row_form<T>(cols);
    const bool packed =
        cols % kPackOf<T> == 0 && is_aligned(x) && is_aligned(gamma) && is_aligned(beta) && is_aligned(y);
    const auto kernel = form.packs == 1       ? &norm_forward_kernel<T, 1, kLayer>
                        : form.packs == kHeld ? &norm_forward_kernel<T, kHeld, kLayer>
                                              : &norm_forward_kernel<T, 0, kLayer>;
    launch(kernel, static_cast<unsigned>(rows), form.threads, 0, device.stream, x, gamma, beta, y, mean, rstd,
           cols, eps, packed);
}

template <class T, bool kLayer>
void norm_backward(const DeviceContext& device, const T* dy, const T* x, const T* gamma, const float* mean,
                   const float* rstd, T* dx, int rows, int cols) {
    const RowForm form = row_form<T>(cols);
    const bool packed =
        cols % kPackOf<T> == 0 && is_aligned(dy) && is_aligned(x) && is_aligned(gamma) && is_aligned(dx);
    const auto kernel = form.packs == 1       ? &norm_backward_kernel<T, 1, kLayer>
                        : form.packs == kHeld ? &norm_backward_kernel<T, kHeld, kLayer>
                                              : &norm_backward_kernel<T, 0, kLayer>;
    launch(kernel, static_cast<unsigned>(rows), form.threads, 0, device.stream, dy, x, gamma, mean, rstd, dx,
           cols, packed);
}

}  // namespace

template <class T>
void layer_norm_forward(const DeviceContext& device, const T* x, const T* gamma, const T* beta, T* y,
                        float* mean, float* rstd, int rows, int cols, float eps) {
    norm_forward<T, true>(device, x, gamma, beta, y, mean, rstd, rows, cols, eps);
}

template <class T>
void layer_norm_backward_input(const DeviceContext& device, const T* dy, const T* x, const T* gamma,
                               const float* mean, const float* rstd, T* dx, int rows, int cols) {
    norm_backward<T, true>(device, dy, x, gamma, mean, rstd, dx, rows, cols);
}

template <class T>
void rms_norm_forward(const DeviceContext& device, const T* x, const T* gamma, T* y, float* rstd, int rows,
                      int cols, float eps) {
    norm_forward<T, false>(device, x, gamma, nullptr, y, nullptr, rstd, rows, cols, eps);
}

template <class T>
void rms_norm_backward_input(const DeviceContext& device, const T* dy, const T* x, const T* gamma,
                             const float* rstd, T* dx, int rows, int cols) {
    norm_backward<T, false>(device, dy, x, gamma, nullptr, rstd, dx, rows, cols);
}

// NOLINTBEGIN(bugprone-macro-parentheses): a type takes none.
#define SHARDSCOPE_INSTANTIATE(T)                                                                            \
    template void layer_norm_forward(const DeviceContext&, const T*, const T*, const T*, T*, float*, float*, \
                                     int, int, float);                                                       \
    template void layer_norm_backward_input(const DeviceContext&, const T*, const T*, const T*,              \
                                            const float*, const float*, T*, int, int);                       \
    template void rms_norm_forward(const DeviceContext&, const T*, const T*, T*, float*, int, int, float);   \
    template void rms_norm_backward_input(const DeviceContext&, const T*, const T*, const T*, const float*,  \
                                          T*, int, int);
// NOLINTEND(bugprone-macro-parentheses)
SHARDSCOPE_INSTANTIATE(float)
SHARDSCOPE_INSTANTIATE(Bf16)
SHARDSCOPE_INSTANTIATE(Fp16)

}  // namespace shardscope::trainer::cuda
