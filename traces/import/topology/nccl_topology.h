// What NCCL writes about a host: its topology (NCCL_TOPO_DUMP_FILE) with the PCIe tree, NVLinks and adapters,
// and its graphs (NCCL_GRAPH_DUMP_FILE), whose rings tell in which order a host's GPUs pass data on.
#pragma once

#include <string>
#include <string_view>

#include "traces/import/topology/topology_text.h"

namespace shardscope::traces::importer {

// Of either file. Rings become facts with keys "nccl.rings." + host and the GPUs' numbers
// ("0,1,3,2;0,2,3,1"). Throws StoreError with one sentence that names the line.
Topology read_nccl_topology(std::string_view text, const std::string& name, const std::string& host);

// Whether a file begins like one of them.
bool is_nccl_topology(std::string_view head);

}  // namespace shardscope::traces::importer
