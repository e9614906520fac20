// Local SGD: ranks take `train.local_steps` = H steps, each with its own gradients and its own optimizer, and
// then the mean of their N parameters, an all-reduce of 4 N bytes once in H steps instead of in each.
// PyTorch: PeriodicModelAverager. With train.outer_lr or train.outer_momentum the mean m is not taken, but
// moved towards from p, where the ranks last were together (DiLoCo; Douillard et al., arXiv 2311.08105,
// algorithm 1), by SGD with Nesterov momentum:
//
//   d = p - m,  v <- outer_momentum v + d,  p <- p - outer_lr (d + outer_momentum v)
//
// p and v are 4 N bytes each on every rank. The ranks' own moments are never averaged.
#pragma once

#include <cstdint>
#include <optional>

#include "trainer/job/job.h"
#include "trainer/plan/builder.h"
#include "trainer/sharding/optimizer.h"

namespace shardscope::trainer::sharding {

class LocalSteps {
  public:
    // Declares p in `persistent`, if it is needed. The slot holds all trained parameters.
    LocalSteps(const job::TrainSection& train, const plan::Mesh& mesh, std::vector<plan::Buffer>& persistent,
               const OptimizerSlot& slot);

    std::int64_t period() const { return steps_; }
    // `step`: since the run's first one, also of the runs before it.
    bool averages_after(std::int64_t step) const { return (step + 1) % steps_ == 0; }
    // The first one from `step` on that is followed by an average, or comes after one; none: all are.
    std::optional<std::int64_t> next_change(std::int64_t step) const;

    bool has_begun() const { return has_begun_; }
    void begin(plan::PlanBuilder& builder, const OptimizerSlot& slot);
    void average(plan::PlanBuilder& builder, const OptimizerSlot& slot);

  private:
    std::int64_t steps_;
    bool has_outer_step_;
    double lr_, momentum_;
    plan::Group group_;
    int ranks_;
    plan::BufferId together_ = -1;  // p
    bool has_begun_ = false;
};

}  // namespace shardscope::trainer::sharding
