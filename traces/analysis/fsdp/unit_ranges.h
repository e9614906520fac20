// Which FSDP unit each host range works for, and in which part of a step. Definition: docs/definitions.md,
// "Units". Names of PyTorch's ranges: torch/distributed/fsdp (FSDP1: "FullyShardedDataParallel.forward",
// "._pre_backward_hook" ...) and torch/distributed/fsdp/_fully_shard (FSDP2: "FSDP::all_gather (layers.3)"
// ...).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "traces/schema/enums.h"
#include "traces/store/columns/index.h"

namespace shardscope::traces::store {
struct Trace;
}

namespace shardscope::traces::analysis {

struct UnitRanges {
    std::vector<std::string> names;      // names of the units; in the order of UnitRows if the trace has them
    std::vector<store::UnitIndex> unit;  // by host range
    std::vector<schema::Phase> phase;    // by host range: forward, backward, recompute, or none
    std::vector<std::int32_t> limiters;  // host ranges in which the limiter of gathers blocked the host

    struct Change {  // of a thread's unit or phase, by a hook
        std::int64_t time = 0;
        store::UnitIndex unit;
        schema::Phase phase = schema::Phase::none;
    };
    std::vector<std::vector<Change>> changes;  // by thread, sorted by time
    std::vector<bool> changes_inside;          // by host range: a hook ran in it

    struct Place {
        store::UnitIndex unit;
        schema::Phase phase = schema::Phase::none;
    };
    // The unit and phase of work launched at `time` with `range` as its innermost range (-1: none).
    Place at(const store::Trace& trace, std::int32_t range, std::int64_t time) const;
};

// In our own traces the module of a range decides: its unit is its own or its nearest ancestor's. In
// others, a range belongs to the unit that it names, else to that of the range around it or, if more
// recent, to the unit whose hooks ran last on the thread (FSDP2's forward lies between FSDP::pre_forward
// and ::post_forward, a backward between its pre- and post-backward hooks); an operator of autograd belongs
// to the unit of its forward. FSDP1's hooks do not name units: they run in the reverse order of the
// forwards (pre-backward hooks in that of their ends, post-backward hooks in that of their starts), where
// units without parameters of their own, which only enclose others, may be missing.
UnitRanges find_units(const store::Trace& trace);

}  // namespace shardscope::traces::analysis
