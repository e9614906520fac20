// What `nvidia-smi topo -m` and `nvidia-smi topo -p2p` print, pasted into a file: which links join the GPUs
// and network adapters of a host, and which GPUs reach each other's memory.
//
// A file may hold several such tables. `-p2p r`, `w`, `n` and `a` print the same table, so that the command
// in a line before it tells them apart; without one, it is the table of reads. A line "Host NAME", as
// `shardscope-trace info --topology` prints it, begins another host.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "traces/schema/rows.h"

namespace shardscope::traces::importer {

struct Topology {
    std::vector<schema::DeviceRow> devices;     // in order()
    std::vector<schema::TopologyRow> topology;  // in order(); a pair once, unless its two directions differ
    std::vector<std::string> notes;             // sentences: what is not kept
    std::vector<std::pair<std::string, std::string>> facts;  // of the run: key, value
};

// `name`: the file's, for messages; `host`: of tables before the first line "Host NAME". Throws StoreError
// with one sentence that names the line.
Topology read_topology_text(std::string_view text, const std::string& name, const std::string& host);

// Whether the first lines of a file have the head of such a table.
bool is_topology_text(std::string_view head);

}  // namespace shardscope::traces::importer
