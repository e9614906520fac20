// Whether a schedule is one that can run: every stage does every micro-batch's forward once and then its
// backward once, whole (B) or split (I, then W); each transfer has its two ends, in the same order on both;
// and nothing waits forever. UNSHARD, RESHARD and REDUCE_GRAD are not checked.
#pragma once

#include <optional>
#include <string>

#include "trainer/pipeline/schedule.h"

namespace shardscope::trainer::pipeline {

struct ScheduleProblem {
    int rank = -1;
    std::optional<std::size_t> at;  // the action; none if one is missing
    std::string text;               // "0B3 comes before 0F3; ..."
};

// The first thing that is wrong; nothing if the schedule can run.
std::optional<ScheduleProblem> find_problem(const Schedule& schedule);
// Throws ScheduleError.
void check(const Schedule& schedule);

}  // namespace shardscope::trainer::pipeline
