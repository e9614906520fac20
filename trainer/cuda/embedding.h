// Embedding of tokens, and of positions, on a CUDA device: trainer/kernels/embedding.h, bit for bit: the
// backward adds rows in the same order and pieces, in time linear in the rows. T is float, Bf16 or Fp16;
// table [entries,width]; y, dy [rows,width]. Bound by memory; units of T moved: embedding_forward 2 per
// element of y, backward one per element of dy and one per element of the table (all of it is written),
// position_forward 3 (2 if the table is in the cache), backward 1.
#pragma once

#include <cstdint>

#include "trainer/cuda/device.h"
#include "trainer/cuda/types.h"

namespace shardscope::trainer::cuda {

template <class T>
void embedding_forward(const DeviceContext& device, const std::int32_t* tokens, const T* table, T* y,
                       int rows, int width);

template <class T>
void embedding_backward(const DeviceContext& device, const T* dy, const std::int32_t* tokens, T* dtable,
                        int rows, int entries, int width);

// x may be null; y may be x.
template <class T>
void position_forward(const DeviceContext& device, const T* x, const T* table, T* y, int rows, int context,
                      int width, int first = 0);

template <class T>
void position_backward(const DeviceContext& device, const T* dy, T* dtable, int rows, int context,
                       int entries, int width, int first = 0);

}  // namespace shardscope::trainer::cuda
