// See initialize.h. A thread computes the four elements of one counter and writes those that are requested.
#include "trainer/cuda/initialize.h"
#include "trainer/cuda/map.h"
#include "trainer/cuda/random.h"

namespace shardscope::trainer::cuda {
namespace {

struct Normal {
    float mean, deviation;
    __device__ void operator()(const PhiloxWords& words, float (&made)[4]) const {
#pragma unroll
        for (int k = 0; k < 4; k += 2) {
            box_muller(words.at[k], words.at[k + 1], made[k], made[k + 1]);
            made[k] = mean + deviation * made[k];
            made[k + 1] = mean + deviation * made[k + 1];
        }
    }
};

struct Uniform {
    float low, range;
    __device__ void operator()(const PhiloxWords& words, float (&made)[4]) const {
#pragma unroll
        for (int k = 0; k < 4; ++k) made[k] = low + range * unit_interval(words.at[k]);
    }
};

template <class Make>
__global__ void __launch_bounds__(kMapThreads)
    fill_kernel(float* out, std::size_t n, Sequence sequence, Make make) {
    const std::uint64_t counter =
        sequence.first_index / 4 + std::uint64_t{blockIdx.x} * kMapThreads + threadIdx.x;
    float made[4];
    make(philox(sequence.seed, sequence.stream, counter), made);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        // Elements before first_index wrap around to numbers that are not below n.
        const std::uint64_t i = 4 * counter + k - sequence.first_index;
        if (i < n) out[i] = made[k];
    }
}

template <class Make>
void fill(const DeviceContext& device, float* out, std::size_t n, const Sequence& sequence, Make make) {
    const std::size_t counters = (sequence.first_index % 4 + n + 3) / 4;
    launch(&fill_kernel<Make>, blocks_for(counters, kMapThreads), kMapThreads, 0, device.stream, out, n,
           sequence, make);
}

__global__ void __launch_bounds__(kMapThreads) fill_constant_kernel(float* out, std::size_t n, float value) {
    const std::size_t i = std::size_t{blockIdx.x} * kMapThreads + threadIdx.x;
    if (i < n) out[i] = value;
}

}  // namespace

void fill_normal(const DeviceContext& device, float* out, std::size_t n, const Sequence& sequence, float mean,
                 float deviation) {
    fill(device, out, n, sequence, Normal{mean, deviation});
}

void fill_uniform(const DeviceContext& device, float* out, std::size_t n, const Sequence& sequence, float low,
                  float high) {
    fill(device, out, n, sequence, Uniform{low, high - low});
}

void fill_constant(const DeviceContext& device, float* out, std::size_t n, float value) {
    launch(&fill_constant_kernel, blocks_for(n, kMapThreads), kMapThreads, 0, device.stream, out, n, value);
}

}  // namespace shardscope::trainer::cuda
