// Root-mean-square norm; see rms_norm.h.
#include "trainer/kernels/rms_norm.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "trainer/kernels/column_sums.h"
#include "trainer/kernels/elements.h"
#include "trainer/kernels/vectorize.h"
#include "trainer/kernels/workspace.h"

namespace shardscope::trainer::kernels {

template <class T>
SHARDSCOPE_VECTOR_CLONES void rms_norm_forward(const T* x, const T* gamma, T* y, float* rstd, int rows,
                                               int cols, float eps) {
    const std::size_t n = static_cast<std::size_t>(cols);
    float* buffers = workspace_of<float>(Purpose::rows, 3 * n);
    const float* factor = floats_of(gamma, n, buffers);
    for (std::size_t i = 0; i < static_cast<std::size_t>(rows); ++i) {
        const float* in = floats_of(x + i * n, n, buffers + n);
        float* out = floats_for(y + i * n, buffers + 2 * n);
        const float square =
            lane_sum(n, [=](std::size_t j) SHARDSCOPE_INLINE_LAMBDA { return in[j] * in[j]; }) /
            static_cast<float>(cols);
        const float inverse = 1.0f / std::sqrt(square + eps);
        for (std::size_t j = 0; j < n; ++j) out[j] = in[j] * inverse * factor[j];
        put(y + i * n, out, n);
        rstd[i] = inverse;
    }
}

// With xhat = x rstd and g = dy gamma:  dx = rstd (g - xhat mean(g xhat)), the mean over the row.
template <class T>
SHARDSCOPE_VECTOR_CLONES void rms_norm_backward_input(const T* dy, const T* x, const T* gamma,
                                                      const float* rstd, T* dx, int rows, int cols) {
    const std::size_t n = static_cast<std::size_t>(cols);
    float* buffers = workspace_of<float>(Purpose::rows, 4 * n);
    const float* factor = floats_of(gamma, n, buffers);
    for (std::size_t i = 0; i < static_cast<std::size_t>(rows); ++i) {
        const float* gradient = floats_of(dy + i * n, n, buffers + n);
        const float* in = floats_of(x + i * n, n, buffers + 2 * n);
        float* out = floats_for(dx + i * n, buffers + 3 * n);
        const float inverse = rstd[i];
        const float mean_gx = lane_sum(n,
                                       [=](std::size_t j) SHARDSCOPE_INLINE_LAMBDA {
                                           return gradient[j] * factor[j] * (in[j] * inverse);
                                       }) /
                              static_cast<float>(cols);
        for (std::size_t j = 0; j < n; ++j) {
            out[j] = (gradient[j] * factor[j] - in[j] * inverse * mean_gx) * inverse;
        }
        put(dx + i * n, out, n);
    }
}

template <class T>
SHARDSCOPE_VECTOR_CLONES void rms_norm_backward_parameters(const T* dy, const T* x, const float* rstd,
                                                           T* dgamma, int rows, int cols) {
    const auto columns = static_cast<std::size_t>(cols);
    sum_columns(static_cast<std::size_t>(rows), columns, dgamma,
                [=](std::size_t i, std::size_t first, std::size_t width, float* partial)
                    SHARDSCOPE_INLINE_LAMBDA {
                        float buffers[2][kColumnTile];
                        const float* gradient = floats_of(dy + i * columns + first, width, buffers[0]);
                        const float* in = floats_of(x + i * columns + first, width, buffers[1]);
                        const float inverse = rstd[i];
                        for (std::size_t j = 0; j < width; ++j) partial[j] += gradient[j] * (in[j] * inverse);
                    });
}

// NOLINTBEGIN(bugprone-macro-parentheses): a type takes none.
#define SHARDSCOPE_INSTANTIATE(T)                                                                    \
    template void rms_norm_forward(const T*, const T*, T*, float*, int, int, float);                 \
    template void rms_norm_backward_input(const T*, const T*, const T*, const float*, T*, int, int); \
    template void rms_norm_backward_parameters(const T*, const T*, const float*, T*, int, int);
// NOLINTEND(bugprone-macro-parentheses)
SHARDSCOPE_INSTANTIATE(float)
SHARDSCOPE_INSTANTIATE(Bf16)
SHARDSCOPE_INSTANTIATE(Fp16)

}  // namespace shardscope::trainer::kernels
