// The two losses, forward and backward. Inputs are fp32, sums are in double in a fixed order; the mean is
// over the rows or elements of the call. Thread safe.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shardscope::trainer::kernels {

// *mean = mean over the rows of -log softmax(logits)[target]; logits and probabilities [rows,classes],
// targets in [0, classes); a row with a negative target adds nothing, and the mean is over the `counted` rows
// that do add (0: all). probabilities = softmax(logits), kept for the backward; may be logits. `smoothing`:
// the share of the target that all classes get in equal parts (Szegedy et al.: arXiv 1512.00567, section 7).
void cross_entropy_forward(const float* logits, const std::int32_t* targets, float* probabilities,
                           double* mean, int rows, int classes, int counted = 0, double smoothing = 0);

// dlogits = (probabilities - smoothed onehot(target)) / counted * loss_scale, 0 where the target is negative;
// may be probabilities. A target of `classes` or more belongs to another rank of a tensor group.
// `loss_scale`: the factor of the loss whose gradient is meant (a power of two changes no fraction).
void cross_entropy_backward(const float* probabilities, const std::int32_t* targets, float* dlogits, int rows,
                            int classes, int counted = 0, double smoothing = 0, float loss_scale = 1);

// The share of the rows whose largest logit, the first of equal ones, is the target's.
double top_one(const float* logits, const std::int32_t* targets, int rows, int classes);

// *mean = mean of (y - target)^2 over n elements.
void mse_forward(const float* y, const float* target, double* mean, std::size_t n);

// dy = 2 (y - target) / n * loss_scale; may be y.
void mse_backward(const float* y, const float* target, float* dy, std::size_t n, float loss_scale = 1);

}  // namespace shardscope::trainer::kernels
