// Fused causal attention in Bf16 on a CUDA device, tile by tile: the launches. FlashAttention-2 (Dao, 2023,
// arXiv:2307.08691) with the backward cut in two so that every gradient has one owner: a kernel over blocks
// of queries computes dq, one over blocks of keys computes dk and dv, and both recompute the scores (7
// matmuls of tiles; a backward that adds up dq by atomics needs 5). Matmuls are on tensor cores, with
// fp32 sums. Heads of up to 256 features. Internal to trainer/cuda.
#pragma once

#include "trainer/cuda/attention_shape.h"
#include "trainer/cuda/types.h"

namespace shardscope::trainer::cuda {

struct FlashForward {
    const Bf16* qkv;  // [B,T,C+2Gd]
    Bf16* out;        // [B,T,C]
    float* lse;       // [B,H,T]
};

struct FlashBackward {
    const Bf16 *qkv, *dout;
    const float *lse, *delta;  // [B,H,T]
    Bf16* dqkv;
};

void launch_flash(const FlashForward& tensors, const AttentionSizes& sizes, cudaStream_t stream);
void launch_flash(const FlashBackward& tensors, const AttentionSizes& sizes, cudaStream_t stream);

}  // namespace shardscope::trainer::cuda
