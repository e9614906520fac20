// See summary_rows.h.
#include "viewer/panels/summary/summary_rows.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "traces/schema/text.h"
#include "viewer/theme/theme.h"

namespace shardscope::viewer::panels {
namespace {

using traces::analysis::ExecutionSummary;
using traces::analysis::RankSummary;
using traces::analysis::TimeCategory;

constexpr const char* kMicroseconds = "\u00b5s";

// "CPU Exec" -> "cpu_exec_us"
std::string key_of(std::size_t category) {
    return traces::schema::snake_case(traces::analysis::kTimeCategoryNames[category]) + "_us";
}

std::vector<std::size_t> categories_of(const ExecutionSummary& summary) {
    std::vector<std::size_t> categories;
    for (std::size_t c = 0; c < traces::analysis::kTimeCategories; ++c) {
        if (summary.has(static_cast<TimeCategory>(c))) categories.push_back(c);
    }
    return categories;
}

void category_columns(const ExecutionSummary& summary, std::vector<tables::TableColumn>& columns) {
    for (const std::size_t c : categories_of(summary)) {
        const std::string title(traces::analysis::kTimeCategoryNames[c]);
        columns.push_back(tables::number_column(key_of(c), title, kMicroseconds,
                                                std::max(6.5F, 0.62F * static_cast<float>(title.size())), 8,
                                                theme::time_category_color(static_cast<TimeCategory>(c))));
    }
}

// "-" if the category belongs to a device and none was recorded.
tables::CellTable::Cell category_cell(const RankSummary& rank, std::size_t category, double us) {
    return rank.knows(static_cast<TimeCategory>(category)) ? tables::us_cell(us) : tables::no_cell();
}

constexpr const char* kWindow =
    "from the end of the device work before it to the end of its own, so that a step that the host runs "
    "ahead of is not counted twice";

}  // namespace

std::shared_ptr<const tables::TableModel> category_times(const ExecutionSummary& summary,
                                                         const RankSummary& rank, bool stepped) {
    tables::TableColumn names = tables::text_column("category", "Category", 0);
    names.least = 8;  // the numbers are needed in a narrow pane, too
    auto table = std::make_shared<tables::CellTable>(std::vector<tables::TableColumn>{
        std::move(names), tables::number_column("us", stepped ? "Mean window" : "Time", kMicroseconds, 6.5F),
        tables::number_column("percent", "Share", "%", 5.5F, 10, theme::accent())});
    table->add({tables::text_cell(stepped ? "Average Step Time" : "Whole trace"),
                tables::us_cell(rank.average_step_us),
                tables::percent_cell(rank.average_step_us > 0 ? 100 : 0)});
    for (const std::size_t c : categories_of(summary)) {
        const auto category = static_cast<TimeCategory>(c);
        table->add({tables::text_cell(traces::analysis::kTimeCategoryNames[c]),
                    category_cell(rank, c, rank.average_us[c]),
                    rank.knows(category) ? tables::percent_cell(rank.percent(category)) : tables::no_cell()},
                   theme::time_category_color(category));
    }
    return table;
}

std::shared_ptr<const tables::TableModel> step_times(const ExecutionSummary& summary, const RankSummary& rank,
                                                     const traces::analysis::RankStepDetails* details) {
    std::vector<tables::TableColumn> columns = {
        tables::number_column("step", "Step", "", 4), tables::number_column("start_ms", "Start", "ms", 7, 5),
        tables::number_column("window_us", "Window", kMicroseconds, 8, 10, 0, kWindow)};
    const bool told = details != nullptr && details->steps.size() == rank.steps.size();
    if (told)
        columns.push_back(
            tables::number_column("host_us", "Host step", kMicroseconds, 8, 9, 0,
                                  "the step's range on the host, as the timeline's ruler shows it"));
    category_columns(summary, columns);
    const bool losses =
        told && std::any_of(details->steps.begin(), details->steps.end(),
                            [](const traces::analysis::StepDetail& s) { return s.loss.has_value(); });
    if (told)
        columns.push_back(
            tables::number_column("device_busy_percent", "Device busy", "%", 6.5F, 6, 0,
                                  "of the step's time: at least one kernel, copy or collective ran"));
    if (losses) columns.push_back(tables::number_column("loss", "Loss", "", 6, 6));
    auto table = std::make_shared<tables::CellTable>(std::move(columns));
    for (std::size_t i = 0; i < rank.steps.size(); ++i) {
        const traces::analysis::StepSummary& step = rank.steps[i];
        const auto window = static_cast<double>(step.window_end - step.window_start);
        std::vector<tables::CellTable::Cell> cells = {
            tables::count_cell(step.number),
            tables::decimal_cell(static_cast<double>(step.window_start) * 1e-6, 3),
            tables::us_cell(window * 1e-3)};
        if (told) {
            const traces::analysis::StepDetail& detail = details->steps[i];
            cells.push_back(tables::us_cell(static_cast<double>(detail.host_end - detail.host_start) * 1e-3));
        }
        for (const std::size_t c : categories_of(summary))
            cells.push_back(category_cell(rank, c, static_cast<double>(step.ns[c]) * 1e-3));
        if (told)
            cells.push_back(tables::percent_cell(
                window > 0 ? 100 * static_cast<double>(details->steps[i].device_busy) / window : 0));
        if (losses)
            cells.push_back(details->steps[i].loss ? tables::decimal_cell(*details->steps[i].loss, 6)
                                                   : tables::no_cell());
        table->add(std::move(cells));
    }
    return table;
}

std::shared_ptr<const tables::TableModel> rank_times(const ExecutionSummary& summary) {
    std::vector<tables::TableColumn> columns = {
        tables::number_column("rank", "Rank", "", 4), tables::number_column("steps", "Steps", "", 4, 5),
        tables::number_column("average_step_us", "Mean window", kMicroseconds, 8, 10, 0, kWindow)};
    category_columns(summary, columns);
    auto table = std::make_shared<tables::CellTable>(std::move(columns));
    for (const RankSummary& rank : summary.ranks) {
        std::vector<tables::CellTable::Cell> cells = {
            tables::count_cell(rank.rank), tables::count_cell(static_cast<std::int64_t>(rank.steps.size())),
            tables::us_cell(rank.average_step_us)};
        for (const std::size_t c : categories_of(summary))
            cells.push_back(category_cell(rank, c, rank.average_us[c]));
        table->add(std::move(cells));
    }
    return table;
}

}  // namespace shardscope::viewer::panels
