// What a person gave as input: files, a folder of them, the ranks that they are.
#pragma once

#include <string>
#include <vector>

namespace shardscope::traces {

struct InputFile {
    std::string path;
    int rank = 0;  // as its name or its place tells; the file itself may know better
};

// A folder stands for the traces in it (not in folders below). Ranks: by the names where all names tell
// different ones ("rank3", "worker_3", or "trace_0" to "trace_7" for eight files), else by order, names with
// numbers in the order of these. Throws StoreError where something is not there or a folder holds no trace.
std::vector<InputFile> list_inputs(const std::vector<std::string>& paths);
// Their paths alone.
std::vector<std::string> file_paths(const std::vector<std::string>& paths);

// The rank that a file's name tells: "rank3", "rank_3", "worker3"; -1 none.
int rank_of_name(const std::string& path);

}  // namespace shardscope::traces
