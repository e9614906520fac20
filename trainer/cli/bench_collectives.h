// shardscope-train JOB.toml --bench-collectives: the performance of the job's process group.
#pragma once

#include "trainer/cli/join.h"
#include "trainer/job/job.h"

namespace shardscope::trainer::cli {

// Measures each collective at sizes from 4 KiB to 64 MiB among the job's ranks and prints a table or JSON; if
// a trace is recorded, each measurement is a step in it. `joined` may be null. Returns the exit status.
// Throws as train() does.
int bench_collectives(const job::Job& job, bool json, Joined* joined);

}  // namespace shardscope::trainer::cli
