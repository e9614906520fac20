// Attention to a key/value cache on a CUDA device: trainer/kernels/cached_attention.h. Bound by memory: the
// keys and values of all positions seen are read once per head.
#pragma once

#include <cstdint>

#include "trainer/cuda/device.h"
#include "trainer/cuda/types.h"
#include "trainer/kernels/cached_attention.h"

namespace shardscope::trainer::cuda {

template <class T>
void store_keys(const DeviceContext& device, const T* qkv, const std::int32_t* positions, T* cache,
                const kernels::CacheShape& shape);

// Head widths up to 256; throws std::invalid_argument above.
template <class T>
void cached_attention_forward(const DeviceContext& device, const T* qkv, const T* cache,
                              const std::int32_t* positions, T* out, const kernels::CacheShape& shape);

}  // namespace shardscope::trainer::cuda
