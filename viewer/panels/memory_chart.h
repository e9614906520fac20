// The memory curve of one rank: bytes by category over time, the peak, what is reserved, steps and a
// cross-hair. Keeps the fold of the last frame, which is worked out again only when curve, range or width
// change. Drawing layer; frame thread only.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "traces/analysis/memory.h"
#include "viewer/draw/fold.h"

namespace shardscope::traces {
struct Trace;
}

namespace shardscope::viewer {

class MemoryChart {
  public:
    struct Input {
        const traces::Trace* trace = nullptr;
        int rank_index = 0;
        std::span<const traces::MemoryPoint> curve;
        const traces::RankMemory* memory = nullptr;
        std::int64_t from = 0, to = 1;  // ns
    };

    // Draws into the current window over its whole width.
    void draw(const Input& input, float height);

  private:
    const std::vector<FoldedColumn>& folded(const Input& input, int columns);

    const void* curve_ = nullptr;
    std::int64_t from_ = 0, to_ = 0;
    std::vector<FoldedColumn> columns_;
};

}  // namespace shardscope::viewer
