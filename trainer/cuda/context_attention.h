// Attention of a rank of a context group on a CUDA device: trainer/kernels/context_attention.h, but for the
// order of sums. A warp has one row, of queries or of keys; every sum has one owner and one order. T is float
// Bf16 or Fp16.
#pragma once

#include <cstdint>

#include "trainer/cuda/device.h"
#include "trainer/cuda/types.h"
#include "trainer/kernels/context_cut.h"

namespace shardscope::trainer::cuda {

// From the dims batch, rows, heads, width, kv heads, step of an operation and the rank's cut.
struct ContextSizes {
    int batch = 0, rows = 0, heads = 0, width = 0, kv_heads = 0, step = 0;
    kernels::ContextCut cut;
};

template <class T>
void context_attention_forward(const DeviceContext& device, const T* qkv, const T* kv, float* out, float* lse,
                               const ContextSizes& sizes);

template <class T>
void context_attention_backward(const DeviceContext& device, const T* dout, const T* qkv, const T* kv,
                                const T* out, const float* lse, float* dq, float* dkv, float* delta,
                                const ContextSizes& sizes);

void merge_attention(const DeviceContext& device, float* out, float* lse, const float* part,
                     const float* part_lse, const ContextSizes& sizes);

void context_positions(const DeviceContext& device, std::int32_t* positions, int rows,
                       const kernels::ContextCut& cut);

template <class To, class From>
void copy_columns(const DeviceContext& device, const From* x, To* y, int rows, int columns, int to_row,
                  int from_row);

}  // namespace shardscope::trainer::cuda
