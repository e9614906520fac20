// Sums and copies; see elementwise.h.
#include "trainer/kernels/elementwise.h"

#include <algorithm>
#include <cstring>

#include "trainer/kernels/vectorize.h"

namespace shardscope::trainer::kernels {

SHARDSCOPE_VECTOR_CLONES
void add(const float* a, const float* b, float* y, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) y[i] = a[i] + b[i];
}

SHARDSCOPE_VECTOR_CLONES
void accumulate(const float* x, float* y, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) y[i] += x[i];
}

SHARDSCOPE_VECTOR_CLONES
void scale(float* x, float factor, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) x[i] *= factor;
}

void copy(const float* in, float* out, std::size_t n) {
    if (in != out && n > 0) std::memcpy(out, in, n * sizeof(float));
}

SHARDSCOPE_VECTOR_CLONES
void sum_ranks(const float* const* inputs, int ranks, float* out, std::size_t n, float factor) {
    constexpr std::size_t kBlock = 512;  // partial sums stay in the L1 cache while the ranks go by
    for (std::size_t first = 0; first < n; first += kBlock) {
        const std::size_t count = std::min(kBlock, n - first);
        float sum[kBlock];
        std::memcpy(sum, inputs[0] + first, count * sizeof(float));
        for (int r = 1; r < ranks; ++r) {
            const float* in = inputs[r] + first;
            for (std::size_t i = 0; i < count; ++i) sum[i] += in[i];
        }
        for (std::size_t i = 0; i < count; ++i) out[first + i] = sum[i] * factor;
    }
}

}  // namespace shardscope::trainer::kernels
