// Checks that an output file is not one of the inputs.
#pragma once

#include <string>
#include <vector>

namespace shardscope::traces::store {

// Whether both names refer to one existing file, also through "./", a symbolic link or a hard link.
bool same_file(const std::string& a, const std::string& b);

// Throws StoreError if `output` is one of the inputs, or SQLite's journal next to one.
void check_apart(const std::vector<std::string>& inputs, const std::string& output);

}  // namespace shardscope::traces::store
