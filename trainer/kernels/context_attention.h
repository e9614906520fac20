// Attention of a rank of a context group: of the queries of its own tokens to keys and values of all tokens,
// or of those of one rank. Kept are the output and, for each row, the logarithm of the sum over the keys seen
// of e^(q k / sqrt(d)), from which partial results are merged (Liu et al.: "Ring attention", 2023,
// arXiv:2310.01889; FlashAttention's online softmax). T is float, Bf16 or Fp16 (arithmetic in fp32), thread
// safe. Shapes: B batch, R tokens of a rank, C width, H heads, d = C/H, G key and value heads, n ranks of the
// group:
//   qkv     [B,R,C+2Gd]     as in attention.h, of which the first C of each row are read
//   kv      [n,B,R,2Gd]     of all ranks in their order, or [B,R,2Gd] of one
//   out     [B,R,C]         fp32 from the forward, T in the backward; 0 for a row that sees no key of these
//   lse     [B,H,R]         fp32; -infinity for a row that sees none of these keys
#pragma once

#include <cstdint>

#include "trainer/kernels/context_cut.h"

namespace shardscope::trainer::kernels {

struct ContextAttentionShape {
    int batch = 0, rows = 0, width = 0, heads = 0, kv_heads = 0;
    ContextCut cut;
    int step = -1;  // of a ring: the keys are those of the rank that many places before; -1: of all ranks

    int head_width() const { return width / heads; }
    int group() const { return heads / kv_heads; }
    int kv_row() const { return 2 * kv_heads * head_width(); }
    int row() const { return width + kv_row(); }
    int blocks() const { return step < 0 ? cut.ranks : 1; }
    // The rank whose keys a block has.
    int rank_of(int block) const { return step < 0 ? block : (cut.place + cut.ranks - step) % cut.ranks; }
};

template <class T>
void context_attention_forward(const T* qkv, const T* kv, float* out, float* lse,
                               const ContextAttentionShape& shape);

// The gradients for these keys. dkv [n,B,R,2Gd] or [B,R,2Gd] and delta [B,H,R] (scratch) are overwritten; dq
// [B,R,C] is added to in a ring's steps after 0, else overwritten. out and lse are those of all keys.
template <class T>
void context_attention_backward(const T* dout, const T* qkv, const T* kv, const T* out, const float* lse,
                                float* dq, float* dkv, float* delta, const ContextAttentionShape& shape);

// Merges the result for more keys into that for some, in place.
void merge_attention(float* out, float* lse, const float* part, const float* part_lse,
                     const ContextAttentionShape& shape);

// positions[i]: the place in the sequence of the rank's i-th token.
void context_positions(std::int32_t* positions, int rows, const ContextCut& cut);

// y[i][j] = x[i][j], rows of different strides.
template <class To, class From>
void copy_columns(const From* x, To* y, int rows, int columns, int to_row, int from_row);

}  // namespace shardscope::trainer::kernels
