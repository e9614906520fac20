// Initial values on a CUDA device: fill_normal and fill_uniform of trainer/kernels/random.h, bit for bit.
// fp32. Bound by arithmetic (ten rounds per four elements); 4 bytes are written per element.
#pragma once

#include <cstddef>
#include <cstdint>

#include "trainer/cuda/device.h"

namespace shardscope::trainer::cuda {

// Which part of which random sequence.
struct Sequence {
    std::uint64_t seed = 0, stream = 0, first_index = 0;
};

// out[i] = mean + deviation * normal(seed, stream, first_index + i)
void fill_normal(const DeviceContext& device, float* out, std::size_t n, const Sequence& sequence, float mean,
                 float deviation);

// out[i] = low + (high - low) * uniform(seed, stream, first_index + i)
void fill_uniform(const DeviceContext& device, float* out, std::size_t n, const Sequence& sequence, float low,
                  float high);

void fill_constant(const DeviceContext& device, float* out, std::size_t n, float value);

}  // namespace shardscope::trainer::cuda
