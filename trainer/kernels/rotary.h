// Rotary position embedding as in Llama. In a head of width d, elements i and i + d/2 (i < d/2) are a pair
// that is rotated by the angle position * base^(-2 i / d). T is float, Bf16 or Fp16, and the table may be of
// the other type (arithmetic in fp32). d is even. Thread safe. Su et al.: "RoFormer", 2021; Touvron et al.:
// "Llama", 2023.
//   table  [2][context, d/2]: the cosines, then the sines
//   x, y   [batch, context, heads, d]; the first `rotated` heads of each row are rotated, the others copied
#pragma once

#include <cstdint>

namespace shardscope::trainer::kernels {

// Of the positions 0 to context - 1, or of these.
template <class T>
void rotary_table(T* table, int context, int head_width, double base,
                  const std::int32_t* positions = nullptr);

// y may be x.
template <class T, class Table>
void rotary_forward(const T* x, const Table* table, T* y, int batch, int context, int rotated, int heads,
                    int head_width);

// Rotates back: a rotation's gradient is its inverse. dx may be dy.
template <class T, class Table>
void rotary_backward(const T* dy, const Table* table, T* dx, int batch, int context, int rotated, int heads,
                     int head_width);

}  // namespace shardscope::trainer::kernels
