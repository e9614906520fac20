// Writes a configuration as a job file that can be run by hand.
#pragma once

#include <string>
#include <string_view>

#include "trainer/job/job.h"

namespace shardscope::trainer::planner {

// TOML with every key that was given or is not at its default, from which load_job makes the same job.
// `comment`: lines for the top, each written after "# ". Omits the trace's keys.
std::string job_file(const job::Job& job, std::string_view comment = {});

}  // namespace shardscope::trainer::planner
