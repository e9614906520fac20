#include "trainer/lift/resident_memory.h"

#include <algorithm>
#include <cstddef>

#include "traces/store/columns/trace.h"
#include "trainer/plan/account.h"

namespace shardscope::trainer::lift {

namespace {

using traces::schema::MemorySpace;
using traces::store::RankIndex;

std::int64_t least_recorded(const traces::store::MemoryEvents& memory, RankIndex rank,
                            traces::analysis::Interval step) {
    std::int64_t live = 0, least = -1;
    for (std::size_t m = 0; m < memory.size() && memory.time[m] < step.end; ++m) {
        if (memory.rank[m] != rank.column() || memory.space[m] != MemorySpace::device) continue;
        if (least < 0 && memory.time[m] >= step.start) least = live;
        live += memory.bytes[m];
        if (memory.time[m] >= step.start) least = std::min(least, live);
    }
    return least;
}

std::int64_t least_planned(const sharding::Program& replay) {
    plan::AllocationCounter counter;
    std::int64_t least = 0;
    const auto walk = [&](const plan::Plan& plan) {
        for (const plan::Op& op : plan.ops) {
            if (op.kind == plan::OpKind::allocate) counter.allocated(plan, op);
            if (op.kind == plan::OpKind::free) counter.freed(plan, op);
            least = std::min(least, counter.live_bytes());
        }
    };
    walk(replay.setup());
    for (std::size_t s = 0; s <= replay.warm_up_steps(); ++s) {
        least = counter.live_bytes();
        walk(replay.step(s));
    }
    return least;
}

}  // namespace

std::int64_t resident_bytes(const traces::store::Trace& trace, RankIndex rank,
                            traces::analysis::Interval step, const sharding::Program& replay,
                            std::int64_t carried) {
    const std::int64_t recorded = least_recorded(trace.memory, rank, step);
    return std::max<std::int64_t>(0, recorded - least_planned(replay) - carried);
}

void add_resident(LiftedStep& step, std::int64_t bytes) {
    step.buffers.push_back({.name = "resident",
                            .category = traces::schema::MemoryCategory::other,
                            .bytes = bytes,
                            .grows = false});
    const Item allocation{.kind = Item::Kind::allocate, .index = static_cast<int>(step.buffers.size()) - 1};
    step.data.insert(step.data.begin(), allocation);
}

}  // namespace shardscope::trainer::lift
