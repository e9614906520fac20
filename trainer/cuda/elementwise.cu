// Element-wise sums, products and conversions; see elementwise.h.
#include "trainer/cuda/elementwise.h"
#include "trainer/cuda/map.h"

namespace shardscope::trainer::cuda {
namespace {

struct Sum {
    __device__ float operator()(float a, float b) const { return a + b; }
};
struct Difference {
    __device__ float operator()(float a, float b) const { return a - b; }
};
struct Product {
    float factor;
    __device__ float operator()(float x) const { return x * factor; }
};
struct ProductBy {
    const float* factor;
    __device__ float operator()(float x) const { return x * __ldg(factor); }
};
struct Same {
    __device__ float operator()(float x) const { return x; }
};

}  // namespace

template <class T>
void add(const DeviceContext& device, const T* a, const T* b, T* y, std::size_t n) {
    map(device, y, n, Sum{}, a, b);
}

template <class X, class T>
void accumulate(const DeviceContext& device, const X* x, T* y, std::size_t n) {
    const T* before = y;
    map(device, y, n, Sum{}, before, x);
}

template <class T>
void subtract(const DeviceContext& device, const T* x, T* y, std::size_t n) {
    const T* before = y;
    map(device, y, n, Difference{}, before, x);
}

template <class T>
void scale(const DeviceContext& device, T* x, float factor, std::size_t n) {
    const T* before = x;
    map(device, x, n, Product{factor}, before);
}

template <class T>
void scale_by(const DeviceContext& device, T* x, const float* factor, std::size_t n) {
    const T* before = x;
    map(device, x, n, ProductBy{factor}, before);
}

template <class X, class T>
void cast(const DeviceContext& device, const X* x, T* y, std::size_t n) {
    map(device, y, n, Same{}, x);
}

// NOLINTBEGIN(bugprone-macro-parentheses): a type takes none.
#define SHARDSCOPE_INSTANTIATE(T)                                                 \
    template void add(const DeviceContext&, const T*, const T*, T*, std::size_t); \
    template void subtract(const DeviceContext&, const T*, T*, std::size_t);      \
    template void scale(const DeviceContext&, T*, float, std::size_t);            \
    template void scale_by(const DeviceContext&, T*, const float*, std::size_t);
// NOLINTEND(bugprone-macro-parentheses)
SHARDSCOPE_INSTANTIATE(float)
SHARDSCOPE_INSTANTIATE(Bf16)
SHARDSCOPE_INSTANTIATE(Fp16)
#undef SHARDSCOPE_INSTANTIATE

template void accumulate(const DeviceContext&, const float*, float*, std::size_t);
// NOLINTBEGIN(bugprone-macro-parentheses): a type takes none.
#define SHARDSCOPE_INSTANTIATE(T)                                                  \
    template void cast(const DeviceContext&, const float*, T*, std::size_t);       \
    template void cast(const DeviceContext&, const T*, float*, std::size_t);       \
    template void accumulate(const DeviceContext&, const T*, float*, std::size_t); \
    template void accumulate(const DeviceContext&, const float*, T*, std::size_t); \
    template void accumulate(const DeviceContext&, const T*, T*, std::size_t);
// NOLINTEND(bugprone-macro-parentheses)
SHARDSCOPE_INSTANTIATE(Bf16)
SHARDSCOPE_INSTANTIATE(Fp16)

}  // namespace shardscope::trainer::cuda
