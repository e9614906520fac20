// What the Schedule panel shows of a pipeline's step: a row for each rank with its computations and its
// bubble by cause, folded into boxes and pixel columns. Pure arithmetic, no drawing; any thread. Times in
// nanoseconds.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "traces/analysis/memory/memory_curves.h"
#include "traces/analysis/pipeline/pipeline.h"
#include "viewer/model/session.h"
#include "viewer/model/time_view.h"
#include "viewer/tables/table_model.h"

namespace shardscope::viewer::panels {

// Kinds of computation (ComputeKind), then causes of idle time (IdleCause).
inline constexpr int kSpanKinds = traces::analysis::kComputeKinds + traces::analysis::kIdleCauses;

// A stretch of a row in which it does one thing.
struct ScheduleSpan {
    std::int64_t start = 0, end = 0;
    int kind = 0;   // < kSpanKinds
    int cell = -1;  // index into the row's cells, or its planned cells; of idle time: of the next one, or -1
    bool second = false;  // of another stage than the rank's first: drawn darker
    bool is_idle() const { return kind >= traces::analysis::kComputeKinds; }
    bool operator==(const ScheduleSpan&) const = default;
};

struct ScheduleRow {
    int rank = 0;        // its number
    std::string stages;  // "3, 12"
    const traces::analysis::PipelineStep* step = nullptr;
    const traces::analysis::PipelineRow* row = nullptr;
    std::vector<ScheduleSpan> actual;   // covers the step's makespan without gaps
    std::vector<ScheduleSpan> planned;  // where the replayed plan computes; empty: none
    std::int64_t idle_ns = 0;           // the bubble
    double bubble_percent() const;
};

// The rows of a step: of one pipeline, or of all by place. The timeline must outlive them.
struct ScheduleView {
    std::int64_t step = 0;
    std::vector<ScheduleRow> rows;
    model::TimeRange makespan;    // of its pipelines together
    std::int64_t planned_ns = 0;  // the longest of their replayed plans; 0: none
    bool planned = false;         // some row has a plan
    bool in_planned_order = true;
    std::array<std::int64_t, kSpanKinds> ns{};  // summed over the rows, by kind of span
    std::int64_t whole_ns = 0;                  // their sum: rows x makespan
    double share_percent(int kind) const;
    double bubble_percent() const;
};
ScheduleView schedule_view(const traces::store::Trace& trace,
                           const traces::analysis::PipelineTimeline& timeline, std::int64_t step,
                           std::optional<std::size_t> pipeline);

// The numbers of the timeline's steps, rising.
std::vector<std::int64_t> schedule_steps(const traces::analysis::PipelineTimeline& timeline);
// The pipeline of a rank; 0 if it is in none.
std::size_t pipeline_of_rank(const traces::analysis::PipelineTimeline& timeline,
                             traces::store::RankIndex rank);

// A span that is at least some pixels wide, and a pixel column of narrower ones: how much of it each kind
// takes.
struct SpanBox {
    double x0 = 0, x1 = 0;
    int kind = 0;
    bool second = false;
};
struct SpanColumn {
    double x0 = 0, x1 = 0;
    std::array<float, kSpanKinds> pixels{};  // their sum is at most x1 - x0
};
struct FoldedSpans {
    std::vector<SpanBox> boxes;
    std::vector<SpanColumn> columns;
};
// Spans of at least `least` pixels are boxes, narrower ones share columns of that width.
FoldedSpans fold_spans(std::span<const ScheduleSpan> spans, const model::TimeView& view, double least);

// The span at a time; null if there is none.
const ScheduleSpan* span_at(std::span<const ScheduleSpan> spans, std::int64_t time);

// "F of stage 3, micro-batch 5"; of several: joined by " and ".
std::string action_text(const std::vector<traces::analysis::PipelineAction>& actions);
// The micro-batch in a box: "5", or "7|3" of two that run together.
std::string micro_batch_text(const std::vector<traces::analysis::PipelineAction>& actions);
std::string_view idle_meaning(traces::analysis::IdleCause cause);

// A rank's memory at the times when its device runs the computations whose host ranges allocate and free it:
// the host runs ahead. Times between two computations are spread over the time between their work.
traces::analysis::ByteCurve memory_at_work(traces::analysis::ByteCurve curve,
                                           const traces::analysis::PipelineTimeline& timeline,
                                           traces::store::RankIndex rank);

// The lowest and the highest of several curves at every instant; values at one instant count all.
struct MemoryBand {
    traces::analysis::ByteCurve lowest, highest;
};
MemoryBand memory_band(std::span<const traces::analysis::ByteCurve> curves);

// The verb's tables.
std::shared_ptr<const tables::CellTable> pipeline_rank_table(const traces::analysis::PipelineReport& report);
std::shared_ptr<const tables::CellTable> stage_work_table(const traces::analysis::PipelineReport& report);
std::shared_ptr<const tables::CellTable> stage_memory_table(const traces::analysis::PipelineReport& report);

}  // namespace shardscope::viewer::panels
