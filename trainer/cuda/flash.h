// Fused causal attention in Bf16 or Fp16 (T) on a CUDA device, tile by tile: the launches. FlashAttention-2
// (Dao, 2023, arXiv:2307.08691) with the backward cut in two so that every gradient has one owner: a kernel
// over blocks of queries computes dq, one over blocks of keys computes dk and dv, and both recompute the
// scores (7 matmuls of tiles; a backward that adds up dq by atomics needs 5). Matmuls are on tensor cores,
// with fp32 sums. Heads of up to 256 features. Internal to trainer/cuda.
#pragma once

#include "trainer/cuda/attention_shape.h"
#include "trainer/cuda/types.h"

namespace shardscope::trainer::cuda {

template <class T>
struct FlashForward {
    const T* qkv;  // [B,T,C+2Gd]
    T* out;        // [B,T,C]
    float* lse;    // [B,H,T]
};

template <class T>
struct FlashBackward {
    const T *qkv, *dout;
    const float *lse, *delta;  // [B,H,T]
    T* dqkv;
};

template <class T>
void launch_flash(const FlashForward<T>& tensors, const AttentionSizes& sizes, cudaStream_t stream);
template <class T>
void launch_flash(const FlashBackward<T>& tensors, const AttentionSizes& sizes, cudaStream_t stream);

}  // namespace shardscope::trainer::cuda
