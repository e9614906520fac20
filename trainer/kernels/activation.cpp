// The loops of activation.h; the arithmetic on an element is in activation_formulas.h.
#include "trainer/kernels/activation.h"

#include <algorithm>

#include "trainer/kernels/activation_formulas.h"
#include "trainer/kernels/elements.h"
#include "trainer/kernels/vectorize.h"

namespace shardscope::trainer::kernels {
namespace {

struct Cpu {
    static SHARDSCOPE_INLINE float sigmoid(float x) { return 1.0f / (1.0f + exp_in_range(-x)); }
};
using GatedSilu = Silu<Cpu>;

}  // namespace

// NOLINTBEGIN(bugprone-macro-parentheses): names take none.
#define ACTIVATION(name, Formula, ...)                                                                \
    template <class T>                                                                                \
    SHARDSCOPE_VECTOR_CLONES void name##_forward(const T* x, T* y, std::size_t n) {                   \
        map(y, n, Formula<Cpu>(), x);                                                                 \
    }                                                                                                 \
    template <class T>                                                                                \
    SHARDSCOPE_VECTOR_CLONES void name##_backward(const T* dy, const T* kept, T* dx, std::size_t n) { \
        map(dx, n, Formula<Cpu>(), dy, kept);                                                         \
    }                                                                                                 \
    template void name##_forward(const float*, float*, std::size_t);                                  \
    template void name##_forward(const Bf16*, Bf16*, std::size_t);                                    \
    template void name##_forward(const Fp16*, Fp16*, std::size_t);                                    \
    template void name##_backward(const float*, const float*, float*, std::size_t);                   \
    template void name##_backward(const Fp16*, const Fp16*, Fp16*, std::size_t);                      \
    template void name##_backward(const Bf16*, const Bf16*, Bf16*, std::size_t);
// NOLINTEND(bugprone-macro-parentheses)
#include "trainer/kernels/activations.def"
#undef ACTIVATION

template <class T>
SHARDSCOPE_VECTOR_CLONES void silu_mul_forward(const T* gate, const T* up, T* y, std::size_t n) {
    map(
        y, n,
        [](float g, float u)
            SHARDSCOPE_INLINE_LAMBDA { return GatedSilu::value(g, GatedSilu::share(g)) * u; },
        gate, up);
}

template <class T>
SHARDSCOPE_VECTOR_CLONES void silu_mul_backward(const T* dy, const T* gate, const T* up, T* dgate, T* dup,
                                                std::size_t n) {
    constexpr std::size_t kPart = 512;  // both results part by part, so that inputs are read once
    for (std::size_t first = 0; first < n; first += kPart) {
        const std::size_t count = std::min(kPart, n - first);
        float share[kPart];
        float result[kPart];
        const float* s = share;
        map(
            share, count, [](float g) SHARDSCOPE_INLINE_LAMBDA { return GatedSilu::share(g); }, gate + first);
        map(
            result, count,
            [](float d, float g, float u, float part)
                SHARDSCOPE_INLINE_LAMBDA { return d * u * GatedSilu::slope(g, part); },
            dy + first, gate + first, up + first, s);
        map(
            dup + first, count,
            [](float d, float g, float part)
                SHARDSCOPE_INLINE_LAMBDA { return d * GatedSilu::value(g, part); },
            dy + first, gate + first, s);
        const float* made = result;
        map(
            dgate + first, count, [](float value) SHARDSCOPE_INLINE_LAMBDA { return value; }, made);
    }
}

// NOLINTBEGIN(bugprone-macro-parentheses): a type takes none.
#define SHARDSCOPE_INSTANTIATE(T)                                        \
    template void silu_mul_forward(const T*, const T*, T*, std::size_t); \
    template void silu_mul_backward(const T*, const T*, const T*, T*, T*, std::size_t);
// NOLINTEND(bugprone-macro-parentheses)
SHARDSCOPE_INSTANTIATE(float)
SHARDSCOPE_INSTANTIATE(Bf16)
SHARDSCOPE_INSTANTIATE(Fp16)

}  // namespace shardscope::trainer::kernels
