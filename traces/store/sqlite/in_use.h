// Whether another program currently has a database open. Internal to the store.
#pragma once

#include <string>

namespace shardscope::traces::store {

// The id of a process that holds SQLite's lock on the file: for a trace, one that records it (for the whole
// run) or reads it (while it loads). 0 if there is none, or if `path` cannot be opened. Locks of this process
// do not count; it must not have the file open itself, since asking would release them.
int process_that_uses(const std::string& path);

}  // namespace shardscope::traces::store
