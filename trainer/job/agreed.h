// What the ranks of a job must have in common before they train together.
#pragma once

#include <string>
#include <string_view>

#include "trainer/job/job.h"

namespace shardscope::trainer::job {

// Every key that must be the same on all ranks (not Key::own) with its value, one per line; for a
// key that all ranks or none must set, whether it is set.
std::string agreed_values(const Job& job);

// Throws JobError, naming the keys, if the job differs from that of rank 0, whose agreed_values() are
// `of_rank_0`.
void check_agreed(const Job& job, std::string_view of_rank_0);

}  // namespace shardscope::trainer::job
