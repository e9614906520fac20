// Dropout; see dropout.h.
#include "trainer/kernels/dropout.h"

#include <algorithm>

#include "trainer/kernels/elements.h"
#include "trainer/kernels/random.h"
#include "trainer/kernels/vectorize.h"

namespace shardscope::trainer::kernels {
namespace {

template <class T>
SHARDSCOPE_VECTOR_CLONES void drop(const T* x, const float* chance, T* y, std::size_t n, float p,
                                   float kept_scale) {
    map(
        y, n,
        [=](float value, float drawn)
            SHARDSCOPE_INLINE_LAMBDA { return drawn < p ? 0.0f : value * kept_scale; },
        x, chance);
}

}  // namespace

template <class T>
void dropout(const T* x, T* y, std::size_t n, float p, std::uint64_t seed, std::uint64_t stream,
             std::uint64_t first_index) {
    constexpr std::size_t kPart = 1024;
    for (std::size_t first = 0; first < n; first += kPart) {
        const std::size_t count = std::min(kPart, n - first);
        float chance[kPart];
        fill_uniform(chance, count, seed, stream, first_index + first, 0.0f, 1.0f);
        drop(x + first, chance, y + first, count, p, 1.0f / (1.0f - p));
    }
}

template void dropout(const float*, float*, std::size_t, float, std::uint64_t, std::uint64_t, std::uint64_t);
template void dropout(const Bf16*, Bf16*, std::size_t, float, std::uint64_t, std::uint64_t, std::uint64_t);
template void dropout(const Fp16*, Fp16*, std::size_t, float, std::uint64_t, std::uint64_t, std::uint64_t);

}  // namespace shardscope::trainer::kernels
