// See cells.h.
#include "traces/analysis/pipeline/cells.h"

#include <algorithm>
#include <map>

#include "traces/analysis/base/step_windows.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::analysis {
namespace {

class CellSearch {
  public:
    explicit CellSearch(const store::Trace& trace) : trace_(trace), ranks_(trace.ranks.size()) {}

    std::vector<RankCells> find() {
        find_ranges();
        find_work();
        for (RankCells& rank : ranks_) {
            for (PipelineCell& cell : rank.cells)
                if (rank.on_host) cell.work = {cell.range};
            std::erase_if(rank.cells, [](const PipelineCell& cell) { return cell.work.empty(); });
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
                ranks_[rank.at()].cells.push_back({range, actions, {}, static_cast<std::int32_t>(i), -1});
        }
    }

    // The cell in whose range the time lies; null if there is none. (Autograd launches on a thread of its own
    // while the range is open on another.)
    static PipelineCell* around(std::vector<PipelineCell>& cells, std::int64_t time) {
        auto after = std::partition_point(cells.begin(), cells.end(),
                                          [&](const PipelineCell& cell) { return cell.range.start <= time; });
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
            PipelineCell* cell = around(rank.cells, launched);
            if (cell == nullptr || event.length() == 0) continue;
            rank.on_host = false;
            if (cell->event < 0) cell->event = static_cast<std::int32_t>(i);
            append_merged(cell->work, event);
            rank.launches.emplace_back(event.start, launched);
        }
        for (std::size_t r = 0; r < ranks_.size(); ++r)
            if (!ranks_[r].on_host) ranks_[r].transfers = std::move(communication[r]);
    }

    const store::Trace& trace_;
    std::vector<RankCells> ranks_;
};

}  // namespace

std::int64_t RankCells::launch_of(std::int64_t time) const {
    const auto at = std::lower_bound(launches.begin(), launches.end(), std::pair(time, INT64_MIN));
    return at != launches.end() && at->first == time ? std::min(at->second, time) : time;
}

std::vector<RankCells> pipeline_cells(const store::Trace& trace) {
    return CellSearch(trace).find();
}

}  // namespace shardscope::traces::analysis
