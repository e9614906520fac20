// Plain attention on a CUDA device: a warp owns a row (a query in the forward and for dq, a key for dk and
// dv) and reads its partners one by one. Simple, for any shape, bound by memory. Internal to
// trainer/cuda.
#pragma once

#include "trainer/cuda/attention_shape.h"
#include "trainer/cuda/types.h"

namespace shardscope::trainer::cuda {

// Keeps the probabilities; see trainer/kernels/attention.h. `scratch`: attention_backward_scratch floats,
// which hold one number per row for as many heads at a time as fit.
template <class T>
void launch_plain_forward(const T* qkv, T* out, T* probabilities, const AttentionSizes& sizes,
                          cudaStream_t stream);
template <class T>
void launch_plain_backward(const T* dout, const T* qkv, const T* probabilities, T* dqkv, float* scratch,
                           const AttentionSizes& sizes, cudaStream_t stream);

// The fused form in fp32, which keeps lse [B,H,T] and computes the probabilities again; see
// trainer/kernels/attention_fused.h. `delta` [B,H,T] is scratch.
void launch_recomputed_forward(const float* qkv, float* out, float* lse, const AttentionSizes& sizes,
                               cudaStream_t stream);
void launch_recomputed_backward(const float* dout, const float* qkv, const float* lse, float* dqkv,
                                float* delta, const AttentionSizes& sizes, cudaStream_t stream);

}  // namespace shardscope::trainer::cuda
