// The parts of a recorded step of one rank, by time: everything before its last micro-batch; the data,
// forward, loss and backward of that one; and the rest.
#pragma once

#include <cstdint>
#include <vector>

#include "traces/analysis/base/intervals.h"
#include "trainer/lift/host_points.h"

namespace shardscope::trainer::lift {

enum class Part : std::uint8_t { before, data, forward, loss, backward, tail };

struct StepParts {
    traces::analysis::Interval root{}, backward{};  // the forward and the backward of the last micro-batch
    std::int64_t micro_start = 0;                   // start of that micro-batch
    int micro_batches = 1;
    bool has_modules = false;   // module ranges show the forward
    bool has_backward = false;  // autograd's nodes show where the backward begins

    Part at(std::int64_t time) const;
    bool in_forward(std::int64_t time) const { return time >= root.start && time < root.end; }
};

// `points` are those of the step, whose host time is `host`.
StepParts find_parts(const traces::store::Trace& trace, const HostRangeRoles& roles,
                     const std::vector<Point>& points, traces::analysis::Interval host);

}  // namespace shardscope::trainer::lift
