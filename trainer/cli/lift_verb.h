// shardscope-train plan TRACE: a recorded run of FSDP or DDP, replayed as it was and under other settings.
#pragma once

#include <string>
#include <vector>

#include "trainer/cli/plan_verb.h"
#include "trainer/job/job.h"

namespace shardscope::trainer::cli {

struct LiftOptions {
    double bandwidth = 0;  // GB/s (10^9) on the bus of each collective; 0: as recorded
    bool only = false;     // no key varies that is not given
    std::string cluster;   // cost model whose links carry collectives; empty: as recorded
};

// Whether `path` should be lifted: anything that exists and is not a job file.
bool is_trace(const std::string& path);

// Returns the exit status: 0, 1 if the trace cannot be lifted, 128 + n after signal n. Throws JobError and
// traces::store::StoreError.
int plan_trace(const std::string& file, const std::vector<job::Override>& overrides,
               const PlanOptions& options, const LiftOptions& lift);

}  // namespace shardscope::trainer::cli
