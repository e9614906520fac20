// One head of fused attention, tile by tile, for some queries and some keys (attention_fused.h): all keys of
// a sequence, or those of one chunk (context_attention.h). Internal to the attention kernels; thread safe.
#pragma once

#include "trainer/kernels/attention_heads.h"

namespace shardscope::trainer::kernels {

inline constexpr int kQueryTile = 64;
inline constexpr int kKeyTile = 128;
inline constexpr std::size_t kTile = static_cast<std::size_t>(kQueryTile) * kKeyTile;

// How many queries and keys there are, of how many features; causal: as many of both, and query i sees keys
// 0 to i.
struct HeadSize {
    int queries, keys, d;
    bool causal;
};

// Overwrites o and lse. `scores` is one tile.
void attend(ConstMatrix q, ConstMatrix k, ConstMatrix v, Matrix o, float* lse, float* scores,
            const HeadSize& size);

// dk and dv are added to, dq is if `adds`, else it is overwritten. `tiles` are two tiles.
struct HeadGradients {
    Matrix dq, dk, dv;
    bool adds = false;
};
void attend_backward(ConstMatrix q, ConstMatrix k, ConstMatrix v, ConstMatrix go, const float* lse,
                     const float* delta, const HeadGradients& gradients, float* tiles, const HeadSize& size);

// delta[i] = sum of go * o over the row i.
void row_products(ConstMatrix go, ConstMatrix o, float* delta, int rows, int d);

void clear_rows(Matrix m, int rows, int d);

}  // namespace shardscope::trainer::kernels
