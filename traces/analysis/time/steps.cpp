// See steps.h: the summary's steps with the other data of each.
#include "traces/analysis/time/steps.h"

#include <algorithm>
#include <map>
#include <utility>

#include "traces/analysis/base/intervals.h"
#include "traces/analysis/base/step_windows.h"
#include "traces/analysis/time/device_time.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::analysis {
namespace {

// Losses by (rank's number, step).
using Losses = std::map<std::pair<int, std::int64_t>, double>;

Losses losses_of(const store::Trace& trace) {
    Losses losses;
    for (const store::Step& step : trace.steps) {
        const int rank = trace.ranks[step.rank.at()].number;
        if (step.loss) losses.emplace(std::pair(rank, step.number), *step.loss);
    }
    return losses;
}

// Counts of the selected device events, by rank index and the step's start on the host.
using EventCounts = std::map<std::pair<std::size_t, std::int64_t>, std::int64_t>;

EventCounts count_events(const store::Trace& trace, const TraceSteps& steps,
                         const std::vector<bool>& selected) {
    EventCounts counts;
    for (std::size_t i = 0; i < selected.size(); ++i) {
        const std::int32_t step = steps.event[i];
        if (!selected[i] || step < 0) continue;
        const std::size_t rank = trace.device.rank[i];
        ++counts[{rank, steps.ranks[rank].steps[static_cast<std::size_t>(step)].host.start}];
    }
    return counts;
}

void find_slowest(RankStepDetails& rank) {
    if (rank.steps.empty()) return;
    std::vector<std::int64_t> windows;
    for (const StepDetail& step : rank.steps) windows.push_back(step.window());
    const auto [shortest, longest] = std::minmax_element(windows.begin(), windows.end());
    if (!are_alike(static_cast<double>(*longest), static_cast<double>(*shortest)))
        rank.slowest = std::find(windows.begin(), windows.end(), *longest) - windows.begin();
}

std::vector<StepAcrossRanks> across(const std::vector<RankStepDetails>& ranks) {
    std::map<std::int64_t, StepAcrossRanks> by_number;
    for (const RankStepDetails& rank : ranks) {
        for (const StepDetail& step : rank.steps) {
            const std::int64_t window = step.window();
            const auto [at, added] =
                by_number.try_emplace(step.summary.number, StepAcrossRanks{.number = step.summary.number,
                                                                           .slowest_rank = rank.rank,
                                                                           .longest = window,
                                                                           .shortest = window});
            if (added) continue;
            StepAcrossRanks& known = at->second;
            known.shortest = std::min(known.shortest, window);
            if (window > known.longest) {
                known.longest = window;
                known.slowest_rank = rank.rank;
            }
        }
    }
    std::vector<StepAcrossRanks> all;
    all.reserve(by_number.size());
    for (auto& [number, step] : by_number) {
        if (are_alike(static_cast<double>(step.longest), static_cast<double>(step.shortest)))
            step.slowest_rank = -1;
        all.push_back(step);
    }
    return all;
}

}  // namespace

StepsReport steps_report(const store::Trace& trace, const Selection& selection) {
    const ExecutionSummary summary = summarize(trace, selection);
    const TraceSteps steps = find_steps(trace);
    const std::vector<KindUnions> unions = device_unions(trace);
    const std::vector<store::RankIndex> ranks = selected_ranks(trace, selection);
    EventCounts events = count_events(trace, steps, selected_events(trace, steps, selection));
    const Interval time = selected_time(selection);
    const Losses losses = losses_of(trace);
    StepsReport report;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
        const std::size_t at = ranks[i].at();
        const RankSummary& split = summary.ranks[i];
        const std::vector<StepWindow> windows = selected_windows(steps.ranks[at], selection);
        std::vector<Interval> clipped;
        clipped.reserve(windows.size());
        for (const StepWindow& step : windows) clipped.push_back(step.window);
        const std::vector<std::int64_t> device = length_inside(busy(unions[at]), clipped);

        RankStepDetails rank;
        rank.rank = split.rank;
        rank.cut_steps = split.cut_steps;
        rank.median_window = split.median_step_us * 1e3;
        rank.on_device = split.on_device;
        for (std::size_t s = 0; s < split.steps.size(); ++s) {
            const auto loss = losses.find({rank.rank, split.steps[s].number});
            rank.steps.push_back({.summary = split.steps[s],
                                  .host_start = std::clamp(windows[s].host.start, time.start, time.end),
                                  .host_end = std::clamp(windows[s].host.end, time.start, time.end),
                                  .device_events = events[{at, windows[s].host.start}],
                                  .device_busy = device[s],
                                  .loss = loss != losses.end() ? std::optional(loss->second) : std::nullopt});
        }
        find_slowest(rank);
        report.ranks.push_back(std::move(rank));
    }
    if (report.ranks.size() > 1) report.across = across(report.ranks);
    return report;
}

std::optional<double> StepOfRank::difference_percent() const {
    if (rank.median_window <= 0) return std::nullopt;
    return 100.0 * (static_cast<double>(step.window()) - rank.median_window) / rank.median_window;
}

std::vector<StepOfRank> step_rows(const RankStepDetails& rank) {
    std::vector<StepOfRank> rows;
    rows.reserve(rank.steps.size());
    for (const StepDetail& step : rank.steps) rows.push_back({rank, step});
    return rows;
}

namespace {

// The parts of a step's time: the keys of CSV, and titles so short that eight and more columns fit a
// terminal's line.
constexpr std::array<std::pair<std::string_view, std::string_view>, kTimeCategories> kSplit = {
    {{"kernel_us", "Kernel"},
     {"memcpy_us", "Memcpy"},
     {"memset_us", "Memset"},
     {"communication_us", "Comm."},
     {"runtime_us", "Runtime"},
     {"dataloader_us", "Data"},
     {"cpu_exec_us", "CPU"},
     {"other_us", "Other"}}};

store::Cell on_device(const StepOfRank& row, store::Cell value) {
    return row.rank.on_device ? std::move(value) : store::Cell();
}

store::Cell percent_of_window(const StepOfRank& row, std::int64_t ns) {
    const std::int64_t window = row.step.window();
    return window > 0 ? 100.0 * static_cast<double>(ns) / static_cast<double>(window) : 0.0;
}

template <std::size_t Category>
store::Cell category_us(const StepOfRank& row) {
    const bool known = row.rank.knows(static_cast<TimeCategory>(Category));
    return known ? us_cell(static_cast<double>(row.step.summary.ns[Category])) : store::Cell();
}

template <std::size_t Category>
store::Cell category_percent(const StepOfRank& row) {
    const bool known = row.rank.knows(static_cast<TimeCategory>(Category));
    return known ? percent_of_window(row, row.step.summary.ns[Category]) : store::Cell();
}

template <std::size_t... Category>
std::vector<Field<StepOfRank>> split_fields(std::index_sequence<Category...> /*all*/) {
    std::vector<Field<StepOfRank>> fields = {
        {{kSplit[Category].first, "", Unit::us, "The category's part of the window.", in_csv},
         category_us<Category>}...};
    fields.insert(fields.end(), {{{kSplit[Category].first, kSplit[Category].second, Unit::number,
                                   "The category's share of the window in percent.", in_table},
                                  category_percent<Category>}...});
    return fields;
}

std::vector<Field<StepOfRank>> make_step_fields() {
    using S = StepOfRank;
    std::vector<Field<S>> fields = {
        {{"step", "Step", Unit::index, "Number of the step."},
         [](const S& s) { return store::Cell(s.step.summary.number); }},
        {{"start_ns", "", Unit::ns, "Start of its window.", in_programs},
         [](const S& s) { return store::Cell(s.step.summary.window_start); }},
        {{"end_ns", "", Unit::ns, "End of its window.", in_json},
         [](const S& s) { return store::Cell(s.step.summary.window_end); }},
        {{"us", "", Unit::us, "Length of its window.", in_programs},
         [](const S& s) { return us_cell(static_cast<double>(s.step.window())); }},
        {{"host_start_ns", "", Unit::ns, "Start of its range on the host.", in_json},
         [](const S& s) { return store::Cell(s.step.host_start); }},
        {{"host_end_ns", "", Unit::ns, "End of its range on the host.", in_json},
         [](const S& s) { return store::Cell(s.step.host_end); }},
        {{"host_us", "Host", Unit::us, "Length of its range on the host."},
         [](const S& s) { return us_cell(static_cast<double>(s.step.host_end - s.step.host_start)); }},
        {{"us", "Window", Unit::us, "Length of its window.", in_table},
         [](const S& s) { return us_cell(static_cast<double>(s.step.window())); }},
        {{"difference", "Diff", Unit::percent, "Of the window from the rank's median one.", in_table, 1,
          false, true},
         [](const S& s) { return to_cell(s.difference_percent()); }},
        {{"categories_us", "", Unit::us, "Each category's part of the window.", in_json}, nested<S>},
    };
    const std::vector<Field<S>> split = split_fields(std::make_index_sequence<kTimeCategories>());
    fields.insert(fields.end(), split.begin(), split.end());
    const std::initializer_list<Field<S>> rest = {
        {{"device_busy_us", "Busy", Unit::number, "The share in percent with any work on the device.",
          in_table},
         [](const S& s) { return on_device(s, percent_of_window(s, s.step.device_busy)); }},
        {{"device_events", "Events", Unit::count, "Work on the device that the step launched."},
         [](const S& s) { return on_device(s, s.step.device_events); }},
        {{"device_busy_us", "", Unit::us, "Time in the window with any work on the device.", in_programs},
         [](const S& s) { return on_device(s, us_cell(static_cast<double>(s.step.device_busy))); }},
        {{"loss", "Loss", Unit::digits6, "The loss, where it was recorded.", everywhere, -1, true},
         [](const S& s) { return to_cell(s.step.loss); }},
        {{"host_start_ns", "", Unit::ns, "Start of its range on the host.", in_csv},
         [](const S& s) { return store::Cell(s.step.host_start); }},
        {{"host_end_ns", "", Unit::ns, "End of its range on the host.", in_csv},
         [](const S& s) { return store::Cell(s.step.host_end); }},
        {{"slowest", "", Unit::text, "Whether it is the slowest step of the rank.", in_table},
         [](const S& s) { return s.slowest() ? to_cell("slowest") : blank_cell(); }},
    };
    fields.insert(fields.end(), rest);
    return fields;
}

}  // namespace

Fields<StepOfRank> step_fields() {
    static const std::vector<Field<StepOfRank>> kFields = make_step_fields();
    return kFields;
}

Fields<StepAcrossRanks> step_across_fields() {
    using S = StepAcrossRanks;
    static constexpr Field<S> kFields[] = {
        {{"step", "Step", Unit::index, "Number of the step."}, value_of<&S::number>},
        {{"slowest_rank", "Slowest rank", Unit::index,
          "The rank with the longest window; none: all are alike."},
         [](const S& s) { return s.slowest_rank < 0 ? store::Cell() : to_cell(s.slowest_rank); }},
        {{"longest_us", "Longest window", Unit::us, "The longest window among the ranks."},
         micros_of<&S::longest>},
        {{"shortest_us", "Shortest", Unit::us, "The shortest one."}, micros_of<&S::shortest>},
    };
    return kFields;
}

}  // namespace shardscope::traces::analysis
