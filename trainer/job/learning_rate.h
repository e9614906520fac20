// The learning rate of a step: scaled with the number of workers, warmed up, then scheduled. A pure function.
#pragma once

#include <cstdint>

#include "trainer/job/job.h"

namespace shardscope::trainer {

// The rate that `ranks` workers are to reach: optimizer.lr, times ranks (linear; Goyal et al., "Accurate,
// Large Minibatch SGD: Training ImageNet in 1 Hour", arXiv:1706.02677, section 2.1) or times the square root
// of ranks (sqrt; You et al., "Large Batch Optimization for Deep Learning: Training BERT in 76 minutes",
// arXiv:1904.00962).
double scaled_learning_rate(const OptimizerSection& optimizer, int ranks);

// The rate of step `step` (0 the first) of `steps`. With w = warmup_steps and the scaled rate S of above:
//   step < w   gradual: lr + (S - lr) * step / w, so that step w is the first at S; constant: lr
//              (both as Goyal et al., section 2.2). Where nothing is scaled, gradual rises from 0:
//              S * (step + 1) / (w + 1) (Vaswani et al., "Attention Is All You Need", arXiv:1706.03762,
//              section 5.3, the rising part)
//   then       constant: S
//              step: S * gamma^(milestones <= step)
//              cosine: S * (1 + cos(pi * (step - w) / (steps - w))) / 2, which would be 0 at step `steps`
//              (Loshchilov and Hutter, "SGDR", arXiv:1608.03983, equation 5, without restarts)
// 0 <= step < steps.
double learning_rate(const OptimizerSection& optimizer, int ranks, std::int64_t steps, std::int64_t step);

}  // namespace shardscope::trainer
