// Self-attention of all heads, causal or bidirectional, between the projection to queries, keys and values
// and the output projection. T is float, Bf16 or Fp16 (arithmetic in fp32), row-major, thread safe. Vaswani
// et al.: "Attention is all you need", 2017; grouped queries: Ainslie et al.: "GQA", 2023. Shapes: B batch, T
// context, C width, H heads, d = C/H (H divides C), G key and value heads (G divides H; query head h reads
// key head h*G/H):
//   qkv, dqkv      [B,T,C+2Gd]  a row is q, C wide | k, Gd wide | v, Gd wide; head h at h*d … (h+1)*d of each
//   out, dout      [B,T,C]
//   probabilities  [B,H,T,T]    softmax(q kᵀ / sqrt(d)); causal: over positions up to one's own, 0 beyond
#pragma once

#include <cstddef>

namespace shardscope::trainer::kernels {

struct AttentionShape {
    int batch = 0, context = 0, width = 0, heads = 0, kv_heads = 0;
    bool causal = true;  // each position sees itself and those before it; else all of its sequence

    int head_width() const { return width / heads; }
    int group() const { return heads / kv_heads; }  // query heads that share a key head
    int row() const { return width + 2 * kv_heads * head_width(); }
};

// Overwrites out and probabilities.
template <class T>
void attention_forward(const T* qkv, T* out, T* probabilities, const AttentionShape& shape);

// Floats of scratch that the backward needs, T*max(T,H/G): these kernels need T*T, for the gradient of one
// head's probabilities; the GPU's need one per position of the H/G heads that share a key head.
std::size_t attention_backward_scratch(const AttentionShape& shape);

// Overwrites dqkv; the contents of scratch are undefined afterwards. probabilities come from the forward.
template <class T>
void attention_backward(const T* dout, const T* qkv, const T* probabilities, T* dqkv, float* scratch,
                        const AttentionShape& shape);

}  // namespace shardscope::trainer::kernels
