// Embedding of tokens, and of positions, forward and backward. T is float, Bf16 or Fp16 (sums in fp32,
// rounded once: in row order within pieces of kRowsOfPiece rows, then the pieces in their order); row-major;
// table [entries,width]; y, dy [rows,width]. Tokens must be in [0, entries), which the caller ensures. Thread
// safe.
#pragma once

#include <cstdint>
#include <type_traits>

namespace shardscope::trainer::kernels {

// Rows of an entry that are added one after the other; a GPU adds the pieces of an entry in parallel.
inline constexpr int kRowsOfPiece = 256;

// y[i] = table[tokens[i]]
template <class T>
void embedding_forward(const std::int32_t* tokens, const T* table, T* y, int rows, int width);

// dtable[e] = sum of dy[i] over the rows i with tokens[i] = e, piece by piece; overwritten, 0 for an entry
// without rows.
template <class T>
void embedding_backward(const T* dy, const std::int32_t* tokens, T* dtable, int rows, int entries, int width);

// Row i is at position (first + i) mod context; entries >= context. y[i] is x[i] plus its position's row of
// the table, or that row if x is null; y may be x.
template <class T>
void position_embedding_forward(const std::type_identity_t<T>* x, const T* table, T* y, int rows, int context,
                                int width, int first = 0);

// dtable[e] = sum of dy[i] over the rows at position e, piece by piece; overwritten, 0 for e >= context.
template <class T>
void position_embedding_backward(const T* dy, T* dtable, int rows, int context, int entries, int width,
                                 int first = 0);

}  // namespace shardscope::trainer::kernels
