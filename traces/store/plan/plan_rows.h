// SHARD_PLAN, written and read: what a planner says of each configuration. Internal to the store.
#pragma once

#include <vector>

#include "traces/store/rows.h"
#include "traces/store/sqlite/insert.h"

namespace shardscope::traces {

std::vector<BatchInsert::Target> plan_targets();
// The values of one row, in the order of the targets.
void insert_plan(BatchInsert& into, const PlanRow& row);

}  // namespace shardscope::traces
