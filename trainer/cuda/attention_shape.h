// The parameters of every attention kernel, and which head a block works on. Internal to trainer/cuda.
#pragma once

#include <cmath>
#include <cstdint>

#include "trainer/cuda/runtime.h"
#include "trainer/plan/plan.h"

namespace shardscope::trainer::cuda {

// As in trainer/kernels/attention.h: B batch, T context, C width, H heads, G kv heads, d features of a head.
struct AttentionSizes {
    int batch = 0, context = 0, width = 0, heads = 0, kv_heads = 0;
    int d = 0;
    int group = 0;         // query heads that share a key head
    std::int64_t row = 0;  // elements of a row of qkv
    float scale = 0;       // 1 / sqrt(d)
    bool packed = false;   // rows of heads can be read 16 bytes at a time
    bool causal = true;    // else every position sees all of its sequence (plain only)

    // The last position that `here` sees, and the first that sees it.
    __host__ __device__ int last_seen(int here) const { return causal ? here : context - 1; }
    __host__ __device__ int first_seeing(int here) const { return causal ? here : 0; }

    // From an attention's dims: batch, context, heads, width, kv heads, and 1 if it is not causal.
    static AttentionSizes of(const plan::KernelOp& op) {
        AttentionSizes s;
        s.batch = static_cast<int>(op.dims[0]);
        s.context = static_cast<int>(op.dims[1]);
        s.heads = static_cast<int>(op.dims[2]);
        s.width = static_cast<int>(op.dims[3]);
        s.kv_heads = static_cast<int>(op.dims[4]);
        s.causal = op.dims[5] == 0;
        s.d = s.width / s.heads;
        s.group = s.heads / s.kv_heads;
        s.row = s.width + std::int64_t{2} * s.kv_heads * s.d;
        s.scale = 1.0f / std::sqrt(static_cast<float>(s.d));
        return s;
    }
};

// Where a head of a sequence begins: elements into qkv, into out, and rows into lse and delta.
struct HeadOffsets {
    std::int64_t query, key, value, out, row;
};
__host__ __device__ inline HeadOffsets offsets_of(const AttentionSizes& s, int b, int h) {
    const std::int64_t first = static_cast<std::int64_t>(b) * s.context;
    const std::int64_t query = first * s.row + static_cast<std::int64_t>(h) * s.d;
    const std::int64_t key = first * s.row + s.width + static_cast<std::int64_t>(h / s.group) * s.d;
    return {query, key, key + static_cast<std::int64_t>(s.kv_heads) * s.d,
            first * s.width + static_cast<std::int64_t>(h) * s.d,
            (static_cast<std::int64_t>(b) * s.heads + h) * s.context};
}

}  // namespace shardscope::trainer::cuda
