// See stage_memory.h.
#include "traces/analysis/pipeline/stage_memory.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "traces/analysis/base/step_windows.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::analysis {
namespace {

// One rank's chunks and allocations, followed in the order of its host program.
class RankChunks {
  public:
    void add(const PipelineCell& cell) { cells_.push_back(&cell); }
    bool has_cells() const { return !cells_.empty(); }

    // Ends the cells whose ranges have ended by `time`.
    void advance(std::int64_t time) {
        for (; next_ < cells_.size() && cells_[next_]->range.end <= time; ++next_) {
            for (const PipelineAction& a : cells_[next_]->actions) {
                Stage& stage = stages_[a.stage];
                if (!a.is_forward()) continue;
                stage.chunks.begin();
                if (stage.bytes > stage.most.bytes) {
                    stage.most.bytes = stage.bytes;
                    stage.most.chunks_then = stage.chunks.now();
                }
            }
            for (const PipelineAction& a : cells_[next_]->actions)
                if (a.ends_backward()) stages_[a.stage].chunks.end();
        }
    }

    void allocate(std::int64_t time, std::uint64_t address, std::int64_t bytes) {
        if (next_ == cells_.size() || time < cells_[next_]->range.start) return;
        const auto& actions = cells_[next_]->actions;
        const auto forward =
            std::find_if(actions.begin(), actions.end(), [](const auto& a) { return a.is_forward(); });
        if (forward == actions.end()) return;
        live_[address] = {forward->stage, bytes};
        stages_[forward->stage].bytes += bytes;
    }

    void free(std::uint64_t address) {
        const auto at = live_.find(address);
        if (at == live_.end()) return;
        stages_[at->second.first].bytes -= at->second.second;
        live_.erase(at);
    }

    std::vector<StageMemory> stages(int rank) {
        advance(INT64_MAX);
        std::vector<StageMemory> result;
        for (auto& [number, stage] : stages_) {
            stage.most.stage = number;
            stage.most.rank = rank;
            stage.most.chunks = stage.chunks.most();
            result.push_back(stage.most);
        }
        return result;
    }

  private:
    struct Stage {
        ChunkCount chunks;
        std::int64_t bytes = 0;  // of its forwards, live
        StageMemory most;
    };
    std::vector<const PipelineCell*> cells_;  // by start of their ranges
    std::size_t next_ = 0;                    // the first that has not ended
    std::map<int, Stage> stages_;
    std::unordered_map<std::uint64_t, std::pair<int, std::int64_t>> live_;  // by address: stage, bytes
};

}  // namespace

std::vector<StageMemory> stage_memory(const store::Trace& trace, const PipelineTimeline& timeline,
                                      const Selection& selection) {
    std::vector<RankChunks> ranks(trace.ranks.size());
    for (const PipelineStep& step : timeline.steps) {
        if (!selection.has_step(step.number)) continue;
        for (const PipelineRow& row : step.rows) {
            for (const RowCell& c : row.cells) ranks[row.rank.at()].add(c.cell);
        }
    }
    const store::MemoryEvents& memory = trace.memory;
    std::vector<bool> has_categories(ranks.size(), false);
    for (std::size_t i = 0; i < memory.size(); ++i) {
        if (memory.category[i] == schema::MemoryCategory::activations) has_categories[memory.rank[i]] = true;
    }
    for (std::size_t i = 0; i < memory.size(); ++i) {  // sorted by time
        RankChunks& rank = ranks[memory.rank[i]];
        if (!rank.has_cells() || memory.space[i] != schema::MemorySpace::device) continue;
        rank.advance(memory.time[i]);
        rank.free(memory.address[i]);  // also before an allocation there: the event of the free was lost
        if (memory.bytes[i] >= 0 &&
            (!has_categories[memory.rank[i]] || memory.category[i] == schema::MemoryCategory::activations))
            rank.allocate(memory.time[i], memory.address[i], memory.bytes[i]);
    }
    std::vector<StageMemory> result;
    for (const store::RankIndex r : selected_ranks(trace, selection)) {
        const std::vector<StageMemory> own = ranks[r.at()].stages(trace.ranks[r.at()].number);
        result.insert(result.end(), own.begin(), own.end());
    }
    std::sort(result.begin(), result.end(), [](const StageMemory& a, const StageMemory& b) {
        return std::pair(a.stage, a.rank) < std::pair(b.stage, b.rank);
    });
    return result;
}

Fields<StageMemory> stage_memory_fields() {
    using S = StageMemory;
    static constexpr Field<S> kFields[] = {
        {{"stage", "Stage", Unit::index, "The stage, numbered over the whole model."}, value_of<&S::stage>},
        {kRankColumn, value_of<&S::rank>},
        {{"in_flight_peak", "In flight", Unit::count,
          "The most chunks of the stage whose forward has begun and whose backward (B or W) has not ended."},
         value_of<&S::chunks>},
        {{"in_flight_bytes", "Kept", Unit::bytes,
          "The most memory allocated in the stage's forwards that is still allocated when one of them ends. "
          "Activations only, if allocations have categories."},
         known_value_of<&S::bytes>},
        {{"bytes_per_chunk", "Per chunk", Unit::bytes,
          "in_flight_bytes divided by the chunks in flight at that moment."},
         [](const S& s) {
             return s.bytes > 0 && s.chunks_then > 0
                        ? store::Cell(static_cast<double>(s.bytes) / static_cast<double>(s.chunks_then))
                        : store::Cell();
         }},
    };
    return kFields;
}

}  // namespace shardscope::traces::analysis
