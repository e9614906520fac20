// One run as a card: what differs, peak memory, step time, communication, a step of its trace and its module
// tree. Keeps the strip of the last frame, which is folded again only when step or width change. Drawing
// layer (Dear ImGui); frame thread only. Pixels.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "traces/analysis/compare/compare.h"
#include "traces/analysis/modules/modules.h"
#include "traces/analysis/time/summary.h"
#include "traces/store/columns/trace.h"
#include "viewer/draw/strip.h"
#include "viewer/panels/memory/memory_chart.h"
#include "viewer/theme/theme.h"

namespace shardscope::viewer::panels {

class CompareCard {
  public:
    struct Input {
        std::string title, file;
        theme::Color color = 0;  // the run's
        const traces::analysis::RunColumn* run = nullptr;
        const traces::analysis::RunColumn* first = nullptr;  // the base; equal to `run` on the first card
        bool comparable = true;  // times compare with the base's: both stepped, or neither
        const traces::store::Trace* trace = nullptr;
        const traces::analysis::RankSummary* rank0 = nullptr;  // nullptr while it is computed
        const traces::analysis::RankModules* modules = nullptr;
        std::span<const traces::analysis::MemoryPoint>
            curve;  // of the rank with the largest peak; empty while it is computed
        const traces::analysis::RankMemory* memory = nullptr;  // of the same rank as `curve`
        traces::store::RankIndex memory_rank;
        std::int64_t largest_peak = 0;  // common scale of the memory bars, bytes
        std::int64_t longest_step = 0;  // common scale of the strips, ns
    };

    void draw(const Input& input, float width, float height);

  private:
    float figures_height(const Input& input) const;
    void draw_strip(const Input& input);
    void draw_curve(const Input& input);
    const std::vector<draw::StripRow>& folded(const Input& input, const traces::analysis::StepSummary& step,
                                              int columns);

    const traces::store::Trace* trace_ = nullptr;
    std::int64_t from_ = 0, to_ = 0;
    int columns_ = 0;
    std::vector<draw::StripRow> rows_;
    MemoryChart chart_;
};

}  // namespace shardscope::viewer::panels
