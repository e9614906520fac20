// The computations of a pipeline's ranks: which ranges are actions of a schedule, and what each launched on
// the device. Definition: docs/definitions.md, "Pipeline". Times in nanoseconds.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "traces/analysis/base/intervals.h"
#include "traces/analysis/pipeline/actions.h"

namespace shardscope::traces::store {
struct Trace;
}

namespace shardscope::traces::analysis {

// Actions that run together: a range, and the work that was launched in it.
struct PipelineCell {
    Interval range;
    std::vector<PipelineAction> actions;  // all of them compute
    IntervalSet work;                     // on the device; the range itself if nothing is recorded there
    std::int32_t host_range = -1;         // index into HostRanges
    std::int32_t event = -1;              // its first, an index into DeviceEvents; -1: on the host

    std::int64_t start() const { return work.front().start; }
    std::int64_t end() const { return work.back().end; }
};

// Chunks in flight: those whose forward has begun and whose backward (B or W) has not ended.
class ChunkCount {
  public:
    void begin() { most_ = std::max(most_, ++now_); }
    void end() { now_ = std::max(now_ - 1, 0); }  // a selected time may omit the forward
    int now() const { return now_; }
    int most() const { return most_; }

  private:
    int now_ = 0, most_ = 0;
};

struct RankCells {
    std::vector<PipelineCell> cells;  // by start of their ranges
    IntervalSet transfers;            // communication on the device; without a device its RECV ranges
    std::vector<std::pair<std::int64_t, std::int64_t>>
        launches;  // start of a cell's device event, its launch
    bool on_host = true;

    // When the work that starts at `time` was launched; `time` itself if that is unknown.
    std::int64_t launch_of(std::int64_t time) const;
};

// By index into Trace::ranks.
std::vector<RankCells> pipeline_cells(const store::Trace& trace);

}  // namespace shardscope::traces::analysis
