// The parts of a vocabulary-parallel embedding and cross-entropy on a CUDA device:
// trainer/kernels/vocabulary.h, with sums in another fixed order. Bound by memory; bytes per element:
// zero_rows at most sizeof(T), largest_logit 4, exp_logits 8, vocabulary_loss 8.
#pragma once

#include <cstddef>
#include <cstdint>

#include "trainer/cuda/device.h"
#include "trainer/cuda/types.h"

namespace shardscope::trainer::cuda {

// inside may be null.
void local_tokens(const DeviceContext& device, const std::int32_t* tokens, std::int32_t* local,
                  std::int32_t* inside, std::size_t n, std::int64_t first, int entries);

template <class T>
void zero_rows(const DeviceContext& device, T* y, const std::int32_t* local, int rows, int width,
               int entries);

void largest_logit(const DeviceContext& device, const float* logits, float* largest, int rows, int classes,
                   int valid);

// exponentials may be logits.
void exp_logits(const DeviceContext& device, const float* logits, const float* largest,
                const std::int32_t* targets, float* exponentials, float* sums, float* target_logits, int rows,
                int classes, int valid);

void vocabulary_loss(const DeviceContext& device, float* exponentials, const float* sums,
                     const float* target_logits, const std::int32_t* targets, double* mean, int rows,
                     int classes, int counted);

}  // namespace shardscope::trainer::cuda
