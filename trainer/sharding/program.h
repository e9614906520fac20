// A job as Plans: the wrapped model, and one Plan per kind of step. Built once, before the first step; then
// read by every rank.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "trainer/job/job.h"
#include "trainer/model/module.h"
#include "trainer/plan/account.h"
#include "trainer/plan/plan.h"
#include "trainer/sharding/parallelism.h"

namespace shardscope::trainer {

class Program {
  public:
    // Throws JobError where the job cannot be (a wrap policy that matches nothing).
    explicit Program(const Job& job);
    Program(const Program&) = delete;  // its parts refer to each other
    Program& operator=(const Program&) = delete;

    const Job& job() const { return job_; }
    const ModuleTree& modules() const { return tree_; }
    const std::vector<UnitInfo>& units() const { return parallelism_->units(); }
    int unit_of(const Parameter& parameter) const { return parallelism_->unit_of(parameter); }

    const OptimizerPlanner& optimizer() const { return std::as_const(*parallelism_).optimizer(); }

    const Plan& setup() const { return setup_; }
    // The Plan of a step. The first steps can differ (no optimizer state yet, nothing queued); from
    // warm_up_steps() on it is always the same one.
    const Plan& step(std::size_t step) const { return steps_[std::min(step, steps_.size() - 1)]; }
    std::size_t warm_up_steps() const { return steps_.size() - 1; }
    // Reads the last step's loss.
    const Plan& finish() const { return finish_; }

    // The memory account of the whole run: set-up, warm-up, steady step.
    MemoryPeak predict_peak() const;

    BufferId persistent_buffers() const { return static_cast<BufferId>(persistent_.size()); }

  private:
    Plan make_setup();
    Plan make_step(PlanKind kind);
    Plan make_finish();
    std::string state_key() const;

    Job job_;
    ModuleTree tree_;
    std::unique_ptr<Parallelism> parallelism_;
    std::vector<Buffer> persistent_;
    BufferId loss_host_ = -1;  // pinned: the loss of the step before
    EventId loss_event_ = -1;  // its copy has ended
    bool loss_pending_ = false;
    Plan setup_, finish_;
    std::vector<Plan> steps_;
};

}  // namespace shardscope::trainer
