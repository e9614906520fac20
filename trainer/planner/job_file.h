// A configuration as a job file that can be run by hand.
#pragma once

#include <string>
#include <string_view>

#include "trainer/job/job.h"

namespace shardscope::trainer::planner {

// TOML with every key that the job was given or that is not at its default: load_job makes the same job of
// it. `comment`: lines at the top, each after "# ". The trace's keys are omitted.
std::string job_file(const Job& job, std::string_view comment = {});

}  // namespace shardscope::trainer::planner
