// See pipeline.h. First the cells of each rank are found, with the work that they launched; then each step's
// idle time is split by cause, gap by gap.
#include "traces/analysis/pipeline/pipeline.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "traces/analysis/base/intervals.h"
#include "traces/analysis/base/step_windows.h"
#include "traces/analysis/communication/axes.h"
#include "traces/analysis/pipeline/actions.h"
#include "traces/analysis/time/device_time.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::analysis {
namespace {

// Actions that run together: a range, and the work that was launched in it.
struct Cell {
    Interval range;
    std::vector<PipelineAction> actions;  // all of them compute
    IntervalSet work;                     // on the device; the range itself if nothing is recorded there

    std::int64_t start() const { return work.front().start; }
    std::int64_t end() const { return work.back().end; }
};

struct RankCells {
    std::vector<Cell> cells;  // by start of their ranges
    IntervalSet transfers;    // communication on the device; without a device its RECV ranges
    std::vector<std::pair<std::int64_t, std::int64_t>>
        launches;  // start of a cell's device event, its launch
    bool on_host = true;

    // When the work that starts at `time` was launched; `time` itself if that is unknown.
    std::int64_t launch_of(std::int64_t time) const {
        const auto at = std::lower_bound(launches.begin(), launches.end(), std::pair(time, INT64_MIN));
        return at != launches.end() && at->first == time ? std::min(at->second, time) : time;
    }
};

class CellSearch {
  public:
    explicit CellSearch(const store::Trace& trace) : trace_(trace), ranks_(trace.ranks.size()) {}

    std::vector<RankCells> find() {
        find_ranges();
        find_work();
        for (RankCells& rank : ranks_) {
            for (Cell& cell : rank.cells)
                if (rank.on_host) cell.work = {cell.range};
            std::erase_if(rank.cells, [](const Cell& cell) { return cell.work.empty(); });
        }
        return std::move(ranks_);
    }

  private:
    void find_ranges() {
        std::map<schema::StringId, std::vector<PipelineAction>> parsed;
        for (std::size_t i = 0; i < trace_.ranges.size(); ++i) {  // sorted by start
            const schema::StringId name = trace_.ranges.name[i];
            const auto [at, is_new] = parsed.try_emplace(name);
            if (is_new) at->second = pipeline_actions(trace_.strings[name]);
            const std::vector<PipelineAction>& actions = at->second;
            const store::RankIndex rank = trace_.threads[trace_.ranges.thread[i]].rank;
            if (actions.empty() || !rank.known()) continue;
            const Interval range = {trace_.ranges.start[i], trace_.ranges.end[i]};
            if (actions.front().receives()) append_merged(ranks_[rank.at()].transfers, range);
            if (std::all_of(actions.begin(), actions.end(), [](const auto& a) { return a.is_compute(); }) &&
                range.length() > 0)
                ranks_[rank.at()].cells.push_back({range, actions, {}});
        }
    }

    // The cell in whose range the time lies; null if there is none. (Autograd launches on a thread of its own
    // while the range is open on another.)
    static Cell* around(std::vector<Cell>& cells, std::int64_t time) {
        auto after = std::partition_point(cells.begin(), cells.end(),
                                          [&](const Cell& cell) { return cell.range.start <= time; });
        return after != cells.begin() && time < (--after)->range.end ? &*after : nullptr;
    }

    void find_work() {
        const store::DeviceEvents& device = trace_.device;  // sorted by start, as append_merged requires
        std::vector<IntervalSet> communication(ranks_.size());
        for (std::size_t i = 0; i < device.size(); ++i) {
            RankCells& rank = ranks_[device.rank[i]];
            const Interval event = {device.start[i], device.end[i]};
            if (device.kind[i] == store::DeviceKind::communication) {
                append_merged(communication[device.rank[i]], event);
                continue;
            }
            const std::int64_t launched = launched_at(trace_, i);
            Cell* cell = around(rank.cells, launched);
            if (cell == nullptr || event.length() == 0) continue;
            rank.on_host = false;
            append_merged(cell->work, event);
            rank.launches.emplace_back(event.start, launched);
        }
        for (std::size_t r = 0; r < ranks_.size(); ++r)
            if (!ranks_[r].on_host) ranks_[r].transfers = std::move(communication[r]);
    }

    const store::Trace& trace_;
    std::vector<RankCells> ranks_;
};

// What another stage's computation gives: its output, or the gradient of its input.
struct Result {
    std::int64_t stage = 0;  // a name may have any number, to which 1 is added
    int micro_batch = 0;
    bool forward = true;
    bool operator<(const Result& other) const {
        return std::tie(stage, micro_batch, forward) <
               std::tie(other.stage, other.micro_batch, other.forward);
    }
};

// One step of one pipeline: its ranks' cells, by rank index.
struct PipelineStep {
    std::map<std::size_t, std::vector<const Cell*>> ranks;
    // When each result was computed: several times if a trace without steps holds several.
    std::map<Result, std::set<std::int64_t>> ends;
    std::int64_t begin = std::numeric_limits<std::int64_t>::max(),
                 end = std::numeric_limits<std::int64_t>::min();

    void add(std::size_t rank, const Cell& cell) {
        ranks[rank].push_back(&cell);
        begin = std::min(begin, cell.start());
        end = std::max(end, cell.end());
        for (const PipelineAction& a : cell.actions) {
            if (a.is_forward() || a.gives_input_gradient())
                ends[{a.stage, a.micro_batch, a.is_forward()}].insert(cell.end());
        }
    }
    // When the results that the cell waits for had been computed; the lowest time if it waits for none.
    std::int64_t inputs_of(const Cell& cell) const {
        std::int64_t last = std::numeric_limits<std::int64_t>::min();
        for (const PipelineAction& a : cell.actions) {
            if (!a.is_forward() && !a.gives_input_gradient()) continue;
            const std::int64_t stage = a.stage;
            const auto at =
                ends.find({a.is_forward() ? stage - 1 : stage + 1, a.micro_batch, a.is_forward()});
            if (at == ends.end()) continue;
            const auto after =
                at->second.upper_bound(cell.start());  // the last before the cell, else the first
            last = std::max(last, after == at->second.begin() ? *after : *std::prev(after));
        }
        return last;
    }
};

class PipelineAnalysis {
  public:
    PipelineAnalysis(const store::Trace& trace, const Selection& selection)
        : trace_(trace), selection_(selection), cells_(CellSearch(trace).find()), rows_(trace.ranks.size()) {
        for (const schema::ScheduleRow& row : trace.schedule) {  // in each rank's order
            PipelineAction action{row.stage, row.kind, row.micro_batch};
            if (action.is_compute()) planned_[row.rank].push_back(std::move(action));
        }
    }

    PipelineReport report() {
        find_steps_of_pipelines();
        for (const auto& [key, step] : steps_) {
            for (const auto& [rank, cells] : step.ranks) add(step, rank, cells);
        }
        PipelineReport report{.stepped = !trace_.steps.empty(), .ranks = {}, .stages = {}};
        for (const store::RankIndex r : selected_ranks(trace_, selection_)) {
            PipelineRank& row = rows_[r.at()];
            if (row.steps == 0) continue;
            row.rank = trace_.ranks[r.at()].number;
            row.place = place_in_mesh(trace_, r);
            row.on_host = cells_[r.at()].on_host;
            row.stages.assign(stages_of_[r.at()].begin(), stages_of_[r.at()].end());
            report.ranks.push_back(row);
        }
        for (const auto& [key, work] : stages_) {
            const auto is_its = [rank = work.rank](const PipelineRank& row) { return row.rank == rank; };
            if (std::any_of(report.ranks.begin(), report.ranks.end(), is_its)) report.stages.push_back(work);
        }
        return report;
    }

  private:
    // Ranks of one pipeline have the same place on all other axes. Without a mesh all ranks are one.
    std::vector<int> pipeline_of(std::size_t rank) const {
        const auto& axes = schema::kMeshAxes;
        const auto axis =
            std::find_if(axes.begin(), axes.end(), [](const auto& a) { return a.name == "pipeline"; });
        const auto at = static_cast<std::size_t>(axis - axes.begin());
        if (std::all_of(trace_.ranks.begin(), trace_.ranks.end(),
                        [&](const store::Rank& r) { return r.place[at] == 0; }))
            return {};
        std::vector<int> place(trace_.ranks[rank].place.begin(), trace_.ranks[rank].place.end());
        place[at] = 0;
        return place;
    }

    void find_steps_of_pipelines() {
        const TraceSteps steps = find_steps(trace_);
        const Interval time = selected_time(selection_);
        for (std::size_t r = 0; r < cells_.size(); ++r) {
            const std::vector<int> pipeline = pipeline_of(r);
            for (const Cell& cell : cells_[r].cells) {
                const int step = steps.ranks[r].step_at(cell.range.start);
                if (step < 0 || step >= steps.ranks[r].kept()) continue;
                const std::int64_t number = steps.ranks[r].steps[static_cast<std::size_t>(step)].number;
                if (!selection_.has_step(number) || cell.range.start < time.start ||
                    cell.range.start >= time.end)
                    continue;
                steps_[{pipeline, number}].add(r, cell);
            }
        }
    }

    void add(const PipelineStep& step, std::size_t rank, const std::vector<const Cell*>& cells) {
        PipelineRank& row = rows_[rank];
        std::vector<std::pair<Interval, const Cell*>> pieces;
        std::vector<Interval> all;
        for (const Cell* cell : cells) {
            for (const Interval& piece : cell->work) {
                pieces.emplace_back(piece, cell);
                all.push_back(piece);
            }
            add_work(*cell, rank);
        }
        std::sort(pieces.begin(), pieces.end(),
                  [](const auto& a, const auto& b) { return a.first.start < b.first.start; });
        const IntervalSet busy = make_union(std::move(all));
        ++row.steps;
        row.actions += static_cast<std::int64_t>(cells.size());
        row.makespan += step.end - step.begin;
        row.busy += length(busy);
        row.warm_up += busy.front().start - step.begin;
        row.drain += step.end - busy.back().end;
        auto piece = pieces.begin();
        for (std::size_t i = 1; i < busy.size(); ++i) {
            const Interval gap = {busy[i - 1].end, busy[i].start};
            while (piece->first.start < gap.end) ++piece;
            split(gap, step, *piece->second, rank);
        }
        row.peak_in_flight = std::max(row.peak_in_flight, peak_in_flight(cells));
        compare_with_plan(cells, rank);
    }

    // Splits the idle time before a piece of the cell's work by cause.
    void split(const Interval& gap, const PipelineStep& step, const Cell& next, std::size_t rank) {
        PipelineRank& row = rows_[rank];
        const std::int64_t given = std::clamp(step.inputs_of(next), gap.start, gap.end);
        row.peer += given - gap.start;
        const Interval rest = {given, gap.end};
        const std::int64_t transferring = length_within(cells_[rank].transfers, rest);
        row.communication += transferring;
        const Interval unlaunched = {given, std::clamp(cells_[rank].launch_of(gap.end), given, gap.end)};
        const std::int64_t host = unlaunched.length() - length_within(cells_[rank].transfers, unlaunched);
        row.host += host;
        row.imbalance += rest.length() - transferring - host;
    }

    void add_work(const Cell& cell, std::size_t rank) {
        const std::int64_t ns = length(cell.work);
        std::string kinds;
        for (const PipelineAction& a : cell.actions) {
            stages_of_[rank].insert(a.stage);
            kinds += (kinds.empty() ? "" : "+") + a.kind;
        }
        StageWork& work = stages_[{cell.actions.front().stage, trace_.ranks[rank].number, kinds}];
        std::tie(work.stage, work.rank, work.kind) =
            std::tuple(cell.actions.front().stage, trace_.ranks[rank].number, kinds);
        ++work.count;
        work.total += ns;
        work.longest = std::max(work.longest, ns);
    }

    // Chunks whose forward has begun and whose backward (B or W) has not ended.
    static int peak_in_flight(const std::vector<const Cell*>& cells) {
        int now = 0, peak = 0;
        for (const Cell* cell : cells) {
            for (const PipelineAction& a : cell->actions)
                if (a.is_forward()) peak = std::max(peak, ++now);
            for (const PipelineAction& a : cell->actions)
                if (a.ends_backward()) now = std::max(now - 1, 0);  // the selected time may omit its forward
        }
        return peak;
    }

    void compare_with_plan(const std::vector<const Cell*>& cells, std::size_t rank) {
        const std::vector<PipelineAction>& planned = planned_[trace_.ranks[rank].number];
        std::vector<PipelineAction> done;
        for (const Cell* cell : cells) done.insert(done.end(), cell->actions.begin(), cell->actions.end());
        rows_[rank].planned = static_cast<std::int64_t>(planned.size());
        rows_[rank].other_orders += !planned.empty() && planned != done;
    }

    const store::Trace& trace_;
    const Selection& selection_;
    const std::vector<RankCells> cells_;
    std::map<std::pair<std::vector<int>, std::int64_t>, PipelineStep>
        steps_;                                           // by pipeline and step's number
    std::vector<PipelineRank> rows_;                      // by rank index
    std::map<std::size_t, std::set<int>> stages_of_;      // likewise
    std::map<int, std::vector<PipelineAction>> planned_;  // by rank number: the computations of a step
    std::map<std::tuple<int, int, std::string>, StageWork> stages_;
};

double share(const std::vector<PipelineRank>& ranks, std::int64_t (PipelineRank::*idle)() const) {
    double sum = 0, whole = 0;
    for (const PipelineRank& rank : ranks) {
        sum += static_cast<double>((rank.*idle)());
        whole += static_cast<double>(rank.makespan);
    }
    return whole > 0 ? 100 * sum / whole : 0;
}

template <auto Time>
store::Cell us_per_step(const PipelineRank& row) {
    return us_cell(static_cast<double>(std::invoke(Time, row)) / static_cast<double>(row.steps));
}

}  // namespace

PipelineReport pipeline_report(const store::Trace& trace, const Selection& selection) {
    return PipelineAnalysis(trace, selection).report();
}

double PipelineReport::bubble_percent() const {
    return share(ranks, &PipelineRank::idle);
}
double PipelineReport::in_span_percent() const {
    return share(ranks, &PipelineRank::idle_in_span);
}
double PipelineReport::mean_makespan() const {
    double sum = 0, steps = 0;
    for (const PipelineRank& rank : ranks) {
        sum += static_cast<double>(rank.makespan);
        steps += static_cast<double>(rank.steps);
    }
    return steps > 0 ? sum / steps : 0;
}

Fields<PipelineRank> pipeline_rank_fields() {
    using R = PipelineRank;
    static constexpr Field<R> kFields[] = {
        {kRankColumn, value_of<&R::rank>},
        {{.key = "place",
          .title = "Place",
          .unit = Unit::text,
          .meaning = "Its place in a mesh of several axes: \"data 0, pipeline 1\".",
          .where_known = true},
         [](const R& r) { return known_text(r.place); }},
        {{"stages", "Stages", Unit::text, "The stages that it computes."},
         [](const R& r) {
             std::string text;
             for (const int stage : r.stages) text += (text.empty() ? "" : ",") + std::to_string(stage);
             return store::Cell(text);
         }},
        {{"on", "", Unit::text, "\"device\", or \"host\" if the times are those of its ranges.", in_json},
         [](const R& r) { return to_cell(r.on_host ? "host" : "device"); }},
        {{"steps", "", Unit::count, "Kept steps.", in_programs}, value_of<&R::steps>},
        {{"actions", "", Unit::count, "Its computations, in all steps.", in_programs}, value_of<&R::actions>},
        {{"makespan_us", "", Unit::us, "From the first work of the pipeline to its last; mean per step.",
          in_programs},
         us_per_step<&R::makespan>},
        {{"busy_us", "Busy", Unit::us, "Time in which one of its computations runs; mean per step."},
         us_per_step<&R::busy>},
        {{"idle_us", "Idle", Unit::us, "The rest of the makespan: the six causes together; mean per step."},
         us_per_step<&R::idle>},
        {{"bubble_percent", "Bubble", Unit::percent, "Idle time as a share of the makespan."},
         [](const R& r) {
             return store::Cell(100 * static_cast<double>(r.idle()) / static_cast<double>(r.makespan));
         }},
        {{"warm_up_us", "Warm-up", Unit::us, "Idle time before its first work; mean per step."},
         us_per_step<&R::warm_up>},
        {{"peer_us", "Peer", Unit::us,
          "Idle time until another stage has computed what it waits for; mean per step."},
         us_per_step<&R::peer>},
        {{"communication_us", "Transfer", Unit::us,
          "Idle time after that in which a transfer runs; mean per step."},
         us_per_step<&R::communication>},
        {{"host_us", "Host", Unit::us,
          "Idle time after that in which the host had not launched its next work; mean per step."},
         us_per_step<&R::host>},
        {{"imbalance_us", "Imbalance", Unit::us, "What is left of its idle time; mean per step."},
         us_per_step<&R::imbalance>},
        {{"drain_us", "Drain", Unit::us, "Idle time after its last work; mean per step."},
         us_per_step<&R::drain>},
        {{"idle_in_span_us", "", Unit::us,
          "Idle time between its first and last work, which papers on zero-bubble schedules count; mean per "
          "step.",
          in_programs},
         us_per_step<&R::idle_in_span>},
        {{"in_flight_peak", "In flight", Unit::count,
          "The most chunks whose forward has begun and whose backward (B or W) has not ended."},
         value_of<&R::peak_in_flight>},
        {{"planned_actions", "", Unit::count, "Computations of a step in SHARD_SCHEDULE.", in_programs},
         known_value_of<&R::planned>},
        {{"steps_in_other_order", "", Unit::count, "Steps that did not compute in the planned order.",
          in_programs},
         [](const R& r) { return r.planned > 0 ? store::Cell(r.other_orders) : store::Cell(); }},
    };
    return kFields;
}

Fields<StageWork> stage_work_fields() {
    using S = StageWork;
    static constexpr Field<S> kFields[] = {
        {{"stage", "Stage", Unit::index, "The stage, numbered over the whole model."}, value_of<&S::stage>},
        {kRankColumn, value_of<&S::rank>},
        {{"kind", "Kind", Unit::text,
          "\"F\" forward, \"B\" backward, \"I\" and \"W\" its parts for input and weights."},
         value_of<&S::kind>},
        {{"count", "Count", Unit::count, "How often, in all steps."}, value_of<&S::count>},
        {{"mean_us", "Mean", Unit::us, "Mean time of one."},
         [](const S& s) { return us_cell(static_cast<double>(s.total) / static_cast<double>(s.count)); }},
        {{"longest_us", "Longest", Unit::us, "The longest time of one."}, micros_of<&S::longest>},
    };
    return kFields;
}

}  // namespace shardscope::traces::analysis
