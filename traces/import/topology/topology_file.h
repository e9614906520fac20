// Files that tell which devices a host has and how they reach each other: what nvidia-smi topo printed, and
// what NCCL wrote (NCCL_TOPO_DUMP_FILE, NCCL_GRAPH_DUMP_FILE).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "traces/import/input/importer.h"
#include "traces/import/topology/topology_text.h"

namespace shardscope::traces::importer {

// `host`: the name of the host where the file does not tell it. Throws StoreError with one sentence.
Topology read_topology(Input& input, const std::string& host);
Topology read_topology_file(const std::string& path);
bool is_topology_file(std::string_view head);

// Gives everything that has no host each of these.
void name_hosts(Topology& topology, const std::vector<std::string>& hosts);

// Such a file alone, as a trace without ranks.
FileFacts read_topology_trace(Input& input, store::EventSink& sink, const FileRequest& request);

}  // namespace shardscope::traces::importer
