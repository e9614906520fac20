// Shows a run until it ends: a screen that is redrawn in place, lines in a log, or the server's own lines.
#pragma once

#include <string>

#include "traces/watch/source.h"

namespace shardscope::traces::watch {

struct WatchOptions {
    bool once = false;    // one status, and the end
    bool json = false;    // the lines as the server sends them
    bool screen = false;  // standard output is a terminal that can be redrawn
    bool colours = false;
};

// Returns the exit status: 0 the run has ended and said so (or one status was shown), 1 its server is gone,
// 128 + n after signal n. Throws StatusError and StoreError.
int watch(Source& source, const WatchOptions& options);

}  // namespace shardscope::traces::watch
