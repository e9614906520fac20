// See reported_run.h.
#include <algorithm>
#include <filesystem>

#include <fmt/core.h>

#include "traces/analysis/advice/advice_facts.h"
#include "traces/analysis/answers/answers.h"
#include "traces/analysis/base/step_windows.h"
#include "traces/analysis/facts/info.h"
#include "traces/analysis/memory/memory_curves.h"
#include "traces/report/html_parts.h"
#include "traces/report/html_report.h"
#include "traces/report/print.h"
#include "traces/report/use_lanes.h"

namespace shardscope::traces::report {

std::string run_name(const std::string& path) {
    const std::filesystem::path full = std::filesystem::path(path).lexically_normal();
    const std::string name =
        full.has_filename() ? full.filename().string() : full.parent_path().filename().string();
    return name.empty() ? path : name;
}

std::string part_text(const store::Trace& trace, const analysis::Selection& selection) {
    std::string part;
    const auto add = [&](const std::string& text) { part += (part.empty() ? "" : ", ") + text; };
    if (selection.rank) add(fmt::format("rank {}", *selection.rank));
    if (selection.first_step && selection.last_step == selection.first_step) {
        add(fmt::format("step {}", *selection.first_step));
    } else if (selection.first_step || selection.last_step) {
        add(fmt::format("steps {} to {}",
                        selection.first_step ? fmt::format("{}", *selection.first_step) : "the first",
                        selection.last_step ? fmt::format("{}", *selection.last_step) : "the last"));
    }
    if (selection.from_ns || selection.to_ns) {
        add(fmt::format("{} to {} ms", milliseconds(selection.from_ns.value_or(trace.first_ns)),
                        milliseconds(selection.to_ns.value_or(trace.last_ns))));
    }
    return part;
}

ReportedRun reported_run(const store::Trace& trace, const std::string& path,
                         const analysis::Selection& selection, double price_per_device_hour) {
    const analysis::AdviceFacts facts(trace, selection);
    ReportedRun run{.name = run_name(path),
                    .info = analysis::trace_info(trace),
                    .summary = summarize(trace, selection),
                    .modules = module_view(trace, selection),
                    .memory = memory_report(trace, selection),
                    .collectives = collectives_report(trace, selection),
                    .bus_bandwidth = analysis::bus_bandwidth(trace, selection),
                    .overlap = overlap_report(trace, selection),
                    .exposed = exposed_report(trace, selection),
                    .units = units_report(trace, selection),
                    .pipeline = pipeline_report(trace, selection),
                    .advice = advice_of(facts),
                    .utilization = {},
                    .metrics = metrics_report(trace, selection),
                    .diverged = analysis::diverged_step(trace)};
    if (!trace.devices.empty() || !trace.topology.empty()) run.topology = topology_report(trace, selection);
    run.answers = answers(facts, run.advice, selection).answers;
    for (const analysis::RankMemory& memory : run.memory.ranks) {
        run.curves.push_back(selected_memory_curve(trace, trace.rank_of_number(memory.rank), selection));
    }
    if (trace.segments.size() > 0) run.allocator = allocator_report(trace, selection);
    analysis::UtilizationOptions lanes = kPageLanes;
    lanes.price_per_device_hour = price_per_device_hour;
    run.utilization = utilization_report(trace, selection, lanes);
    run.info.counts = row_counts(trace, selection);
    run.part = part_text(trace, selection);
    for (const store::Rank& rank : trace.ranks) {
        if (!rank.host.empty() && std::find(run.hosts.begin(), run.hosts.end(), rank.host) == run.hosts.end())
            run.hosts.push_back(rank.host);
    }
    for (const analysis::HostUse& host : run.utilization.hosts) {
        if (!host.host.empty() && std::find(run.hosts.begin(), run.hosts.end(), host.host) == run.hosts.end())
            run.hosts.push_back(host.host);
    }
    return run;
}

std::optional<ReportedComparison> reported_comparison(const std::vector<const store::Trace*>& traces,
                                                      const std::vector<analysis::Selection>& selections) {
    if (traces.size() < 2) return std::nullopt;
    std::vector<std::string> files;
    files.reserve(traces.size());
    for (const store::Trace* trace : traces) files.push_back(trace->path);
    ReportedComparison comparison{.answers = compared_answers(traces, analysis::run_names(files), selections),
                                  .whole = compare(traces, selections),
                                  .parts = {}};
    for (const analysis::CompareBy by :
         {analysis::CompareBy::module, analysis::CompareBy::unit, analysis::CompareBy::collective,
          analysis::CompareBy::operation, analysis::CompareBy::kernel})
        comparison.parts.push_back(compare_parts(traces, by, selections));
    return comparison;
}

}  // namespace shardscope::traces::report
