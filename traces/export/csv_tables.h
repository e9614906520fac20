// Exports a trace database as CSV files (RFC 4180), one for each kind of row, for spreadsheets and data
// frames. The header contains the units: start_ns, bytes. Names are resolved, and every row has its rank.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "traces/merge/work.h"

namespace shardscope::traces::exports {

struct CsvTable {
    std::string file;  // "events.csv"
    std::int64_t rows = 0;
};

// Writes events.csv (kernels, memcpys and memsets), ranges.csv, calls.csv, collectives.csv, memory.csv,
// counters.csv, metrics.csv, steps.csv, modules.csv and units.csv of the Shardscope database `input` into
// `folder`, which is created if missing. Each file gets its name when it is complete. Throws StoreError;
// Cancelled on demand.
std::vector<CsvTable> export_csv(const std::string& input, const std::string& folder, bool overwrite,
                                 const merge::WorkOptions& work = {});

}  // namespace shardscope::traces::exports
