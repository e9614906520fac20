// shardscope-train JOB.toml --bench-collectives: the performance of the job's process group.
#pragma once

#include <string>
#include <vector>

#include "trainer/cli/join.h"
#include "trainer/job/job.h"

namespace shardscope::trainer::cli {

struct CollectivesBenchOptions {
    bool wanted = false;               // --bench-collectives was given
    std::string format = "table";      // or "json", "csv"
    std::string sizes;                 // "FROM:TO"; empty: 8 bytes to 64 MiB
    bool messages = false;             // messages alone
    bool pairs = false;                // messages between all pairs of ranks
    std::vector<std::string> engines;  // each in runs of its own; empty: the job's own, in this process
};

// Throws JobError if an option has a wrong value.
void check(const CollectivesBenchOptions& options);

// Measures each collective, and messages, at each size among the job's ranks and prints the result; if a
// trace is recorded, each measurement is a step in it. On run.device = "sim" the cost model predicts them.
// `joined` may be null. Returns the exit status. Throws as train() does.
int bench_collectives(const job::Job& job, const CollectivesBenchOptions& options, Joined* joined);

// The same over each of the engines, side by side: each is measured by a run of its own. `file` is the job
// file. Returns 0 if at least one was measured, 1 if none was, 128 + n after signal n. Throws JobError before
// anything runs.
int bench_collectives_of_engines(const std::string& file, const std::vector<job::Override>& overrides,
                                 const job::Job& job, const CollectivesBenchOptions& options);

}  // namespace shardscope::trainer::cli
