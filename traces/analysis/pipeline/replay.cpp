// See replay.h.
#include "traces/analysis/pipeline/replay.h"

#include <algorithm>
#include <optional>
#include <set>

namespace shardscope::traces::analysis {
namespace {

// The mean time of the computations of one kind, of a stage or of all stages.
class MeanTimes {
  public:
    explicit MeanTimes(const PipelineStep& step) {
        for (const PipelineRow& row : step.rows) {
            for (const RowCell& c : row.cells) {
                const std::string kinds = kinds_of(c.cell.actions);
                const std::int64_t ns = length(c.cell.work);
                stages_[{c.cell.actions.front().stage, kinds}].add(ns);
                kinds_[kinds].add(ns);
            }
        }
    }
    // None if no computation of this kind ran.
    std::optional<std::int64_t> of(const PlannedCell& cell) const {
        const std::string kinds = kinds_of(cell.actions);
        if (const auto at = stages_.find({cell.actions.front().stage, kinds}); at != stages_.end())
            return at->second.mean();
        if (const auto at = kinds_.find(kinds); at != kinds_.end()) return at->second.mean();
        return {};
    }

  private:
    struct Sum {
        std::int64_t ns = 0, count = 0;
        void add(std::int64_t more) {
            ns += more;
            ++count;
        }
        std::int64_t mean() const { return ns / count; }
    };
    std::map<std::pair<int, std::string>, Sum> stages_;
    std::map<std::string, Sum> kinds_;
};

class PlannedPipeline {
  public:
    explicit PlannedPipeline(PipelineStep& step) : step_(step), means_(step), end_(step.makespan.start) {
        for (const PipelineRow& row : step.rows) {
            for (const PlannedCell& cell : row.planned) {
                for (const PipelineAction& a : cell.actions)
                    if (StageResult::is_given_by(a)) to_come_.insert(StageResult::of(a));
            }
        }
    }

    bool run() {
        std::vector<std::size_t> next(step_.rows.size(), 0);
        std::vector<std::int64_t> free(step_.rows.size(), step_.makespan.start);
        for (bool moved = true; moved;) {
            moved = false;
            for (std::size_t r = 0; r < step_.rows.size(); ++r) {
                std::vector<PlannedCell>& planned = step_.rows[r].planned;
                while (next[r] < planned.size()) {
                    const auto end = place(planned[next[r]], free[r]);
                    if (!end) break;
                    free[r] = *end;
                    ++next[r];
                    moved = true;
                }
            }
        }
        for (std::size_t r = 0; r < step_.rows.size(); ++r) {
            if (next[r] < step_.rows[r].planned.size()) return false;
            end_ = std::max(end_, free[r]);
        }
        return true;
    }
    std::int64_t end() const { return end_; }

  private:
    // When the cell ends if its rank is free at `time`; none: it waits for a cell that has no time yet, or
    // how long it takes is unknown.
    std::optional<std::int64_t> place(PlannedCell& cell, std::int64_t time) {
        const auto mean = means_.of(cell);
        if (!mean) return {};
        for (const PipelineAction& a : cell.actions) {
            if (!StageResult::is_given_by(a) || !to_come_.contains(StageResult::before(a))) continue;
            const auto at = ends_.find(StageResult::before(a));
            if (at == ends_.end()) return {};
            time = std::max(time, at->second);
        }
        cell.time = {time, time + *mean};
        for (const PipelineAction& a : cell.actions)
            if (StageResult::is_given_by(a)) ends_[StageResult::of(a)] = cell.time.end;
        return cell.time.end;
    }

    PipelineStep& step_;
    const MeanTimes means_;
    std::set<StageResult> to_come_;  // that some rank's plan gives
    std::map<StageResult, std::int64_t> ends_;
    std::int64_t end_;
};

}  // namespace

std::string kinds_of(const std::vector<PipelineAction>& actions) {
    std::string kinds;
    for (const PipelineAction& a : actions) kinds += (kinds.empty() ? "" : "+") + a.kind;
    return kinds;
}

std::map<int, std::vector<PlannedCell>> planned_cells(const std::vector<schema::ScheduleRow>& schedule) {
    std::map<int, std::vector<PlannedCell>> ranks;
    std::set<int> open;                                // ranks whose last cell takes the next action, too
    for (const schema::ScheduleRow& row : schedule) {  // in each rank's order
        PipelineAction action{row.stage, row.kind, row.micro_batch};
        if (!action.is_compute()) continue;
        std::vector<PlannedCell>& cells = ranks[row.rank];
        if (!open.contains(row.rank)) cells.emplace_back();
        cells.back().actions.push_back(std::move(action));
        if (row.with_next) {
            open.insert(row.rank);
        } else {
            open.erase(row.rank);
        }
    }
    return ranks;
}

void replay_plan(PipelineStep& step) {
    const auto is_planned = [](const PipelineRow& row) { return !row.planned.empty(); };
    if (step.rows.empty() || !std::all_of(step.rows.begin(), step.rows.end(), is_planned)) return;
    PlannedPipeline replay(step);
    if (replay.run()) {
        step.planned_ns = replay.end() - step.makespan.start;
        return;
    }
    for (PipelineRow& row : step.rows) {
        for (PlannedCell& cell : row.planned) cell.time = {};
    }
}

}  // namespace shardscope::traces::analysis
