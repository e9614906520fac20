// What the stages of a pipeline cost, and the division of a model's layers that makes them as equal as
// possible.
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/job/job.h"
#include "trainer/model/module.h"
#include "trainer/plan/plan.h"

namespace shardscope::trainer::sharding {

// FLOPs of a step's forwards and backwards by child of `layers`, the module whose children stages divide.
// The loss counts for the last child.
std::vector<std::int64_t> flops_by_child(const plan::Plan& step, const model::ModuleTree& tree,
                                         const model::Module& layers);

// The same of one micro-batch of the job's model in one piece.
std::vector<std::int64_t> flops_by_child(const job::Job& job);

// How many of the layers, whose costs are given in their order, each of `stages` has (one or more), so that
// the most expensive stage costs as little as possible, and among those divisions the sum of squares is
// least.
std::vector<std::size_t> divide_by_cost(const std::vector<std::int64_t>& costs, std::size_t stages);

}  // namespace shardscope::trainer::sharding
