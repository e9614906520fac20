// watch: a run while it lasts, from its status server or from the trace that it writes.
#include <cstdlib>
#include <string_view>

#include <unistd.h>

#include "traces/cli/verb.h"
#include "traces/status/run_status.h"
#include "traces/watch/watch.h"

namespace shardscope::traces::cli {

Work watch_verb(Options& options) {
    const auto& given = options.arguments(
        "RUN", "FILE|ADDRESS",
        "The trace that the run writes (its own status is asked if it was started with --status), the "
        "run's socket, or its HOST:PORT; the only socket in this folder if none is given");
    const bool& once = options.flag("--once", "Show the run as it is now, all ranks, and exit");
    options.footer(
        "On a terminal the screen is redrawn in place until the run ends, or Ctrl-C; elsewhere a line is "
        "printed\n"
        "every 5 s and when something changes. --format json prints each line as the server sends it\n"
        "(docs/status.md). A server that others can reach asks for a token: SHARDSCOPE_STATUS_TOKEN, or\n"
        "SHARDSCOPE_STATUS_TOKEN_FILE with the path of a file that only you can read.\n"
        "Exit status: 0 the run has ended, 1 its server is gone or cannot be reached, 2 a wrong command "
        "line,\n"
        "130 Ctrl-C.");
    return [&given, &once](const Inputs& inputs) {
        if (given.size() > 1)
            throw UsageError("watch: it shows one run; give one trace, socket or HOST:PORT");
        if (inputs.format == report::Format::csv)
            throw UsageError("watch: --format csv is not there; use table or json");
        watch::WatchOptions how;
        how.once = once;
        how.json = inputs.format == report::Format::json;
        const char* terminal = std::getenv("TERM");
        const char* no_colour = std::getenv("NO_COLOR");
        how.screen =
            ::isatty(STDOUT_FILENO) != 0 && terminal != nullptr && std::string_view(terminal) != "dumb";
        how.colours = how.screen && (no_colour == nullptr || *no_colour == '\0');
        const auto source = watch::open_source(given.empty() ? std::string() : given[0],
                                               [](const char* name) { return std::getenv(name); });
        return watch::watch(*source, how);
    };
}

}  // namespace shardscope::traces::cli
