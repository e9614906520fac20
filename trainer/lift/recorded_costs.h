// A cluster whose figures come from a trace: the durations of collectives and of the host's calls, and the
// rates of FSDP's, DDP's and the optimizer's own kernels. The model's kernels carry their recorded times.
#pragma once

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "traces/store/columns/index.h"
#include "trainer/lift/shared_cores.h"
#include "trainer/lift/step_lifter.h"
#include "trainer/plan/plan.h"
#include "trainer/sim/cluster.h"

namespace shardscope::trainer::lift {

inline constexpr double kNs = 1e-9;  // s

// The lower median; 0 if empty.
template <class T>
T median(std::vector<T> values) {
    if (values.empty()) return {};
    const auto middle = values.begin() + (std::ssize(values) - 1) / 2;
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

// Means over the middle half of the steps; medians for calls.
struct RecordedFigures {
    EngineFigures engine;
    double launch_s = 0, event_s = 0;  // for one call
};

// Figures that no trace shows (copies to the host under offload) are those of `base`.
sim::Cluster cluster_of(const traces::store::Trace& trace, const sim::Cluster& base,
                        const RecordedFigures& figures, const SharedCores& cores,
                        std::vector<std::string>& notes, bool hosts);

// Host time around the model.
struct EngineHost {
    std::int64_t operation_ns = 0;  // for each range of FSDP or DDP
    std::int64_t step_ns = 0;  // per step, under any sharding: the optimizer's, and what belongs to no range
};

// The share of a Plan's recorded work that is done at each place where all ranks meet: each collective that
// stops the host, or the last of a micro-batch's if none does (`blocking`).
std::vector<double> meeting_shares(const plan::Plan& plan, bool blocking);

// Sets the rates with which the engine's work in `plan`, the Plan of the recorded step, takes its recorded
// time.
EngineHost calibrate_engine(const plan::Plan& plan, const RecordedFigures& figures, sim::Cluster& cluster);

// The nanoseconds that a rank waited for others in collectives within these windows (sorted, disjoint), while
// none of its kernels ran and the shared cores were not all busy. Known only if the trace has several ranks.
std::int64_t exposed_waiting(const traces::store::Trace& trace, traces::store::RankIndex rank,
                             const std::vector<traces::analysis::Interval>& windows,
                             const SharedCores& cores);

// The name of the shipped cost model for the trace's devices.
// `hosts`: the ranks' processors.
std::string base_cluster_of(const traces::store::Trace& trace, bool hosts);

}  // namespace shardscope::trainer::lift
