// Causal attention, head after head; see attention.h. The T x T matrices are worked through in strips of
// rows, and a strip's products stop at the diagonal: about half of the square is never computed.
#include "trainer/kernels/attention.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "trainer/kernels/blas.h"
#include "trainer/kernels/vectorize.h"

namespace shardscope::trainer::kernels {
namespace {

constexpr int kStrip = 64;  // rows; the last strip may be shorter

// Rows [first, last) of a head's scores become probabilities in place: softmax up to the diagonal, 0 beyond.
SHARDSCOPE_VECTOR_CLONES
void softmax_strip(float* scores, int first, int last, int context) {
    for (int t = first; t < last; ++t) {
        float* row = scores + static_cast<std::size_t>(t) * context;
        const std::size_t seen = static_cast<std::size_t>(t) + 1;
        softmax_row(row, row, seen);
        std::memset(row + seen, 0, (static_cast<std::size_t>(context) - seen) * sizeof(float));
    }
}

// Rows [first, last): the gradient of the probabilities becomes that of the scores, in place:
// ds = p (dp - sum of p dp). Beyond the diagonal p is 0, so ds is set to 0 as far as the strip's products
// read it.
SHARDSCOPE_VECTOR_CLONES
void softmax_backward_strip(const float* probabilities, float* gradient, int first, int last, int context) {
    for (int t = first; t < last; ++t) {
        const float* p = probabilities + static_cast<std::size_t>(t) * context;
        float* g = gradient + static_cast<std::size_t>(t) * context;
        const std::size_t seen = static_cast<std::size_t>(t) + 1;
        const float sum = lane_sum(seen, [=](std::size_t j) SHARDSCOPE_INLINE_LAMBDA { return p[j] * g[j]; });
        for (std::size_t j = 0; j < seen; ++j) g[j] = p[j] * (g[j] - sum);
        std::memset(g + seen, 0, (static_cast<std::size_t>(last) - seen) * sizeof(float));
    }
}

}  // namespace

void attention_forward(const float* qkv, float* out, float* probabilities, int batch, int context, int width,
                       int heads) {
    const Blas& blas = Blas::get();
    const int d = width / heads;
    const float scale = 1.0f / std::sqrt(static_cast<float>(d));
    const int stride = 3 * width;
    const std::size_t square = static_cast<std::size_t>(context) * context;
    for (int b = 0; b < batch; ++b) {
        for (int h = 0; h < heads; ++h) {
            const float* q = qkv + static_cast<std::size_t>(b) * context * stride + h * d;
            const float* k = q + width;
            const float* v = k + width;
            float* o = out + static_cast<std::size_t>(b) * context * width + h * d;
            float* p = probabilities + (static_cast<std::size_t>(b) * heads + h) * square;
            for (int first = 0; first < context; first += kStrip) {
                const int last = std::min(first + kStrip, context);
                const int rows = last - first;
                float* strip = p + static_cast<std::size_t>(first) * context;
                blas.sgemm(false, true, rows, last, d, scale, q + static_cast<std::size_t>(first) * stride,
                           stride, k, stride, 0.0f, strip, context);
                softmax_strip(p, first, last, context);
                blas.sgemm(false, false, rows, d, last, 1.0f, strip, context, v, stride, 0.0f,
                           o + static_cast<std::size_t>(first) * width, width);
            }
        }
    }
}

std::size_t attention_backward_scratch(int context) {
    return static_cast<std::size_t>(context) * context;
}

// dv = pᵀ do;  dp = do vᵀ;  ds as above;  dq = ds k / sqrt(d);  dk = dsᵀ q / sqrt(d).
void attention_backward(const float* dout, const float* qkv, const float* probabilities, float* dqkv,
                        float* scratch, int batch, int context, int width, int heads) {
    const Blas& blas = Blas::get();
    const int d = width / heads;
    const float scale = 1.0f / std::sqrt(static_cast<float>(d));
    const int stride = 3 * width;
    const std::size_t square = static_cast<std::size_t>(context) * context;
    for (int b = 0; b < batch; ++b) {
        for (int h = 0; h < heads; ++h) {
            const std::size_t head = static_cast<std::size_t>(b) * context * stride + h * d;
            const float* q = qkv + head;
            const float* k = q + width;
            const float* v = k + width;
            float* dq = dqkv + head;
            float* dk = dq + width;
            float* dv = dk + width;
            const float* go = dout + static_cast<std::size_t>(b) * context * width + h * d;
            const float* p = probabilities + (static_cast<std::size_t>(b) * heads + h) * square;
            for (int first = 0; first < context; first += kStrip) {  // strips of queries
                const int last = std::min(first + kStrip, context);
                const int rows = last - first;
                float* strip = scratch + static_cast<std::size_t>(first) * context;
                blas.sgemm(false, true, rows, last, d, 1.0f, go + static_cast<std::size_t>(first) * width,
                           width, v, stride, 0.0f, strip, context);
                softmax_backward_strip(p, scratch, first, last, context);
                blas.sgemm(false, false, rows, d, last, scale, strip, context, k, stride, 0.0f,
                           dq + static_cast<std::size_t>(first) * stride, stride);
            }
            for (int first = 0; first < context; first += kStrip) {  // strips of keys: seen from `first` on
                const int last = std::min(first + kStrip, context);
                const int columns = last - first;
                const int rows = context - first;
                const std::size_t corner = static_cast<std::size_t>(first) * context + first;
                blas.sgemm(true, false, columns, d, rows, scale, scratch + corner, context,
                           q + static_cast<std::size_t>(first) * stride, stride, 0.0f,
                           dk + static_cast<std::size_t>(first) * stride, stride);
                blas.sgemm(true, false, columns, d, rows, 1.0f, p + corner, context,
                           go + static_cast<std::size_t>(first) * width, width, 0.0f,
                           dv + static_cast<std::size_t>(first) * stride, stride);
            }
        }
    }
}

}  // namespace shardscope::trainer::kernels
