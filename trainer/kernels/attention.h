// Causal self-attention of all heads, between the projection to queries, keys and values and the one behind
// it. fp32, row-major, thread safe. Shapes: B batch, T context, C width, H heads, d = C/H (H must divide C):
//   qkv, dqkv        [B,T,3C]   a row is q | k | v, each C wide, head h at h*d … (h+1)*d
//   out, dout        [B,T,C]
//   probabilities    [B,H,T,T]  softmax(q kᵀ / sqrt(d)) over positions up to one's own; 0 beyond
#pragma once

#include <cstddef>

namespace shardscope::trainer::kernels {

// Overwrites out and probabilities.
void attention_forward(const float* qkv, float* out, float* probabilities, int batch, int context, int width,
                       int heads);

// Floats of scratch that the backward needs: one head's gradient of its probabilities, T*T.
std::size_t attention_backward_scratch(int context);

// Overwrites dqkv, and scratch with nothing of use. probabilities are the forward's.
void attention_backward(const float* dout, const float* qkv, const float* probabilities, float* dqkv,
                        float* scratch, int batch, int context, int width, int heads);

}  // namespace shardscope::trainer::kernels
