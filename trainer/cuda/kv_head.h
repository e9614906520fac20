// The head of keys and values that ranks of a tensor group share, on a CUDA device:
// trainer/kernels/kv_head.h. A thread for each element of the parts. Bound by memory: each element is read
// once and written once.
#pragma once

#include "trainer/cuda/device.h"
#include "trainer/cuda/types.h"
#include "trainer/kernels/kv_head.h"

namespace shardscope::trainer::cuda {

template <class T>
void take_kv_head(const DeviceContext& device, const T* parts, T* head, const kernels::KvParts& shape);

template <class T>
void spread_kv_head(const DeviceContext& device, const T* head, T* parts, const kernels::KvParts& shape);

}  // namespace shardscope::trainer::cuda
