// Embedding of tokens, and of positions, forward and backward. fp32, row-major; table [entries,width];
// y, dy [rows,width]. Tokens must be in [0, entries): whoever makes them sees to it. Thread safe.
#pragma once

#include <cstdint>

namespace shardscope::trainer::kernels {

// y[i] = table[tokens[i]]
void embedding_forward(const std::int32_t* tokens, const float* table, float* y, int rows, int width);

// dtable[e] = sum of dy[i] over the rows i with tokens[i] = e, in row order; overwritten, 0 where no row.
void embedding_backward(const float* dy, const std::int32_t* tokens, float* dtable, int rows, int entries,
                        int width);

// Row i stands at position i mod context; entries >= context.
// y[i] = x[i] + table[i mod context], y may be x; with x null y[i] = table[i mod context].
void position_embedding_forward(const float* x, const float* table, float* y, int rows, int context,
                                int width);

// dtable[e] = sum of dy[i] over the rows at position e, in row order; overwritten, 0 for e >= context.
void position_embedding_backward(const float* dy, float* dtable, int rows, int context, int entries,
                                 int width);

}  // namespace shardscope::trainer::kernels
