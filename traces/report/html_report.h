// One HTML file that reports one run, or several side by side, and can be sent by mail: no script, nothing
// loaded from elsewhere, readable on a desktop, on a phone and on paper, light and dark.
//
// It only prints: every number comes from the analyses' results. Every text of a trace is escaped.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "traces/analysis/advice/advice.h"
#include "traces/analysis/answers/answers.h"
#include "traces/analysis/base/selection.h"
#include "traces/analysis/communication/bus_bandwidth.h"
#include "traces/analysis/communication/collectives.h"
#include "traces/analysis/compare/compare_parts.h"
#include "traces/analysis/facts/info.h"
#include "traces/analysis/fsdp/units.h"
#include "traces/analysis/job/utilization.h"
#include "traces/analysis/memory/allocator_report.h"
#include "traces/analysis/memory/memory.h"
#include "traces/analysis/modules/modules.h"
#include "traces/analysis/pipeline/pipeline.h"
#include "traces/analysis/time/overlap.h"
#include "traces/analysis/time/summary.h"
#include "traces/analysis/topology/pair_traffic.h"
#include "traces/analysis/training/metrics.h"
#include "traces/analysis/waits/exposed.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::report {

struct ReportedRun {
    std::string name;  // the file's name without its folder
    analysis::TraceInfo info;
    analysis::ExecutionSummary summary;
    analysis::ModuleView modules;
    analysis::MemoryReport memory;
    std::vector<std::vector<analysis::MemoryPoint>>
        curves;                           // curves of the ranks of `memory`, in the selected time
    analysis::AllocatorReport allocator;  // of traces with segments
    std::string part;  // which part of the run is selected, "rank 0, steps 1 to 2"; empty: all of it
    analysis::CollectivesReport collectives;
    analysis::BusBandwidthReport bus_bandwidth;
    analysis::OverlapReport overlap;
    analysis::ExposedReport exposed;
    analysis::TopologyReport topology;
    analysis::UnitsReport units;
    analysis::PipelineReport pipeline;
    analysis::AdviceReport advice;
    analysis::UtilizationReport utilization;
    analysis::MetricsReport metrics;
    std::optional<std::int64_t> diverged;  // the step from which its losses did
    std::vector<analysis::Answer> answers;
    std::vector<std::string> hosts;  // names of the machines, for redaction
};

struct ReportedComparison {
    std::vector<analysis::Answer> answers;
    analysis::Comparison whole;
    std::vector<analysis::PartsComparison> parts;  // one for each CompareBy
};

struct HtmlOptions {
    std::string title;    // empty: made from the runs' names
    bool redact = false;  // omits names of machines and users, paths, command lines and stack frames
};

// `comparison` is given for several runs, and has them in the same order.
std::string html_report(const std::vector<ReportedRun>& runs,
                        const std::optional<ReportedComparison>& comparison, const HtmlOptions& options = {});

// The run is named after `path`: the file, or the folder if several files of a folder are one run.
// `price_per_device_hour`: as in UtilizationOptions.
ReportedRun reported_run(const store::Trace& trace, const std::string& path,
                         const analysis::Selection& selection, double price_per_device_hour = 0);

// Several runs compared with the first of them, each in its own selection; nullopt for fewer than two.
std::optional<ReportedComparison> reported_comparison(const std::vector<const store::Trace*>& traces,
                                                      const std::vector<analysis::Selection>& selections);

}  // namespace shardscope::traces::report
