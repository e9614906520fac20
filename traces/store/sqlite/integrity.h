// Whether a trace's database is intact: every page, row and index entry is where SQLite expects it.
#pragma once

#include <string>

namespace shardscope::traces::store {

// One sentence that names the first fault and the number of others; empty if there is none. Reads the whole
// file. Throws StoreError if the file cannot be opened at all.
std::string damage_of(const std::string& path);

}  // namespace shardscope::traces::store
