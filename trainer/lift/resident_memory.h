// Memory that a recorded step neither allocates nor frees, beside parameters, gradients and optimizer state:
// buffers of the model, data on the device, workspaces of libraries. It is the same under every setting.
#pragma once

#include <cstdint>

#include "traces/analysis/base/intervals.h"
#include "traces/store/columns/index.h"
#include "trainer/lift/lifted.h"
#include "trainer/sharding/program.h"

namespace shardscope::traces::store {
struct Trace;
}

namespace shardscope::trainer::lift {

// What a rank has in the step, at the moment when it has least, beyond what
// `replay`, the recorded settings, has at such a moment and `carried` bytes. 0: nothing, or less.
std::int64_t resident_bytes(const traces::store::Trace& trace, traces::store::RankIndex rank,
                            traces::analysis::Interval step, const sharding::Program& replay,
                            std::int64_t carried);

void add_resident(LiftedStep& step, std::int64_t bytes);

}  // namespace shardscope::trainer::lift
