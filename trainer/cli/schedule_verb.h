// shardscope-train schedule: shows a pipeline schedule by name or from a file, or compares all of them.
#pragma once

#include <optional>
#include <string>

namespace shardscope::trainer::cli {

struct ScheduleOptions {
    std::string what = "all";  // a name, a .csv file, or "all"
    std::optional<int> pipeline, micro_batches, chunks;
    std::string costs = "1,1,1", transfer = "0";  // as parse_costs() takes them
    bool transfers = false;                       // the actions as they are lowered
    std::string format = "table";                 // table, json, csv
    std::string output;                           // file for the actions; "": none
    std::string trace;                            // file for the replay as a trace; "": none
    bool overwrite = false;
};

// Returns the exit status. Throws JobError (an option or a file that cannot be used) and
// traces::store::StoreError.
int show_schedule(const ScheduleOptions& options);

}  // namespace shardscope::trainer::cli
