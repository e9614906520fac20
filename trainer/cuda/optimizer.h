// Optimizer steps on a CUDA device: trainer/kernels/optimizer.h on all trained segments of a slot, up to 1000
// per launch, bit for bit except for the norms, whose sums have another fixed order.
// fp32. Bound by memory; bytes per element: sgd 12 (20 with momentum), adam and adamw 28, lars_norms 8, lars
// as sgd, lamb_update 28, lamb 12, novograd 20.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "trainer/cuda/device.h"

namespace shardscope::trainer::cuda {

// Elements [begin, end) of the slot's buffers.
struct Range {
    std::int64_t begin = 0, end = 0;
    std::int32_t segment = 0;  // the segment's number, which is the index of its norms
    bool adapted = true;       // LARS and LAMB scale its step by its norms
};

// If buffer is null, momentum must be 0.
void sgd(const DeviceContext& device, const std::vector<Range>& ranges, float* param, const float* grad,
         float* buffer, double lr, double momentum, bool nesterov, double weight_decay);

struct AdamSettings {
    double lr = 0, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
    std::int64_t step = 1;  // counts from 1
};

// `decoupled`: as adamw.
void adam(const DeviceContext& device, const std::vector<Range>& ranges, float* param, const float* grad,
          float* m, float* v, const AdamSettings& settings, bool decoupled);

// norms[2 i] = |left|^2, norms[2 i + 1] = |right|^2 of segment i, 0 for segments (of `segments` in all)
// without a range.
void squared_norms(const DeviceContext& device, const std::vector<Range>& ranges, double* norms,
                   std::size_t segments, const float* left, const float* right);

// The rate of a range is lars_rate of its norms (1 for ranges that are not adapted).
void lars(const DeviceContext& device, const std::vector<Range>& ranges, float* param, const float* grad,
          float* buffer, const double* norms, double lr, double momentum, bool nesterov, double weight_decay,
          double trust);

// grad becomes the update; norms of param and update as in squared_norms.
void lamb_update(const DeviceContext& device, const std::vector<Range>& ranges, double* norms,
                 std::size_t segments, float* grad, const float* param, float* m, float* v,
                 const AdamSettings& settings);

// param -= lr * lamb_ratio(norms) * update
void lamb(const DeviceContext& device, const std::vector<Range>& ranges, float* param, const float* update,
          const double* norms, double lr);

// The second moments of `count` segments, from the second of each pair of norms; `step` counts from 1.
void novograd_moments(const DeviceContext& device, float* moments, const double* norms, std::size_t count,
                      double beta2, std::int64_t step);
// `moments`: of the segments. beta2 and step of the settings are not used.
void novograd(const DeviceContext& device, const std::vector<Range>& ranges, float* param, const float* grad,
              float* m, const float* moments, const AdamSettings& settings);

}  // namespace shardscope::trainer::cuda
