// The bubble of a pipeline; see pipeline_rank_fields(), stage_work_fields() and stage_memory_fields().
#include "traces/analysis/pipeline/pipeline.h"

#include <algorithm>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "traces/report/print.h"
#include "traces/store/grouped.h"

namespace shardscope::traces::report {
namespace {

constexpr std::string_view kNoPipeline =
    "This trace has no actions of a pipeline: ranges such as PP:0F3, as PyTorch's schedules name them.";

// What the table cannot show: ranks whose devices were not recorded, and steps in another order than planned.
std::string notes(const analysis::PipelineReport& report, std::size_t width) {
    std::string text;
    if (std::any_of(report.ranks.begin(), report.ranks.end(), [](const auto& r) { return r.on_host; })) {
        text += "\n" + paragraph(
                           "Times of ranges on host threads, because no work on a device was recorded in "
                           "them.",
                           width);
    }
    std::int64_t others = 0;
    for (const analysis::PipelineRank& rank : report.ranks) others += rank.other_orders;
    if (others > 0) {
        text += fmt::format("\n{} did not compute in the planned order (SHARD_SCHEDULE).\n",
                            store::counted(others, "step of a rank", "steps of ranks"));
    }
    return text;
}

std::string table_text(const analysis::PipelineReport& report, std::size_t width) {
    if (report.ranks.empty()) return paragraph(kNoPipeline, width);
    const std::string title = fmt::format(
        "Pipeline of {}: makespan {} µs{}; bubble {} % of ranks x makespan, {} % between the ranks' first "
        "and "
        "last work",
        store::counted(static_cast<std::int64_t>(report.ranks.size()), "rank", "ranks"),
        us(to_us(report.mean_makespan())), report.stepped ? " per step" : "",
        store::grouped(report.bubble_percent(), 2), store::grouped(report.in_span_percent(), 2));
    return paragraph(title, width) +
           fmt::format("\n{} by rank; idle = warm-up + peer + transfer + host + imbalance + drain\n",
                       report.stepped ? "Mean per step" : "The whole trace") +
           text_of(result_table(analysis::pipeline_rank_fields(), report.ranks), width) +
           "\nComputations by stage\n" +
           text_of(result_table(analysis::stage_work_fields(), report.stages), width, 3) +
           "\nMemory in flight by stage\n" +
           text_of(result_table(analysis::stage_memory_fields(), report.memory), width, 2) +
           notes(report, width);
}

std::string json_text(const analysis::PipelineReport& report) {
    const auto known = [&](double value) {
        return report.ranks.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(value);
    };
    return json_line({{"makespan_us", known(to_us(report.mean_makespan()))},
                      {"bubble_percent", known(report.bubble_percent())},
                      {"in_span_percent", known(report.in_span_percent())},
                      {"ranks", json_of(result_table(analysis::pipeline_rank_fields(), report.ranks))},
                      {"stages", json_of(result_table(analysis::stage_work_fields(), report.stages))},
                      {"memory", json_of(result_table(analysis::stage_memory_fields(), report.memory))}});
}

std::string csv_text(const analysis::PipelineReport& report) {
    return csv_of(result_table(analysis::pipeline_rank_fields(), report.ranks));
}

}  // namespace

std::string render(const analysis::PipelineReport& result, Format format, std::size_t width) {
    return render_as(result, format, width, table_text, json_text, csv_text);
}

}  // namespace shardscope::traces::report
