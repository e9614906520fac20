// See compare_spread.h.
#include "viewer/panels/compare/compare_spread.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "traces/analysis/base/step_windows.h"
#include "traces/analysis/compare/compare.h"
#include "viewer/draw/format.h"

namespace shardscope::viewer::panels {
namespace {

double mean_of(const std::vector<double>& values) {
    if (values.empty()) return tables::kNoNumber;
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

tables::CellTable::Cell change_cell(double value, double first, bool is_first) {
    if (is_first || !(first > 0) || !(value >= 0)) return tables::no_cell();
    const double percent = 100 * (value - first) / first;
    const std::string text = draw::format_decimal(percent, 1);
    return {percent > 0 && text != "0.0" ? "+" + text : text, percent};
}

}  // namespace

Durations step_durations(const traces::store::Trace& trace, const traces::analysis::StepsReport& steps) {
    Durations result;
    std::map<std::int64_t, std::pair<double, int>> by_number;
    std::int64_t most = -1;
    for (const traces::analysis::RankStepDetails& rank : steps.ranks) {
        for (const traces::analysis::StepDetail& step : rank.steps) {
            auto& [sum, count] = by_number[step.summary.number];
            sum += static_cast<double>(step.window()) * 1e-3;
            ++count;
            if (step.window() <= most) continue;
            most = step.window();
            result.longest = {step.summary.window_start, step.summary.window_end};
            result.longest_rank = trace.rank_of_number(rank.rank);
        }
    }
    for (const auto& [number, sum] : by_number) result.us.push_back(sum.first / sum.second);
    return result;
}

Durations kernel_durations(const traces::store::Trace& trace, const traces::analysis::Selection& selection,
                           const std::string& name) {
    Durations result;
    const auto id = trace.strings.find(name);
    if (!id) return result;
    const traces::analysis::TraceSteps steps = traces::analysis::find_steps(trace);
    const std::vector<bool> selected = traces::analysis::selected_events(trace, steps, selection);
    const traces::store::DeviceEvents& device = trace.device;
    std::int64_t most = -1;
    for (std::size_t i = 0; i < device.size(); ++i) {
        if (device.name[i] != *id || !selected[i]) continue;
        if (device.kind[i] != traces::store::DeviceKind::kernel &&
            device.kind[i] != traces::store::DeviceKind::communication)
            continue;
        if (steps.event[i] < 0 || steps.event[i] >= steps.ranks[device.rank[i]].kept()) continue;
        const std::int64_t length = device.end[i] - device.start[i];
        result.us.push_back(static_cast<double>(length) * 1e-3);
        if (length <= most) continue;
        most = length;
        result.longest = {device.start[i], device.end[i]};
        result.longest_rank = traces::store::RankIndex(device.rank[i]);
        result.longest_event = {model::EventKind::device, static_cast<std::int64_t>(i)};
    }
    return result;
}

Histogram make_histogram(const std::vector<Durations>& runs, int bins) {
    Histogram histogram;
    bool any = false;
    for (const Durations& run : runs) {
        for (const double us : run.us) {
            histogram.low = any ? std::min(histogram.low, us) : us;
            histogram.high = any ? std::max(histogram.high, us) : us;
            any = true;
        }
    }
    if (histogram.high <= histogram.low) {  // all values are equal: a bin in the middle
        const double half = std::max(histogram.low * 0.05, 0.5);
        histogram.low = std::max(0.0, histogram.low - half);
        histogram.high += half;
    }
    const double width = (histogram.high - histogram.low) / bins;
    for (const Durations& run : runs) {
        std::vector<double>& percent = histogram.percent.emplace_back(static_cast<std::size_t>(bins), 0.0);
        for (const double us : run.us) {
            const auto bin = std::clamp(static_cast<int>((us - histogram.low) / width), 0, bins - 1);
            percent[static_cast<std::size_t>(bin)] += 100.0 / static_cast<double>(run.us.size());
        }
        histogram.medians.push_back(run.us.empty() ? tables::kNoNumber
                                                   : traces::analysis::spread_of(run.us).median);
        histogram.largest = std::max(histogram.largest, *std::max_element(percent.begin(), percent.end()));
    }
    return histogram;
}

std::vector<DurationColumn> fold_durations(const Durations& run, std::size_t columns) {
    const std::size_t count = std::min(run.us.size(), columns);
    std::vector<DurationColumn> folded;
    for (std::size_t c = 0; c < count; ++c) {
        const std::size_t from = c * run.us.size() / count, to = (c + 1) * run.us.size() / count;
        const auto [low, high] = std::minmax_element(run.us.begin() + static_cast<std::ptrdiff_t>(from),
                                                     run.us.begin() + static_cast<std::ptrdiff_t>(to));
        folded.push_back({from, *low, *high});
    }
    return folded;
}

std::shared_ptr<const tables::TableModel> durations_table(const std::vector<RunHead>& heads,
                                                          const std::vector<Durations>& runs,
                                                          const char* what) {
    using Kind = tables::TableColumn::Kind;
    auto table = std::make_shared<tables::CellTable>(std::vector<tables::TableColumn>{
        {"run", "Run", "", Kind::text, 0, 99, 0, ""},
        {"count", what, "", Kind::number, 6, 10, 0, "The number in the current selection"},
        {"mean_us", "Mean", "\u00b5s", Kind::number, 7.5F, 12, 0, ""},
        {"mean_percent", "against 1", "%", Kind::number, 6, 9, 0, "Change of the mean against the first run"},
        {"median_us", "Median", "\u00b5s", Kind::number, 7.5F, 11, 0, ""},
        {"median_percent", "against 1", "%", Kind::number, 6, 6, 0,
         "Change of the median against the first run"},
        {"spread_us", "Spread", "\u00b5s", Kind::number, 6.5F, 8, 0, "Half the interquartile range"},
        {"shortest_us", "Shortest", "\u00b5s", Kind::number, 7.5F, 5, 0, ""},
        {"longest_us", "Longest", "\u00b5s", Kind::number, 7.5F, 7, 0,
         "A double-click shows it in the timeline"},
    });
    double first_mean = 0, first_median = 0;
    for (std::size_t r = 0; r < runs.size(); ++r) {
        const std::vector<double>& us = runs[r].us;
        const traces::analysis::Spread spread = traces::analysis::spread_of(us);
        const double mean = mean_of(us);
        if (r == 0) {
            first_mean = mean;
            first_median = spread.median;
        }
        const bool any = !us.empty();
        table->add(
            {tables::text_cell(heads[r].name), tables::count_cell(static_cast<std::int64_t>(us.size())),
             any ? tables::us_cell(mean) : tables::no_cell(),
             any ? change_cell(mean, first_mean, r == 0) : tables::no_cell(),
             any ? tables::us_cell(spread.median) : tables::no_cell(),
             any ? change_cell(spread.median, first_median, r == 0) : tables::no_cell(),
             any ? tables::us_cell(spread.spread) : tables::no_cell(),
             any ? tables::us_cell(*std::min_element(us.begin(), us.end())) : tables::no_cell(),
             any ? tables::us_cell(*std::max_element(us.begin(), us.end())) : tables::no_cell()},
            heads[r].color);
    }
    return table;
}

}  // namespace shardscope::viewer::panels
