// Whether another program has a database open just now. Internal to the store.
#pragma once

#include <string>

namespace shardscope::traces {

// The number of a process that holds SQLite's lock on the file: for a trace, one that records it (all the
// time) or reads it (while it loads). 0 where there is none, or `path` cannot be opened. Locks of this
// process do not count; it must not have the file open itself, since asking would release them.
int process_that_uses(const std::string& path);

}  // namespace shardscope::traces
