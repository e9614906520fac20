// What `plan` writes: a row as a job file or as its simulated trace, and all rows as a database.
#pragma once

#include <string>

#include "traces/store/write/writer.h"
#include "trainer/cli/plan_report.h"
#include "trainer/planner/space.h"

namespace shardscope::trainer {

// Throws JobError: the command line's request cannot be fulfilled.
[[noreturn]] void refuse_argument(const std::string& what, const std::string& why);

// Options of a database that is computed now, not recorded on a machine.
traces::WriterOptions writer_options(const std::string& file, bool overwrite);

// Writes *.toml: a job file that gives the row's figures when it is run; otherwise a simulated trace.
// `plan_of` is the job file that was planned, for the comment. Throws JobError or StoreError where the file
// cannot be written, OutOfMemory for the trace of a row that does not fit.
void write_row(const planner::Row& row, const sim::Cluster& cluster, const std::string& plan_of,
               const std::string& file, bool overwrite);

// Writes a trace database without events, whose SHARD_PLAN has all rows and SHARD_PLAN_PARTS their memory by
// formula. `trace` is that of the row `traced`; "": none is written.
void write_database(const PlanResult& result, const planner::ClusterMaker& cluster_of,
                    const std::string& plan_of, const std::string& file, bool overwrite, int traced,
                    const std::string& trace);

}  // namespace shardscope::trainer
