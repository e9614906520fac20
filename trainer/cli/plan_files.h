// The command line that `plan` reads for both a job file and a trace, and the files it writes: a row as a job
// file or as its simulated trace, and all rows as a database.
#pragma once

#include <string>
#include <vector>

#include "traces/schema/rows.h"
#include "traces/store/write/writer.h"
#include "trainer/cli/plan_report.h"
#include "trainer/cli/plan_verb.h"
#include "trainer/planner/space.h"
#include "trainer/sim/simulator.h"

namespace shardscope::trainer::cli {

// Throws a JobError that says why the command line cannot be carried out.
[[noreturn]] void refuse_argument(const std::string& what, const std::string& why);

// The values that the command line gives, key by key; sweep's syntax.
std::vector<planner::Given> given_values(const std::vector<job::Override>& overrides);

// Throws JobError or StoreError if a file named by the options cannot be written, or is `read`, the input
// file.
void check_outputs(const std::string& read, const PlanOptions& options);

// The row that --write names, from 1 to `all`; `usable` ("1 to 12") is for the JobError.
int row_to_write(const std::string& text, std::size_t all, const std::string& usable);

// The number of threads of a search.
int search_threads();

// Options of a database that is computed now, not recorded on a machine.
traces::store::WriterOptions writer_options(const std::string& file, bool overwrite);

// Writes the program's simulation as a trace, with rows for the first `ranks` ranks, and `facts` about it.
void write_simulation(const sharding::Program& program, const sim::Cluster& cluster, sim::SimOptions options,
                      int ranks, const std::vector<traces::schema::RunInfoRow>& facts,
                      const traces::store::WriterOptions& to);

// The SHARD_PLAN row of a planner::Row or a lift::Replay that is possible: the fields that both have.
template <class Row>
traces::schema::PlanRow plan_row(const Row& row) {
    traces::schema::PlanRow out;
    out.ranks = row.job.run.ranks;
    out.peak_bytes = row.peak.bytes;
    out.moment = row.peak.where;
    out.at_peak = row.peak.at_peak;
    out.peak_unit = row.peak_unit;
    if (!row.peak_unit.empty()) out.peak_unit_bytes = row.peak_unit_bytes;
    out.front = row.front;
    out.same_as = row.same_as;
    return out;
}

// Writes *.toml: a job file that gives the row's figures when it is run; otherwise a simulated trace.
// `plan_of` is the job file that was planned, for the comment. Throws JobError or StoreError if the file
// cannot be written, OutOfMemory for the trace of a row that does not fit.
void write_row(const planner::Row& row, const sim::Cluster& cluster, const std::string& plan_of,
               const std::string& file, bool overwrite);

// Writes a trace database without events, whose SHARD_PLAN has all rows and SHARD_PLAN_PARTS their memory by
// formula. `trace` is the trace of row number `traced`; "": none is written.
void write_database(const PlanResult& result, const planner::ClusterMaker& cluster_of,
                    const std::string& plan_of, const std::string& file, bool overwrite, int traced,
                    const std::string& trace);

}  // namespace shardscope::trainer::cli
