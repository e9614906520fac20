// See result_page.h.
#include <algorithm>
#include <vector>

#include <fmt/core.h>

#include "traces/analysis/advice/advice.h"
#include "traces/analysis/answers/answers.h"
#include "traces/analysis/communication/bus_bandwidth.h"
#include "traces/analysis/communication/collectives.h"
#include "traces/analysis/communication/distributed.h"
#include "traces/analysis/communication/stragglers.h"
#include "traces/analysis/compare/compare_parts.h"
#include "traces/analysis/compare/scaling.h"
#include "traces/analysis/fsdp/units.h"
#include "traces/analysis/job/utilization.h"
#include "traces/analysis/memory/allocations.h"
#include "traces/analysis/memory/allocator_report.h"
#include "traces/analysis/memory/memory.h"
#include "traces/analysis/modules/modules.h"
#include "traces/analysis/modules/operators.h"
#include "traces/analysis/pipeline/pipeline.h"
#include "traces/analysis/samples/flame.h"
#include "traces/analysis/time/copies.h"
#include "traces/analysis/time/idle.h"
#include "traces/analysis/time/kernels.h"
#include "traces/analysis/time/overlap.h"
#include "traces/analysis/time/steps.h"
#include "traces/analysis/time/summary.h"
#include "traces/analysis/time/temporal.h"
#include "traces/analysis/topology/pair_traffic.h"
#include "traces/analysis/training/metrics.h"
#include "traces/analysis/waits/exposed.h"
#include "traces/report/report.h"

namespace shardscope::traces::report {
namespace {

// The rows of a result: the verb that prints them, their path in its JSON, and whether they are also the rows
// of its CSV.
struct ResultRows {
    std::string_view verb, path;
    bool in_csv;
    std::vector<analysis::ResultColumn> columns;
};

template <class Row>
ResultRows rows_of(std::string_view verb, std::string_view path, bool in_csv, analysis::Fields<Row> fields) {
    return {verb, path, in_csv, {fields.begin(), fields.end()}};
}

std::vector<ResultRows> all_rows() {
    return {
        rows_of("summary", "", true, analysis::category_time_fields()),
        rows_of("modules", "ranks[].modules[], and children[] of each", true, analysis::module_fields()),
        rows_of("collectives", "ranks[].operations[]", true, analysis::collective_fields()),
        rows_of("collectives", "sizes[], with --by size", true, analysis::bandwidth_fields()),
        rows_of("collectives", "pairs[], with --by size", false, analysis::pair_bandwidth_fields()),
        rows_of("distributed", "ranks[]", false, analysis::rank_traffic_fields()),
        rows_of("distributed", "traffic[]", true, analysis::traffic_fields()),
        rows_of("distributed", "axes[], and alone with --by axis", true, analysis::axis_traffic_fields()),
        rows_of("distributed", "slowest[]", false, analysis::slow_collective_fields()),
        rows_of("distributed", "hosts.traffic[]", false, analysis::host_traffic_fields()),
        rows_of("info", "pairs[], with --topology", false, analysis::pair_traffic_fields()),
        rows_of("metrics", "metrics[]", false, analysis::metric_fields()),
        rows_of("metrics", "metrics[].points[]", true, analysis::metric_point_fields()),
        rows_of("utilization", "job", false, analysis::job_use_fields()),
        rows_of("utilization", "hosts[]", false, analysis::host_use_fields()),
        rows_of("utilization", "hosts[].devices[]", true, analysis::device_use_fields()),
        rows_of("utilization", "hosts[].adapters[]", false, analysis::adapter_use_fields()),
        rows_of("utilization", "ranks[]", false, analysis::rank_use_fields()),
        rows_of("utilization", "sampled[] of each of these", false, analysis::sampled_fields()),
        rows_of("pipeline", "ranks[]", true, analysis::pipeline_rank_fields()),
        rows_of("pipeline", "stages[]", false, analysis::stage_work_fields()),
        rows_of("pipeline", "memory[]", false, analysis::stage_memory_fields()),
        rows_of("stragglers", "ranks[] and operations[].ranks[]", true, analysis::arrival_fields()),
        rows_of("overlap", "ranks[], and per_step[] and device_time of each", true,
                analysis::overlap_fields()),
        rows_of("exposed", "ranks[].exposed[]", true, analysis::exposed_fields()),
        rows_of("temporal", "ranks[], and per_step[] of each", true, analysis::temporal_fields()),
        rows_of("idle", "", true, analysis::gap_fields()),
        rows_of("idle", "", true, analysis::launch_delay_fields()),
        rows_of("idle", "ranks[].waits[]", false, analysis::idle_wait_fields()),
        rows_of("kernels", "ranks[].kernels[]", true, analysis::kernel_fields()),
        rows_of("copies", "ranks[].copies[]", true, analysis::copy_fields()),
        rows_of("operators", "ranks[].operators[]", true, analysis::operator_fields(true)),
        rows_of("samples", "functions[]", true, analysis::function_fields()),
        rows_of("memory", "ranks[].allocations[], with --allocations", true, analysis::allocation_fields()),
        rows_of("memory", "ranks[].categories[], units[], modules[] and buffers[], with --explain", true,
                analysis::memory_part_fields()),
        rows_of("allocator", "ranks[].reserved[]", true, analysis::reserved_fields()),
        rows_of("allocator", "ranks[].failures[]", false, analysis::failed_request_fields()),
        rows_of("allocator", "ranks[].account[]", false, analysis::device_account_fields()),
        rows_of("units", "ranks[].units[]", true, analysis::unit_fields()),
        rows_of("units", "ranks[]", false, analysis::unit_rank_fields()),
        rows_of("steps", "ranks[].steps[]", true, analysis::step_fields()),
        rows_of("steps", "across_ranks[]", false, analysis::step_across_fields()),
        rows_of("scaling", "runs[]", true, analysis::scaling_fields()),
        rows_of("scaling", "runs[].operations[]", false, analysis::operation_time_fields()),
        rows_of("advice", "findings[]", true, analysis::finding_fields()),
        rows_of("answers", "compared[] and runs[].answers[]", true, analysis::answer_fields()),
        rows_of("compare", "runs[]", true, analysis::run_fields()),
        rows_of("compare", "parts[].runs[], with --by", true, analysis::part_fields()),
    };
}

std::string_view unit_of(const analysis::ResultColumn& column) {
    switch (column.unit) {
        case analysis::Unit::ns:
            return "ns";
        case analysis::Unit::bytes:
            return "bytes";
        default:
            return symbol(column.unit);
    }
}

// The columns that programs see, each key once; `shown` combines those of all columns of that key.
std::vector<analysis::ResultColumn> keys_of(const ResultRows& rows) {
    std::vector<analysis::ResultColumn> keys;
    for (const analysis::ResultColumn& column : rows.columns) {
        const auto programs = static_cast<std::uint8_t>(column.shown & analysis::in_programs);
        if (programs == 0) continue;
        const auto same = std::find_if(keys.begin(), keys.end(), [&](const analysis::ResultColumn& key) {
            return key.key == column.key;
        });
        if (same == keys.end()) {
            keys.push_back(column);
            keys.back().shown = programs;
        } else {
            same->shown |= programs;
        }
    }
    return keys;
}

}  // namespace

std::string results_markdown() {
    std::string text =
        "# Keys of results\n\n"
        "What `shardscope-trace VERB --format json` and `--format csv` print, row by row; made from the "
        "code. A key is\n"
        "never renamed. Unknown values are `null` in JSON and empty in CSV, where rows of ranks begin with "
        "`rank`.\n"
        "[definitions.md](definitions.md) defines each number.\n";
    std::string_view verb;
    for (const ResultRows& rows : all_rows()) {
        if (rows.verb != verb) text += fmt::format("\n## {}\n", rows.verb);
        verb = rows.verb;
        if (!rows.path.empty())
            text += fmt::format("\nJSON: {}{}.\n", rows.path, rows.in_csv ? "; also CSV" : "");
        text += "\n| key | unit | in | meaning |\n| --- | --- | --- | --- |\n";
        for (const analysis::ResultColumn& key : keys_of(rows)) {
            const char* in = key.shown == analysis::in_json                       ? "JSON"
                             : key.shown == analysis::in_csv || rows.path.empty() ? "CSV"
                                                                                  : "both";
            text += fmt::format("| `{}` | {} | {} | {} |\n", key.key, unit_of(key), rows.in_csv ? in : "JSON",
                                key.meaning);
        }
    }
    return text;
}

std::string result_keys(std::string_view verb) {
    std::string text;
    for (const ResultRows& rows : all_rows()) {
        if (rows.verb != verb || !rows.in_csv || verb == "memory") continue;
        for (const analysis::ResultColumn& key : keys_of(rows)) {
            const std::string name =
                unit_of(key).empty() ? std::string(key.key) : fmt::format("{} ({})", key.key, unit_of(key));
            text += fmt::format("  {:<34} {}\n", name, key.meaning);
        }
    }
    return text.empty() ? text : "Keys of JSON and CSV:\n" + text;
}

}  // namespace shardscope::traces::report
