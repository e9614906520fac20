// See reported_run.h.
#include "traces/report/reported_run.h"

#include <algorithm>
#include <filesystem>

namespace shardscope::traces {
namespace {

std::string name_of(const std::string& path) {
    const std::filesystem::path full = std::filesystem::path(path).lexically_normal();
    const std::string name =
        full.has_filename() ? full.filename().string() : full.parent_path().filename().string();
    return name.empty() ? path : name;
}

}  // namespace

ReportedRun reported_run(const Trace& trace, const std::string& path, const Selection& selection) {
    ReportedRun run{.name = name_of(path),
                    .info = trace_info(trace),
                    .summary = summarize(trace, selection),
                    .modules = module_view(trace, selection),
                    .memory = memory_report(trace, selection),
                    .collectives = collectives_report(trace, selection),
                    .overlap = overlap_report(trace, selection),
                    .units = units_report(trace, selection),
                    .advice = advice(trace, selection)};
    for (const RankMemory& memory : run.memory.ranks) {
        const auto rank = std::find_if(trace.ranks.begin(), trace.ranks.end(),
                                       [&](const Rank& r) { return r.number == memory.rank; });
        run.curves.push_back(memory_curve(trace, static_cast<int>(rank - trace.ranks.begin())));
    }
    for (const Rank& rank : trace.ranks) {
        if (!rank.host.empty() && std::find(run.hosts.begin(), run.hosts.end(), rank.host) == run.hosts.end())
            run.hosts.push_back(rank.host);
    }
    return run;
}

}  // namespace shardscope::traces
