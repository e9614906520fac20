// The run again with something changed: what a step would take, by its graph (step_graph.h) computed anew.
// Internal to the room. Definition: docs/definitions.md, "Critical path" and "Advice". Times in nanoseconds
// where the name does not say us.
#pragma once

#include <vector>

#include "traces/analysis/base/intervals.h"
#include "traces/analysis/path/step_graph.h"

namespace shardscope::traces {

// What is left empty changes nothing. What happened before a step's window began stays where it was.
struct PathChange {
    PathFactors factors = kUnscaled;
    std::vector<PathFactors> ranks;  // by index into Trace::ranks, times `factors`
    std::vector<double> events;      // by device event, of its own time; of a collective: of its transfer
    // By index into Trace::ranks: host time that `apart_factor` scales in place of the factor of the host.
    std::vector<IntervalSet> apart;
    double apart_factor = 1;
    std::vector<bool> unheld;  // by runtime call: it does not wait for the device
    // By device event: a gather that comes one unit early. It starts when the collective before it on its
    // stream has ended, and with it the compute that lay before that end.
    std::vector<bool> early;
    // By device event: a gather that does not wait for other streams' compute. Which stream a wait was meant
    // for is not known in most traces, so that a gather which the limiter held seems to wait for compute.
    std::vector<bool> alone;
};

// The time of every node of a step's graph.
std::vector<double> replay(const GraphSources& sources, const StepGraph& graph, const PathChange& change);

// The steps of a trace that a selection leaves; of more than kMostSteps as many, evenly spread.
class Replay {
  public:
    static constexpr std::size_t kMostSteps = 16;

    Replay(const Trace& trace, const Selection& selection);
    Replay(const Replay&) = delete;
    Replay& operator=(const Replay&) = delete;

    const GraphSources& sources() const { return sources_; }
    // From the first rank's begin to the last rank's end, mean of the steps; 0 where there is none.
    double step_us() const { return step_us_; }
    double step_us(const PathChange& change) const;

  private:
    TraceSteps steps_;
    GraphSources sources_;
    std::vector<int> ranks_;
    std::vector<StepGraph> graphs_;
    double step_us_ = 0;
};

}  // namespace shardscope::traces
