// What is written must not be what is read.
#pragma once

#include <string>
#include <vector>

namespace shardscope::traces {

// Whether both names are of one file that is there, also through "./", a link or a hard link.
bool same_file(const std::string& a, const std::string& b);

// Throws StoreError where `output` is one of the inputs, or SQLite's journal beside one.
void check_apart(const std::vector<std::string>& inputs, const std::string& output);

}  // namespace shardscope::traces
