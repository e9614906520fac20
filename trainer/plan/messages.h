// Whether the Plans of a pipeline's places can run together: each message that one sends is received by the
// other, in the same order and with the same size, and nothing waits forever. Found when the Plans are made.
//
// Streams and events are those of the executor, and a send ends when its receiver has taken the data, as
// between threads and in NCCL. (Between processes a small message is sent ahead, which waits for less.) All
// other work ends as soon as it can begin; collectives of the whole pipeline wait for all places.
#pragma once

#include <string>
#include <vector>

#include "trainer/plan/mesh.h"
#include "trainer/plan/plan.h"

namespace shardscope::trainer::plan {

// `plans`: of the same step, by place in the pipeline. The first thing that is wrong, as one sentence with
// the ranks (the first of each place) and the numbers of their operations, which --dry-run prints; empty if
// the Plans can run.
std::string find_message_problem(const Mesh& mesh, const std::vector<const Plan*>& plans);

}  // namespace shardscope::trainer::plan
