// The learning rate of a step: scaled with the batch, warmed up, then scheduled. A pure function.
#pragma once

#include <cstdint>

#include "trainer/job/job.h"

namespace shardscope::trainer::job {

// The samples of a step (all ranks and micro-batches) divided by those that optimizer.lr is meant for:
// optimizer.lr_batch or, if that is 0, data.batch (the factor is then ranks times micro-batches).
double batch_factor(const Job& job);

// The rate for a batch that is `factor` times as large: optimizer.lr, times the factor (linear: "when the
// minibatch size is multiplied by k, multiply the learning rate by k", Goyal et al., "Accurate, Large
// Minibatch SGD: Training ImageNet in 1 Hour", arXiv:1706.02677, section 2.1) or times its square root (sqrt;
// You et al., "Large Batch Optimization for Deep Learning: Training BERT in 76 minutes", arXiv:1904.00962).
double scaled_learning_rate(const OptimizerSection& optimizer, double factor);

// The rate of step `step` (0 is the first) of `steps`. With w = warmup_steps and S the scaled rate above:
//   step < w   gradual: lr + (S - lr) * step / w, so that step w is the first at S; constant: lr
//              (both as Goyal et al., section 2.2). Without scaling, gradual rises from 0:
//              S * (step + 1) / (w + 1) (Vaswani et al., "Attention Is All You Need", arXiv:1706.03762,
//              section 5.3, the rising part)
//   then       constant: S
//              step: S * gamma^(milestones <= step)
//              cosine: S * (1 + cos(pi * (step - w) / (steps - w))) / 2, which would be 0 at step `steps`
//              (Loshchilov and Hutter, "SGDR", arXiv:1608.03983, equation 5, without restarts)
//              polynomial: S * (1 - (step - w) / (steps - w))^power, which would be 0 at step `steps` (You et
//              al., "Large Batch Training of Convolutional Networks", arXiv:1708.03888: power 2)
// 0 <= step < steps.
double learning_rate(const OptimizerSection& optimizer, double factor, std::int64_t steps, std::int64_t step);

}  // namespace shardscope::trainer::job
