// Replays the run with a change: computes what a step would take from its graph (step_graph.h). Internal to
// the library. Definition: docs/definitions.md, "Critical path" and "Advice". Times in nanoseconds unless the
// name says us.
#pragma once

#include <vector>

#include "traces/analysis/base/intervals.h"
#include "traces/analysis/path/step_graph.h"
#include "traces/store/columns/index.h"

namespace shardscope::traces::analysis {

// Empty members change nothing. What happened before a step's window keeps its time.
struct PathChange {
    PathFactors factors = kUnscaled;
    std::vector<PathFactors> ranks;  // by index into Trace::ranks, multiplied with `factors`
    std::vector<double> events;  // by device event: factor for its own time or, for a collective, transfer
    // By index into Trace::ranks: host time that `apart_factor` scales instead of the host's factor.
    std::vector<IntervalSet> apart;
    double apart_factor = 1;
    std::vector<bool> unheld;  // by runtime call: it does not wait for the device
    // By device event: a gather that is issued one unit earlier. It starts when the previous collective of
    // its stream has ended, together with the compute that ended before that.
    std::vector<bool> early;
    // By device event: a gather that does not wait for other streams' compute. Most traces do not record
    // which stream a wait is for, so a gather that the limiter delayed seems to wait for compute.
    std::vector<bool> alone;
};

// The time of every node of a step's graph.
std::vector<double> replay(const GraphSources& sources, const StepGraph& graph, const PathChange& change);

// The selected steps of a trace, at most kMostSteps of them, evenly spread.
class Replay {
  public:
    static constexpr std::size_t kMostSteps = 16;

    Replay(const store::Trace& trace, const Selection& selection);
    Replay(const Replay&) = delete;
    Replay& operator=(const Replay&) = delete;

    const GraphSources& sources() const { return sources_; }
    // From the first rank's start to the last rank's end, mean of the steps; 0 if there are none.
    double step_us() const { return step_us_; }
    double step_us(const PathChange& change) const;

  private:
    TraceSteps steps_;
    GraphSources sources_;
    std::vector<store::RankIndex> ranks_;
    std::vector<StepGraph> graphs_;
    double step_us_ = 0;
};

}  // namespace shardscope::traces::analysis
