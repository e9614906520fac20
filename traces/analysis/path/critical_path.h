// Critical path: the longest chain of things that each had to wait for the one before, from the end of a step
// back to its start, and what the step would take if a kind of time were scaled.
// Definition: docs/definitions.md, "Critical path". The graph and its rules: step_graph.h.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/analysis/base/selection.h"

namespace shardscope::traces {

struct Trace;

enum class PathKind : std::uint8_t {
    host = 0,           // the host computes, calls, or does what the trace does not show
    launch_delay = 1,   // from when nothing else held device work back to its start
    compute = 2,        // kernels
    communication = 3,  // collectives once all ranks take part; on the path, so not hidden
    memcpy = 4,         // copies and memsets
    waiting = 5,        // collectives until the last rank takes part
    earlier_step = 6,   // of the job's path only: its first rank still was in the step before
};
inline constexpr int kPathKinds = 7;
inline constexpr std::array<std::string_view, kPathKinds> kPathKindNames = {
    "host", "launch_delay", "compute", "communication", "memcpy", "waiting", "earlier_step"};

using PathFactors = std::array<double, kPathKinds>;
inline constexpr PathFactors kUnscaled = {1, 1, 1, 1, 1, 1, 1};

struct StepPath {
    std::int64_t number = 0;
    std::int64_t ns = 0;                           // the step's window, or what the selection leaves of it
    std::array<std::int64_t, kPathKinds> parts{};  // sum to `ns` exactly
    // Of the whole step: what it took, and what the scaled graph gives.
    std::int64_t whole_ns = 0;
    double predicted_ns = 0;
};

// What lies on the path under one name, per step.
struct PathShare {
    PathKind kind = PathKind::host;
    std::string name;  // kernel, runtime call or host range
    double us = 0;
    double times = 0;  // pieces of the path
};

struct NamedTime {
    std::string name;
    double us = 0;
};

struct RankTime {
    int rank = 0;
    double us = 0;
};

// One stretch of a path: what held the step up in [from, to).
struct PathPiece {
    std::int64_t step = 0;
    PathKind kind = PathKind::host;
    std::int64_t from = 0, to = 0;
    std::uint16_t rank = 0;   // index into Trace::ranks: where it ran
    std::int32_t waits = -1;  // of `waiting`: index of the rank that was waited for
    // The device event, runtime call or host range whose time it is; -1 none.
    std::int32_t event = -1, call = -1, range = -1;
    std::string_view name;  // as PathShare::name; lives as long as the trace
};

struct RankPath {
    int rank = 0;                 // -1: the job's path, over all ranks
    std::vector<StepPath> steps;  // the kept steps
    double average_step_us = 0;   // mean of the steps, as everything below
    std::array<double, kPathKinds> average_us{};
    std::vector<RankTime> ranks;  // a rank's path: whom it waits for; the job's: where it runs. Largest first
    std::vector<PathShare> shares;   // largest first
    std::vector<NamedTime> modules;  // what was launched, or what the host did, in a module. Largest first
    double whole_step_us = 0, predicted_step_us = 0;  // of StepPath's
    // Where they were asked for: in order of time. Those of a step sum to StepPath::ns.
    std::vector<PathPiece> pieces;
};

struct CriticalPathReport {
    // A rank's path stays on the rank: at a collective it counts how long it waited for which rank.
    std::vector<RankPath> ranks;
    // The job's path goes on at the rank that was waited for. None for one rank.
    std::optional<RankPath> job;
    bool stepped = true;  // false: the trace names no steps, and a rank's one "step" is all of it
    bool what_if = false;
    PathFactors factors = kUnscaled;
    // Collectives whose parts do not overlap on the ranks' clocks: no path leads from rank to rank there, and
    // waiting is told by durations.
    std::int64_t clocks_disagree = 0;
};

// `factors`: what-if; 0.5 for communication means half as long. `pieces`: fill RankPath::pieces.
CriticalPathReport critical_path(const Trace& trace, const Selection& selection = {},
                                 const std::optional<PathFactors>& factors = {}, bool pieces = false);

}  // namespace shardscope::traces
