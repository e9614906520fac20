// Whether the write-ahead journal next to a trace is readable. SQLite silently treats an unreadable one as
// empty.
#pragma once

#include <string>

namespace shardscope::traces::store {

// A sentence if `path` + "-wal" contains data but not one change that SQLite would read; else "". A journal
// that was truncated later on looks like that of a killed run; the two cannot be distinguished.
std::string damage_of_wal(const std::string& path);

}  // namespace shardscope::traces::store
