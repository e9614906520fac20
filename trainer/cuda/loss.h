// The two losses on a CUDA device: trainer/kernels/loss.h, but with sums in another fixed order. Inputs are
// fp32, the mean is fp64 on the device. Bound by memory; bytes per element: cross_entropy_forward 8 (the
// second read of the logits hits the L2 cache), backward 8, mse_forward 8, backward 12.
#pragma once

#include <cstddef>
#include <cstdint>

#include "trainer/cuda/device.h"

namespace shardscope::trainer::cuda {

// probabilities may be logits.
void cross_entropy_forward(const DeviceContext& device, const float* logits, const std::int32_t* targets,
                           float* probabilities, double* mean, int rows, int classes, int counted = 0,
                           double smoothing = 0);

// dlogits may be probabilities.
void cross_entropy_backward(const DeviceContext& device, const float* probabilities,
                            const std::int32_t* targets, float* dlogits, int rows, int classes,
                            int counted = 0, double smoothing = 0, float loss_scale = 1);

// *share: of the rows, those whose largest logit, the first of equal ones, is the target's.
void top_one(const DeviceContext& device, const float* logits, const std::int32_t* targets, double* share,
             int rows, int classes);

void mse_forward(const DeviceContext& device, const float* y, const float* target, double* mean,
                 std::size_t n);

// dy may be y.
void mse_backward(const DeviceContext& device, const float* y, const float* target, float* dy, std::size_t n,
                  float loss_scale = 1);

}  // namespace shardscope::trainer::cuda
