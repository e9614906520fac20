// Critical path: the longest chain of work in which each part had to wait for the previous one, from the
// end of a step back to its start; and what the step would take if a kind of time were scaled. Definition:
// docs/definitions.md, "Critical path". The graph and its rules: step_graph.h.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/analysis/base/selection.h"
#include "traces/store/columns/index.h"

namespace shardscope::traces::store {
struct Trace;
}

namespace shardscope::traces::analysis {

enum class PathKind : std::uint8_t {
    host = 0,           // the host computes, calls, or does something that the trace does not show
    launch_delay = 1,   // from the time when nothing else delays device work to its start
    compute = 2,        // kernels
    communication = 3,  // collectives once all ranks take part; on the path, so exposed
    memcpy = 4,         // copies and memsets
    waiting = 5,        // collectives until the last rank takes part
    earlier_step = 6,   // of the job's path only: its first rank was still in the previous step
};
inline constexpr int kPathKinds = 7;
inline constexpr std::array<std::string_view, kPathKinds> kPathKindNames = {
    "host", "launch_delay", "compute", "communication", "memcpy", "waiting", "earlier_step"};

using PathFactors = std::array<double, kPathKinds>;
inline constexpr PathFactors kUnscaled = {1, 1, 1, 1, 1, 1, 1};

struct StepPath {
    std::int64_t number = 0;
    std::int64_t ns = 0;                           // the selected part of the step's window
    std::array<std::int64_t, kPathKinds> parts{};  // sum to `ns` exactly
    // Of the whole step: its duration, and the prediction of the scaled graph.
    std::int64_t whole_ns = 0;
    double predicted_ns = 0;
};

// Time on the path under one name, per step.
struct PathShare {
    PathKind kind = PathKind::host;
    std::string name;  // kernel, runtime call or host range
    double us = 0;
    double times = 0;  // number of pieces of the path
};

struct NamedTime {
    std::string name;
    double us = 0;
};

struct RankTime {
    int rank = 0;
    double us = 0;
};

// One stretch of a path: what delayed the step in [from, to).
struct PathPiece {
    std::int64_t step = 0;
    PathKind kind = PathKind::host;
    std::int64_t from = 0, to = 0;
    store::RankIndex rank;   // where it ran
    store::RankIndex waits;  // for `waiting`: the rank that was waited for
    // The device event, runtime call or host range of this time; -1 none.
    std::int32_t event = -1, call = -1, range = -1;
    std::string_view name;  // as PathShare::name; lives as long as the trace
};

struct RankPath {
    int rank = 0;                 // -1: the job's path, over all ranks
    std::vector<StepPath> steps;  // the kept steps
    double average_step_us = 0;   // mean of the steps, as are all values below
    std::array<double, kPathKinds> average_us{};
    std::vector<RankTime>
        ranks;  // a rank's path: the rank that it waits for; the job's: where it runs. Largest first
    std::vector<PathShare> shares;   // largest first
    std::vector<NamedTime> modules;  // by the module of the launch or of the host's work. Largest first
    double whole_step_us = 0, predicted_step_us = 0;  // as in StepPath
    // If requested: in order of time. The pieces of a step sum to StepPath::ns.
    std::vector<PathPiece> pieces;
};

struct CriticalPathReport {
    // A rank's path stays on the rank: at a collective it counts the wait for each rank.
    std::vector<RankPath> ranks;
    // The job's path continues on the rank that was waited for. None for one rank.
    std::optional<RankPath> job;
    bool stepped = true;  // false: the trace has no steps, and all of it is one "step"
    bool what_if = false;
    PathFactors factors = kUnscaled;
    // Collectives whose parts do not overlap on the ranks' clocks: no path crosses ranks there, and waiting
    // is taken from durations.
    std::int64_t clocks_disagree = 0;
};

// `factors`: what-if; 0.5 for communication means half as long. `pieces`: fill RankPath::pieces.
CriticalPathReport critical_path(const store::Trace& trace, const Selection& selection = {},
                                 const std::optional<PathFactors>& factors = {}, bool pieces = false);

}  // namespace shardscope::traces::analysis
