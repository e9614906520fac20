// Whether the write-ahead journal beside a trace can be read. SQLite takes one that cannot for an empty one
// and says nothing.
#pragma once

#include <string>

namespace shardscope::traces {

// A sentence where `path` + "-wal" holds something and not one change that SQLite would read; else "". One
// that was cut later on ends as that of a killed run does, and nobody can tell the two apart.
std::string damage_of_wal(const std::string& path);

}  // namespace shardscope::traces
