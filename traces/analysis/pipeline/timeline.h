// A pipeline's steps as they ran: for each rank and step its computations, and its idle time by cause; beside
// them the plan (SHARD_SCHEDULE). pipeline_report() adds it up. Definition: docs/definitions.md, "Pipeline".
// Times in nanoseconds.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "traces/analysis/base/selection.h"
#include "traces/analysis/pipeline/cells.h"
#include "traces/store/columns/index.h"

namespace shardscope::traces::analysis {

// Why a rank computes nothing: the first that holds, in this order but for the drain.
enum class IdleCause : std::uint8_t { warm_up, peer, transfer, host, imbalance, drain };
inline constexpr int kIdleCauses = 6;
std::string_view name(IdleCause cause);  // "warm-up"

struct IdleSpan {
    Interval time;
    IdleCause cause = IdleCause::imbalance;
    bool operator==(const IdleSpan&) const = default;
};

// A rank's planned computations that run together. Their time is a replay: see replay_plan().
struct PlannedCell {
    std::vector<PipelineAction> actions;
    Interval time;
};

struct RowCell {
    PipelineCell cell;
    int planned = -1;  // its place among the rank's planned cells, from 0; -1: not in the plan
};

// A rank in a step. Busy and idle time together are the step's makespan.
struct PipelineRow {
    store::RankIndex rank;
    int place = 0;  // on the pipeline axis
    bool on_host = false;
    std::vector<RowCell> cells;        // by start of their ranges
    IntervalSet busy;                  // union of their work
    std::vector<IdleSpan> idle;        // by time, not empty
    std::vector<PlannedCell> planned;  // in the planned order; empty: no plan
    bool in_planned_order = true;      // true without a plan

    std::array<std::int64_t, kIdleCauses> idle_ns() const;
};

struct PipelineStep {
    std::size_t pipeline = 0;       // index into PipelineTimeline::pipelines
    std::int64_t number = 0;        // of the step
    Interval makespan;              // from the first work of its ranks to the last
    std::int64_t planned_ns = 0;    // the replayed plan's makespan; 0: the plan cannot be replayed
    std::vector<PipelineRow> rows;  // by place on the pipeline axis, then by rank
};

struct PipelineTimeline {
    std::vector<std::string>
        pipelines;  // "data 0, tensor 1": their ranks' place on all other axes; "" if it is one
    std::vector<PipelineStep> steps;  // by number, then pipeline; those in the selection
};

// All ranks, whichever the selection names: one rank alone is not a pipeline.
PipelineTimeline pipeline_timeline(const store::Trace& trace, const Selection& selection = {});

}  // namespace shardscope::traces::analysis
