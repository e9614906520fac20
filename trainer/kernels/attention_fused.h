// Self-attention that never holds the matrix of scores: the function and the shapes of attention.h, computed
// tile by tile. The forward walks over the keys with a running maximum and sum for each query
// (online softmax) and keeps one number per row, the logarithm of that sum; the backward recomputes each
// tile's probabilities from it. Dao et al.: "FlashAttention", 2022, arXiv:2205.14135; Dao:
// "FlashAttention-2", 2023, arXiv:2307.08691. T is float, Bf16 or Fp16 (arithmetic in fp32), thread safe.
//   lse    [B,H,T]  log of the sum over seen keys of e^(q k / sqrt(d)), fp32
//   delta  [B,H,T]  sum over a head's features of dout * out, fp32: the backward's scratch
#pragma once

#include "trainer/kernels/attention.h"

namespace shardscope::trainer::kernels {

// Overwrites out and lse.
template <class T>
void fused_attention_forward(const T* qkv, T* out, float* lse, const AttentionShape& shape);

// Overwrites dqkv and delta. out and lse come from the forward.
template <class T>
void fused_attention_backward(const T* dout, const T* qkv, const T* out, const float* lse, T* dqkv,
                              float* delta, const AttentionShape& shape);

}  // namespace shardscope::trainer::kernels
