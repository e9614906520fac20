// Plain causal attention on a CUDA device, which keeps its probabilities: for comparison with the fused one
// (flash.h) and for heads that are too wide for that. A warp owns a row (a query in the forward and for dq, a
// key for dk and dv) and reads its partners one by one: simple, any shape, bound by memory. Internal to
// trainer/cuda.
#pragma once

#include "trainer/cuda/attention_shape.h"
#include "trainer/cuda/types.h"

namespace shardscope::trainer::cuda {

// See trainer/kernels/attention.h. `scratch`: attention_backward_scratch floats; it holds one number per row,
// of as many heads at a time as fit.
template <class T>
void launch_plain_forward(const T* qkv, T* out, T* probabilities, const AttentionSizes& sizes,
                          cudaStream_t stream);
template <class T>
void launch_plain_backward(const T* dout, const T* qkv, const T* probabilities, T* dqkv, float* scratch,
                           const AttentionSizes& sizes, cudaStream_t stream);

}  // namespace shardscope::trainer::cuda
