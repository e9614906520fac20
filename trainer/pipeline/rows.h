// A schedule as rows of a trace: its planned actions, and its replay as if it had been recorded. A unit of
// the replay's costs is a millisecond.
#pragma once

#include <cstdint>
#include <vector>

#include "traces/store/sink.h"
#include "trainer/pipeline/replay.h"
#include "trainer/pipeline/schedule.h"

namespace shardscope::trainer::pipeline {

// The planned actions of the job's `rank`, whose place in the schedule is `place`.
std::vector<traces::schema::ScheduleRow> schedule_rows(const Schedule& schedule, int place, int rank);

// The nanoseconds of a replay's ticks.
std::int64_t replayed_ns(const Costs& costs, std::int64_t ticks);

// Writes one step: the ranks, the schedule, and a range "PP:3F2" for each cell, with "PP:3RECV_F2" while its
// rank waits for a transfer.
void write_replay(const Schedule& schedule, const ScheduleReplay& replay, traces::store::EventSink& sink);

}  // namespace shardscope::trainer::pipeline
