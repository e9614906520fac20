// See pipeline.h: sums over the rows of a PipelineTimeline.
#include "traces/analysis/pipeline/pipeline.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <tuple>

#include "traces/analysis/base/intervals.h"
#include "traces/analysis/base/step_windows.h"
#include "traces/analysis/communication/axes.h"
#include "traces/analysis/pipeline/replay.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::analysis {
namespace {

class PipelineSums {
  public:
    PipelineSums(const store::Trace& trace, const PipelineTimeline& timeline)
        : trace_(trace), timeline_(timeline), rows_(trace.ranks.size()) {}

    PipelineReport report(const Selection& selection) {
        for (const PipelineStep& step : timeline_.steps) {
            if (!selection.has_step(step.number)) continue;
            for (const PipelineRow& row : step.rows) add(step, row);
        }
        PipelineReport report{.stepped = !trace_.steps.empty(), .ranks = {}, .stages = {}, .memory = {}};
        for (const store::RankIndex r : selected_ranks(trace_, selection)) {
            PipelineRank& row = rows_[r.at()];
            if (row.steps == 0) continue;
            row.rank = trace_.ranks[r.at()].number;
            row.place = place_in_mesh(trace_, r);
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
    void add(const PipelineStep& step, const PipelineRow& row) {
        PipelineRank& sum = rows_[row.rank.at()];
        ++sum.steps;
        sum.on_host = row.on_host;
        sum.actions += static_cast<std::int64_t>(row.cells.size());
        sum.makespan += step.makespan.length();
        sum.busy += length(row.busy);
        const auto idle = row.idle_ns();
        const auto of = [&](IdleCause cause) { return idle[static_cast<std::size_t>(cause)]; };
        sum.warm_up += of(IdleCause::warm_up);
        sum.peer += of(IdleCause::peer);
        sum.communication += of(IdleCause::transfer);
        sum.host += of(IdleCause::host);
        sum.imbalance += of(IdleCause::imbalance);
        sum.drain += of(IdleCause::drain);
        sum.peak_in_flight = std::max(sum.peak_in_flight, peak_in_flight(row));
        sum.planned = 0;
        for (const PlannedCell& cell : row.planned)
            sum.planned += static_cast<std::int64_t>(cell.actions.size());
        sum.other_orders += !row.in_planned_order;
        for (const RowCell& c : row.cells) add_work(c.cell, row.rank.at());
    }

    void add_work(const PipelineCell& cell, std::size_t rank) {
        const std::int64_t ns = length(cell.work);
        const std::string kinds = kinds_of(cell.actions);
        for (const PipelineAction& a : cell.actions) stages_of_[rank].insert(a.stage);
        StageWork& work = stages_[{cell.actions.front().stage, trace_.ranks[rank].number, kinds}];
        std::tie(work.stage, work.rank, work.kind) =
            std::tuple(cell.actions.front().stage, trace_.ranks[rank].number, kinds);
        ++work.count;
        work.total += ns;
        work.longest = std::max(work.longest, ns);
    }

    static int peak_in_flight(const PipelineRow& row) {
        ChunkCount chunks;
        for (const RowCell& c : row.cells) {
            for (const PipelineAction& a : c.cell.actions)
                if (a.is_forward()) chunks.begin();
            for (const PipelineAction& a : c.cell.actions)
                if (a.ends_backward()) chunks.end();
        }
        return chunks.most();
    }

    const store::Trace& trace_;
    const PipelineTimeline& timeline_;
    std::vector<PipelineRank> rows_;                  // by rank index
    std::map<std::size_t, std::set<int>> stages_of_;  // likewise
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
    return sum_pipeline(trace, pipeline_timeline(trace, selection), selection);
}
PipelineReport sum_pipeline(const store::Trace& trace, const PipelineTimeline& timeline,
                            const Selection& selection) {
    PipelineReport report = PipelineSums(trace, timeline).report(selection);
    report.memory = stage_memory(trace, timeline, selection);
    return report;
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
