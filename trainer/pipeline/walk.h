// Steps through a schedule in an order in which it can run. Lowering, replay and the search for deadlocks are
// such walks.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "trainer/pipeline/schedule.h"

namespace shardscope::trainer::pipeline {

// The computation of the neighbouring stage whose result an action waits for (its kind: forward or backward,
// which stands for I, too); nothing if it waits for none.
std::optional<Action> awaited(const Schedule& schedule, const Action& action);

struct BlockedRank {
    int rank = 0;
    std::size_t at = 0;  // the first action of the cell that cannot begin
    Action waits, for_action;
};

// Passes over the ranks; in each pass a rank does its next cell, if the results that it waits for are there.
// An output is there when it is computed, or, in a schedule with transfers, when it is sent. Returns the
// ranks that are left waiting: none if the whole schedule can run. Stages and micro-batches must be within
// the schedule's.
std::vector<BlockedRank> walk(const Schedule& schedule,
                              const std::function<void(int rank, std::span<const Action> cell)>& visit);

}  // namespace shardscope::trainer::pipeline
