// When a class of ranks computed, copied and communicated, by step, and its exposed communication.
#pragma once

#include <array>
#include <vector>

#include "traces/analysis/base/intervals.h"
#include "trainer/sim/host_walk.h"
#include "trainer/sim/simulator.h"

namespace shardscope::trainer::sim {

class StepTimes {
  public:
    void add(const StreamItem& item, Time start, Time end);

    // `begin`: start of the first step's window. Called once, at the end.
    std::vector<SimStep> steps(const std::vector<HostWalk::Step>& host, Time begin);
    // In all steps. Call steps() first.
    const traces::analysis::IntervalSet& kernels() const { return kernels_; }
    // The window of the last `count` steps, or of all if there are fewer. Call steps() first.
    traces::analysis::Interval last(std::size_t count) const;
    // Of the last step. Call steps() first.
    std::vector<UnitExposure> exposures() const;
    // The same by group. What is exposed of two groups at once counts for the one that is not the pipeline,
    // whose messages wait for other places, or for the first; so the sum is the step's exposed communication.
    std::array<double, plan::kGroupNames.size()> exposed_by_group() const;

  private:
    struct Collective {
        const plan::Op* op = nullptr;
        traces::analysis::Interval time;
    };
    struct Step {
        std::vector<traces::analysis::Interval> kernels, copies;
        std::vector<Collective> collectives;
        Time end = 0;
    };
    std::vector<Step> steps_;
    std::vector<Time> ends_;                 // of the windows; the first is where the first one begins
    traces::analysis::IntervalSet kernels_;  // in all steps
};

}  // namespace shardscope::trainer::sim
