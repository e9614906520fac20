// The machine that a job runs on, for people and for the trace: facts that are not in the job file.
#pragma once

#include <string>
#include <vector>

#include "traces/schema/rows.h"
#include "trainer/executor/processes.h"
#include "trainer/job/job.h"

namespace shardscope::trainer::cli {

struct RunEnvironment {
    std::vector<traces::schema::RunInfoRow> facts;
    std::vector<std::string> notes;
    std::string line;
};

// `processes` may be null. Throws DeviceError if the device cannot be used.
RunEnvironment environment_of(const job::Job& job, const executor::Processes* processes);

}  // namespace shardscope::trainer::cli
