// See unit_compute.h.
#include "traces/analysis/fsdp/unit_compute.h"

#include <algorithm>

namespace shardscope::traces {

void UnitCompute::add(Interval kernel, std::int32_t unit) {
    kernel.start = std::max(kernel.start, last_end_);
    if (kernel.start >= kernel.end) return;
    last_end_ = kernel.end;
    if (!pieces_.empty() && pieces_.back().unit == unit && pieces_.back().time.end == kernel.start) {
        pieces_.back().time.end = kernel.end;
    } else {
        pieces_.push_back({kernel, unit});
    }
}

std::int64_t UnitCompute::overlap(Interval time,
                                  std::unordered_map<std::int32_t, std::int64_t>& by_unit) const {
    std::int64_t sum = 0;
    auto piece = std::partition_point(pieces_.begin(), pieces_.end(),
                                      [&](const Piece& p) { return p.time.end <= time.start; });
    for (; piece != pieces_.end() && piece->time.start < time.end; ++piece) {
        const std::int64_t both =
            std::min(piece->time.end, time.end) - std::max(piece->time.start, time.start);
        by_unit[piece->unit] += both;
        sum += both;
    }
    return sum;
}

}  // namespace shardscope::traces
