// The memory of a rank as a checkpoint fills it, if its Program holds weights in int8.
#pragma once

#include "trainer/executor/rank_runner.h"
#include "trainer/plan/host_view.h"
#include "trainer/sharding/program.h"

namespace shardscope::trainer::executor {

// The fp32 values of a parameter that the Program's optimizer says is at `where`: in place, or, if it is held
// in int8, on the host until commit() quantizes them. That throws RunError if a value is not finite.
plan::HostView parameter_values(const sharding::Program& program, RankRunner& runner, const plan::Arg& where);

}  // namespace shardscope::trainer::executor
