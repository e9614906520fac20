// The table of schedules: names, limits, closed forms, sources. Errors, help, the comparison and
// docs/pipeline.md are made from it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "trainer/pipeline/costs.h"
#include "trainer/pipeline/generators.h"

namespace shardscope::trainer::pipeline {

// What is known without a replay: p ranks, m micro-batches, R per round (generators.h), v chunks per rank;
// F, I, W and B = I + W of a chunk.
struct ClosedForm {
    std::string_view idle;  // of each rank, within the makespan, without transfer time
    std::string_view when;  // condition
    std::int64_t (*idle_ticks)(const Shape& shape, const Costs& costs);
    bool (*holds)(const Shape& shape, const Costs& costs);
    std::string_view peak;  // chunks in flight on rank r; needs only the condition's part on m
    std::int64_t (*peak_chunks)(const Shape& shape, int rank);
};

struct ScheduleKind {
    std::string_view name;     // of the job file: "1f1b"
    std::string_view title;    // "1F1B"
    std::string_view pytorch;  // its class; empty if PyTorch has none
    Placement placement = Placement::loop;
    int fewest_chunks = 1, most_chunks = 1;
    int micro_batches_per_rank = 0;  // m is at least this times p; 0: any m
    bool whole_rounds = false;       // m is a multiple of max(1, m div p)
    void (*write)(RankWriter& w) = nullptr;
    ClosedForm form;
    std::string_view paper;
    std::string_view summary;  // one sentence
};

std::span<const ScheduleKind> schedule_kinds();
// Null if the name is unknown.
const ScheduleKind* find_schedule(std::string_view name);
// "gpipe, 1f1b, ..."
std::string schedule_names();

// Why this schedule cannot have this shape, with the nearest that it can have; "" if it can.
std::string refusal(const ScheduleKind& kind, const Shape& shape);
// "any m", "m >= p", ... and "1", "2", "2 to 64": what it takes.
std::string taken_micro_batches(const ScheduleKind& kind);
std::string taken_chunks(const ScheduleKind& kind);

// Throws ScheduleError with the refusal.
Schedule make_schedule(const ScheduleKind& kind, const Shape& shape);

}  // namespace shardscope::trainer::pipeline
