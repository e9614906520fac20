// See dropout.h. A thread computes one pack, from the words of two or three counters (float: one or two).
#include "trainer/cuda/dropout.h"
#include "trainer/cuda/map.h"
#include "trainer/cuda/random.h"

namespace shardscope::trainer::cuda {
namespace {

template <class T>
__global__ void __launch_bounds__(kMapThreads)
    dropout_kernel(const T* x, T* y, std::size_t n, float p, float kept_scale, Sequence sequence,
                   bool packed) {
    constexpr int kCount = kPackOf<T>;
    const std::size_t first = (std::size_t{blockIdx.x} * kMapThreads + threadIdx.x) * kCount;
    if (first >= n) return;
    const bool whole = packed && first + kCount <= n;
    float values[kCount];
    if (whole) {
        load_floats(x + first, values);
    } else {
#pragma unroll
        for (int i = 0; i < kCount; ++i) values[i] = first + i < n ? to_float(x[first + i]) : 0.0f;
    }
    const std::uint64_t index = sequence.first_index + first;
    const auto skipped = static_cast<int>(index % 4);  // words of the first counter, as many in all threads
#pragma unroll
    for (int part = 0; part <= kCount / 4; ++part) {
        if (part == kCount / 4 && skipped == 0) break;
        const PhiloxWords words = philox(sequence.seed, sequence.stream, index / 4 + part);
#pragma unroll
        for (int i = 0; i < kCount; ++i) {
            const int word = skipped + i - 4 * part;
            if (word < 0 || word > 3) continue;
            const std::uint32_t bits =
                word < 2 ? (word == 0 ? words.at[0] : words.at[1]) : (word == 2 ? words.at[2] : words.at[3]);
            values[i] = unit_interval(bits) < p ? 0.0f : values[i] * kept_scale;
        }
    }
    if (whole) {
        store_floats(y + first, values);
    } else {
#pragma unroll
        for (int i = 0; i < kCount; ++i) {
            if (first + i < n) y[first + i] = rounded<T>(values[i]);
        }
    }
}

}  // namespace

template <class T>
void dropout(const DeviceContext& device, const T* x, T* y, std::size_t n, float p,
             const Sequence& sequence) {
    launch(&dropout_kernel<T>, blocks_for(n, kMapThreads * kPackOf<T>), kMapThreads, 0, device.stream, x, y,
           n, p, 1.0f / (1.0f - p), sequence, is_aligned(x) && is_aligned(y));
}

template void dropout(const DeviceContext&, const float*, float*, std::size_t, float, const Sequence&);
template void dropout(const DeviceContext&, const Bf16*, Bf16*, std::size_t, float, const Sequence&);
template void dropout(const DeviceContext&, const Fp16*, Fp16*, std::size_t, float, const Sequence&);

}  // namespace shardscope::trainer::cuda
