// See timeline.h. First the cells of each rank are found, with the work that they launched; then each step's
// idle time is split by cause, gap by gap.
#include "traces/analysis/pipeline/timeline.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/core.h>

#include "traces/analysis/base/step_windows.h"
#include "traces/analysis/pipeline/replay.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::analysis {
namespace {

constexpr std::size_t kPipelineAxis = [] {
    std::size_t at = 0;
    while (schema::kMeshAxes[at].name != "pipeline") ++at;
    return at;
}();

// When each result of a step was computed: several times if a trace without steps holds several.
class Results {
  public:
    void add(const PipelineCell& cell) {
        for (const PipelineAction& a : cell.actions)
            if (StageResult::is_given_by(a)) ends_[StageResult::of(a)].insert(cell.end());
    }
    // When the results that the cell waits for had been computed; the lowest time if it waits for none.
    std::int64_t inputs_of(const PipelineCell& cell) const {
        std::int64_t last = std::numeric_limits<std::int64_t>::min();
        for (const PipelineAction& a : cell.actions) {
            if (!StageResult::is_given_by(a)) continue;
            const auto at = ends_.find(StageResult::before(a));
            if (at == ends_.end()) continue;
            const auto after =
                at->second.upper_bound(cell.start());  // the last before the cell, else the first
            last = std::max(last, after == at->second.begin() ? *after : *std::prev(after));
        }
        return last;
    }

  private:
    std::map<StageResult, std::set<std::int64_t>> ends_;
};

class TimelineAnalysis {
  public:
    TimelineAnalysis(const store::Trace& trace, const Selection& selection)
        : trace_(trace), selection_(selection), cells_(pipeline_cells(trace)) {}

    PipelineTimeline timeline() {
        name_pipelines();
        deal_cells();
        const auto planned = planned_cells(trace_.schedule);
        for (PipelineStep& step : result_.steps) {
            finish(step);
            for (PipelineRow& row : step.rows) {
                if (const auto at = planned.find(trace_.ranks[row.rank.at()].number); at != planned.end())
                    compare(row, at->second);
            }
            replay_plan(step);
        }
        return std::move(result_);
    }

  private:
    // Ranks of one pipeline have the same place on all other axes. Without a mesh all ranks are one.
    void name_pipelines() {
        const auto& ranks = trace_.ranks;
        std::vector<bool> differs(schema::kMeshAxes.size(), false);
        for (std::size_t axis = 0; axis < differs.size(); ++axis) {
            differs[axis] = std::any_of(ranks.begin(), ranks.end(), [&](const store::Rank& r) {
                return r.place[axis] != ranks.front().place[axis];
            });
        }
        const bool is_known = std::any_of(ranks.begin(), ranks.end(),
                                          [](const store::Rank& r) { return r.place[kPipelineAxis] != 0; });
        std::map<std::vector<int>, std::size_t> numbers;
        for (const store::Rank& rank : ranks) {
            std::vector<int> place;
            std::string name;
            for (std::size_t axis = 0; axis < differs.size() && is_known; ++axis) {
                if (axis == kPipelineAxis) continue;
                place.push_back(rank.place[axis]);
                if (differs[axis])
                    name += fmt::format("{}{} {}", name.empty() ? "" : ", ", schema::kMeshAxes[axis].name,
                                        rank.place[axis]);
            }
            const auto [at, is_new] = numbers.try_emplace(place, numbers.size());
            if (is_new) result_.pipelines.push_back(std::move(name));
            pipelines_.push_back(at->second);
        }
    }

    void deal_cells() {
        const TraceSteps steps = find_steps(trace_);
        const Interval time = selected_time(selection_);
        std::map<std::pair<std::int64_t, std::size_t>, std::map<std::size_t, PipelineRow>> dealt;
        for (std::size_t r = 0; r < cells_.size(); ++r) {
            for (PipelineCell& cell : cells_[r].cells) {
                const int step = steps.ranks[r].step_at(cell.range.start);
                if (step < 0 || step >= steps.ranks[r].kept()) continue;
                const std::int64_t number = steps.ranks[r].steps[static_cast<std::size_t>(step)].number;
                if (!selection_.has_step(number) || cell.range.start < time.start ||
                    cell.range.start >= time.end)
                    continue;
                dealt[{number, pipelines_[r]}][r].cells.push_back({std::move(cell), -1});
            }
        }
        for (auto& [key, rows] : dealt) {
            PipelineStep& step = result_.steps.emplace_back();
            std::tie(step.number, step.pipeline) = key;
            for (auto& [rank, row] : rows) {
                row.rank = store::RankIndex(rank);
                row.place = trace_.ranks[rank].place[kPipelineAxis];
                row.on_host = cells_[rank].on_host;
                step.rows.push_back(std::move(row));
            }
            std::stable_sort(step.rows.begin(), step.rows.end(),
                             [](const PipelineRow& a, const PipelineRow& b) { return a.place < b.place; });
        }
    }

    void finish(PipelineStep& step) const {
        Results results;
        step.makespan = {std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()};
        for (PipelineRow& row : step.rows) {
            std::vector<Interval> all;
            for (const RowCell& c : row.cells) {
                results.add(c.cell);
                all.insert(all.end(), c.cell.work.begin(), c.cell.work.end());
            }
            row.busy = make_union(std::move(all));
            step.makespan.start = std::min(step.makespan.start, row.busy.front().start);
            step.makespan.end = std::max(step.makespan.end, row.busy.back().end);
        }
        for (PipelineRow& row : step.rows) find_idle(row, step.makespan, results);
    }

    void find_idle(PipelineRow& row, const Interval& makespan, const Results& results) const {
        std::vector<std::pair<std::int64_t, const PipelineCell*>> pieces;  // by start
        for (const RowCell& c : row.cells) {
            for (const Interval& piece : c.cell.work) pieces.emplace_back(piece.start, &c.cell);
        }
        std::sort(pieces.begin(), pieces.end(),
                  [](const auto& a, const auto& b) { return a.first < b.first; });
        add_idle(row, {makespan.start, row.busy.front().start}, IdleCause::warm_up);
        auto piece = pieces.begin();
        for (std::size_t i = 1; i < row.busy.size(); ++i) {
            const Interval gap = {row.busy[i - 1].end, row.busy[i].start};
            while (piece->first < gap.end) ++piece;
            split(row, gap, results.inputs_of(*piece->second));
        }
        add_idle(row, {row.busy.back().end, makespan.end}, IdleCause::drain);
    }

    // Splits the idle time before work whose inputs were there at `given`.
    void split(PipelineRow& row, const Interval& gap, std::int64_t given) const {
        const RankCells& rank = cells_[row.rank.at()];
        given = std::clamp(given, gap.start, gap.end);
        add_idle(row, {gap.start, given}, IdleCause::peer);
        const std::int64_t launched = std::clamp(rank.launch_of(gap.end), given, gap.end);
        std::int64_t from = given;  // everything before has its cause
        const auto add_rest = [&](std::int64_t to) {
            add_idle(row, {from, std::min(to, std::max(from, launched))}, IdleCause::host);
            add_idle(row, {std::max(from, std::min(to, launched)), to}, IdleCause::imbalance);
        };
        auto transfer = std::partition_point(rank.transfers.begin(), rank.transfers.end(),
                                             [&](const Interval& t) { return t.end <= given; });
        for (; transfer != rank.transfers.end() && transfer->start < gap.end; ++transfer) {
            const Interval running = {std::max(transfer->start, from), std::min(transfer->end, gap.end)};
            add_rest(running.start);
            add_idle(row, running, IdleCause::transfer);
            from = running.end;
        }
        add_rest(gap.end);
    }

    static void add_idle(PipelineRow& row, const Interval& time, IdleCause cause) {
        if (time.length() > 0) row.idle.push_back({time, cause});
    }

    static void compare(PipelineRow& row, const std::vector<PlannedCell>& planned) {
        row.planned = planned;
        using Action = std::tuple<int, int, std::string>;
        const auto key = [](const PipelineAction& a) { return Action(a.stage, a.micro_batch, a.kind); };
        std::map<Action, int> places;
        std::vector<PipelineAction> wanted, done;
        for (std::size_t p = 0; p < planned.size(); ++p) {
            places.try_emplace(key(planned[p].actions.front()), static_cast<int>(p));
            wanted.insert(wanted.end(), planned[p].actions.begin(), planned[p].actions.end());
        }
        for (RowCell& c : row.cells) {
            const auto at = places.find(key(c.cell.actions.front()));
            if (at != places.end()) c.planned = at->second;
            done.insert(done.end(), c.cell.actions.begin(), c.cell.actions.end());
        }
        row.in_planned_order = wanted == done;
    }

    const store::Trace& trace_;
    const Selection& selection_;
    std::vector<RankCells> cells_;
    std::vector<std::size_t> pipelines_;  // by rank index
    PipelineTimeline result_;
};

}  // namespace

std::string_view name(IdleCause cause) {
    static constexpr std::array<std::string_view, kIdleCauses> kNames = {"warm-up", "peer",      "transfer",
                                                                         "host",    "imbalance", "drain"};
    return kNames[static_cast<std::size_t>(cause)];
}

std::array<std::int64_t, kIdleCauses> PipelineRow::idle_ns() const {
    std::array<std::int64_t, kIdleCauses> sums{};
    for (const IdleSpan& span : idle) sums[static_cast<std::size_t>(span.cause)] += span.time.length();
    return sums;
}

PipelineTimeline pipeline_timeline(const store::Trace& trace, const Selection& selection) {
    return TimelineAnalysis(trace, selection).timeline();
}

}  // namespace shardscope::traces::analysis
