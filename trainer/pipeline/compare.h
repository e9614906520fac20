// Every schedule of the table beside the others: the same ranks, micro-batches and work.
#pragma once

#include <string>
#include <vector>

#include "trainer/pipeline/replay.h"
#include "trainer/pipeline/schedule_table.h"

namespace shardscope::trainer::pipeline {

struct ComparedSchedule {
    const ScheduleKind* kind = nullptr;
    int chunks = 0;
    std::string refused;      // why it cannot have this shape; nothing below is set then
    Fraction makespan, idle;  // units; idle: of the rank that idles most, within the makespan
    Fraction bubble;
    int peak_in_flight = 0;       // chunks, of the rank with the most
    Fraction peak_micro_batches;  // the same in micro-batches through all stages of the rank: chunks / v
    std::int64_t messages = 0;    // between ranks per step, outputs and gradients
};

// `costs` are those of a chunk with `shape.chunks` per rank; a chunk of a schedule with another number of
// chunks takes proportionally more or less, so that each rank does the same work in every row. Schedules that
// can have several numbers of chunks take `interleaved_chunks`.
std::vector<ComparedSchedule> compare_schedules(const Shape& shape, const Costs& costs,
                                                int interleaved_chunks);

// Outputs and gradients that go from one rank to another in a step.
std::int64_t messages_of(const Schedule& schedule);

}  // namespace shardscope::trainer::pipeline
