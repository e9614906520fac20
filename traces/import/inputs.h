// The user's input: files, folders of files, and the rank of each file.
#pragma once

#include <string>
#include <vector>

namespace shardscope::traces::importer {

struct InputFile {
    std::string path;
    int rank = 0;  // from its name or its position; the file itself may have another one
};

// A folder stands for the traces in it (not in subfolders). Ranks come from the numbers in the file names if
// these are all different ("rank3", "worker_3", or "trace_0" to "trace_7" for eight files), otherwise from
// the order of the files (natural sort). Throws StoreError if an input does not exist or a folder contains no
// trace.
std::vector<InputFile> list_inputs(const std::vector<std::string>& paths);
// Their paths alone.
std::vector<std::string> file_paths(const std::vector<std::string>& paths);

// The rank in a file's name ("rank3", "rank_3", "worker3"), -1 if there is none.
int rank_of_name(const std::string& path);

}  // namespace shardscope::traces::importer
