// shardscope-train bench: the speed of a job in the form of Horovod's synthetic benchmarks, over engines of
// collectives and numbers of ranks. Each measurement is a run of its own process.
#pragma once

#include <string>
#include <vector>

#include "trainer/cli/bench_report.h"
#include "trainer/job/job.h"

namespace shardscope::trainer::cli {

struct BenchOptions {
    BenchLength length;
    std::vector<std::string> engines;  // empty: the job's own
    std::vector<int> ranks;            // empty: the job's own number
    bool json = false;
};

// `file` is the job file. Returns the exit status: 0 if at least one was measured, 1 if none was, 128 + n
// after signal n. Throws JobError before anything runs.
int bench(const std::string& file, const std::vector<job::Override>& overrides, const BenchOptions& options);

}  // namespace shardscope::trainer::cli
