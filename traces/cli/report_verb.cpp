#include "traces/cli/report_verb.h"

#include <algorithm>
#include <filesystem>
#include <memory>

#include <fmt/format.h>

#include "traces/cli/analyse.h"
#include "traces/cli/verbs.h"
#include "traces/export/text_output.h"
#include "traces/report/html_report.h"
#include "traces/store/error.h"
#include "traces/store/trace.h"

namespace shardscope::traces {

namespace {

std::string name_of(const std::string& path) {
    const std::filesystem::path full = std::filesystem::path(path).lexically_normal();
    const std::string name =
        full.has_filename() ? full.filename().string() : full.parent_path().filename().string();
    return name.empty() ? path : name;
}

}  // namespace

ReportedRun run_of(const Trace& trace, const std::string& path, const Selection& selection) {
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

int run_report(const ReportArguments& arguments) {
    const Selection selection = parse_selection(arguments.inputs.selection);
    try {
        TextOutput::check(arguments.output, arguments.overwrite);
    } catch (const StoreError& error) {
        throw UsageError(error.what());
    }
    std::vector<std::unique_ptr<Trace>> traces;
    std::vector<const Trace*> pointers;
    std::vector<ReportedRun> runs;
    for (const std::string& file : arguments.inputs.files) {
        Inputs one = arguments.inputs;
        one.files = {file};
        traces.push_back(load(one));
        check_selection(selection, *traces.back());
        pointers.push_back(traces.back().get());
        runs.push_back(run_of(*traces.back(), file, selection));
    }
    std::optional<Comparison> comparison;
    if (runs.size() > 1) comparison = compare(pointers);
    TextOutput output(arguments.output, arguments.overwrite, false);
    output.buffer() = html_report(runs, comparison, {.title = arguments.title, .redact = arguments.redact});
    output.finish();
    fmt::print(stderr, "shardscope-trace: {} written\n", arguments.output);
    return kDone;
}

}  // namespace shardscope::traces
