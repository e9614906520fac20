// Adds devices and links to a copy of a trace: what was learnt elsewhere (a pasted table, NCCL's dump).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "traces/merge/work.h"
#include "traces/schema/rows.h"

namespace shardscope::traces::merge {

struct AttachOptions {
    std::string input, output;
    bool overwrite = false;
    std::vector<schema::DeviceRow> devices;
    std::vector<schema::TopologyRow> topology;
    std::vector<std::pair<std::string, std::string>> facts;  // of the run
};

// The names of the hosts of a trace's ranks, sorted. Throws StoreError.
std::vector<std::string> hosts_of_file(const std::string& path);

// Writes the copy. What a row states replaces what the trace has for the same device or pair; what it leaves
// open stays. A pair that is given in one direction alone is given for both. Throws StoreError, Cancelled;
// then no output is left.
void attach_topology(const AttachOptions& options, const WorkOptions& work = {});

}  // namespace shardscope::traces::merge
