// The table of commands. A command that only analyses is just a row here; one with options of its own is
// declared in the source of its subject and has a row here.
#include "traces/analysis/advice/advice.h"
#include "traces/analysis/communication/bus_bandwidth.h"
#include "traces/analysis/communication/collectives.h"
#include "traces/analysis/communication/distributed.h"
#include "traces/analysis/communication/stragglers.h"
#include "traces/analysis/fsdp/units.h"
#include "traces/analysis/modules/modules.h"
#include "traces/analysis/pipeline/pipeline.h"
#include "traces/analysis/time/copies.h"
#include "traces/analysis/time/overlap.h"
#include "traces/analysis/time/steps.h"
#include "traces/analysis/time/temporal.h"
#include "traces/analysis/waits/exposed.h"
#include "traces/cli/analyse.h"
#include "traces/cli/verb.h"

namespace shardscope::traces::cli {

Work info_verb(Options& options);
Work summary_verb(Options& options);
Work memory_verb(Options& options);
Work allocator_verb(Options& options);
Work scaling_verb(Options& options);
Work idle_verb(Options& options);
Work metrics_verb(Options& options);
Work utilization_verb(Options& options);
Work kernels_verb(Options& options);
Work operators_verb(Options& options);
Work samples_verb(Options& options);
Work critical_path_verb(Options& options);
Work answers_verb(Options& options);
Work compare_verb(Options& options);
Work query_verb(Options& options);
Work report_verb(Options& options);
Work timeline_verb(Options& options);
Work export_verb(Options& options);
Work check_verb(Options& options);
Work import_verb(Options& options);
Work merge_verb(Options& options);
Work slice_verb(Options& options);
Work topology_verb(Options& options);
Work watch_verb(Options& options);

namespace {

// `Report`: a function of a trace and a selection whose result render() prints.
template <auto Report>
Work analysis(Options&) {
    return [](const Inputs& inputs) {
        return analyse(inputs,
                       [](const store::Trace& t, const analysis::Selection& s) { return Report(t, s); });
    };
}

// The same for analyses of device work.
template <auto Report>
Work analysis_of_devices(Options&) {
    return [](const Inputs& inputs) {
        return analyse_devices(
            inputs, [](const store::Trace& t, const analysis::Selection& s) { return Report(t, s); });
    };
}

// The same for a list of rows for each rank, which needs no render() of its own.
template <auto Report, auto Fields, auto Rows>
Work rows_of_devices(std::string_view key, std::string_view nothing) {
    return [key, nothing](const Inputs& inputs) {
        return analyse_devices(inputs, [key, nothing](const store::Trace& t, const analysis::Selection& s) {
            return report::rank_rows(key, nothing, Fields(), Report(t, s).ranks, Rows);
        });
    };
}

Work copies(Options&) {
    return rows_of_devices<analysis::copies_report, analysis::copy_fields, &analysis::RankCopies::copies>(
        "copies", "No copies.");
}

Work exposed(Options&) {
    return rows_of_devices<analysis::exposed_report, analysis::exposed_fields,
                           &analysis::RankExposed::shares>("exposed", "Nothing is exposed.");
}

Work distributed(Options& options) {
    const std::string& by = options.text("--by", "axis", "One row per axis of the mesh and nothing else");
    return [&by](const Inputs& inputs) {
        if (!by.empty() && by != "axis") throw UsageError("--by " + by + " is unknown; use axis");
        return analyse_devices(
            inputs,
            [&by](const store::Trace& t, const analysis::Selection& s) {
                analysis::DistributedReport report = distributed_report(t, s);
                report.by_axis = !by.empty();
                return report;
            },
            [](const analysis::DistributedReport& report) { return !report.host_libraries.empty(); });
    };
}

Work collectives(Options& options) {
    const std::string& by = options.text("--by", "size", "Bandwidth over size, and between pairs of ranks");
    return [&by](const Inputs& inputs) {
        if (by.empty())
            return analyse(inputs, [](const store::Trace& t, const analysis::Selection& s) {
                return collectives_report(t, s);
            });
        if (by != "size") throw UsageError("--by " + by + " is unknown; use size");
        return analyse(inputs, [](const store::Trace& t, const analysis::Selection& s) {
            return analysis::bus_bandwidth(t, s);
        });
    };
}

constexpr Verb kVerbs[] = {
    {"info", "What a trace contains: ranks, steps, counts, configuration", Reads::traces, info_verb},
    {"summary", "Execution Summary: where the time of a step went", Reads::selection, summary_verb},
    {"modules", "Module View: the module tree with host and device time", Reads::selection,
     analysis<analysis::module_view>},
    {"memory", "Peak memory of each rank and what was allocated at the peak", Reads::selection, memory_verb},
    {"allocator",
     "Reserved memory replayed under other settings of PyTorch's allocator; what would have fitted",
     Reads::selection, allocator_verb},
    {"collectives", "Collectives by operation: counts, bytes, time, bandwidth", Reads::selection,
     collectives},
    {"units", "FSDP units: gathers, reductions, waits, and what hid them", Reads::selection,
     analysis_of_devices<analysis::units_report>},
    {"distributed", "Ranks together: overlap, traffic by group and size, transfer and waiting",
     Reads::selection, distributed},
    {"pipeline", "Pipeline: how long each rank computes nothing within a step, by cause", Reads::selection,
     analysis<analysis::pipeline_report>},
    {"stragglers", "Which rank comes last in collectives, how often and how long others wait",
     Reads::selection, analysis<analysis::straggler_report>},
    {"scaling", "Runs at several sizes: throughput, speed-up, efficiency, what grew", Reads::selection,
     scaling_verb},
    {"steps", "Step by step: how long, where the time went, which was slowest", Reads::selection,
     analysis<analysis::steps_report>},
    {"metrics", "Losses, learning rate, throughput and what else training reported, by step",
     Reads::selection, metrics_verb},
    {"utilization", "What devices, hosts and ranks did: utilization, memory, power, energy, cost",
     Reads::selection, utilization_verb},
    {"overlap", "Overlap of communication and compute: computation, overlapped, exposed, other",
     Reads::selection, analysis_of_devices<analysis::overlap_report>},
    {"exposed", "Why communication and copies are exposed: late ranks, queues, the host, too little compute",
     Reads::selection, exposed},
    {"temporal", "Device time: idle, compute, exposed communication, exposed memory", Reads::selection,
     analysis_of_devices<analysis::temporal_breakdown>},
    {"idle", "Why streams were idle; launch delays and queue lengths", Reads::selection, idle_verb},
    {"kernels", "Kernels by name: count, times, share, occupancy", Reads::selection, kernels_verb},
    {"copies", "Copies and fills of memory by kind: size, time, rate, what kernels hide", Reads::selection,
     copies},
    {"operators", "Operators by name: calls, host and device time", Reads::selection, operators_verb},
    {"samples", "Functions by processor time, from samples of threads; flame graphs", Reads::selection,
     samples_verb},
    {"critical-path", "What each step waited for, from its end back to its start", Reads::selection,
     critical_path_verb},
    {"advice", "What could be improved, with the evidence and what to change", Reads::selection,
     analysis<analysis::advice>},
    {"answers",
     "Five questions answered in a sentence each: memory, time, communication, ranks, what to change",
     Reads::selection, answers_verb},
    {"compare", "Several runs side by side, against the first", Reads::selection, compare_verb},
    {"query", "The result of SQL on a trace", Reads::what_it_declares, query_verb},
    {"report", "One HTML file about a run, or about several side by side", Reads::selection, report_verb,
     false},
    {"timeline", "One HTML file with the rows of a trace, to zoom and search in a browser", Reads::selection,
     timeline_verb, false},
    {"export", "A trace for other tools: Chrome JSON or CSV", Reads::traces, export_verb},
    {"check", "Whether a trace is complete; exit status 0 complete, 1 not", Reads::what_it_declares,
     check_verb},
    {"import", "Traces of other tools, imported into a trace of ours", Reads::traces, import_verb},
    {"merge", "Parts of one job, from processes or hosts, merged into one trace", Reads::what_it_declares,
     merge_verb},
    {"slice", "Ranks, steps or a range of time of a trace, as a trace of its own", Reads::what_it_declares,
     slice_verb},
    {"topology", "A trace with the links of its hosts' devices, as nvidia-smi topo printed them",
     Reads::what_it_declares, topology_verb},
    {"watch", "A run while it lasts: progress, speed, memory, each rank, who waits for whom",
     Reads::what_it_declares, watch_verb},
};

}  // namespace

std::span<const Verb> verb_table() {
    return kVerbs;
}

}  // namespace shardscope::traces::cli
