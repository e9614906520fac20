// Whether the database that a trace lies in is whole: every page, row and index entry where SQLite expects
// it.
#pragma once

#include <string>

namespace shardscope::traces {

// One sentence that names the first fault and how many more there are; empty where there is none. Reads the
// whole file. Throws StoreError where the file cannot be opened at all.
std::string damage_of(const std::string& path);

}  // namespace shardscope::traces
