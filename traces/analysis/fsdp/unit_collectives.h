// Relates device events to FSDP units: the gathers and reductions of a unit, and how kernels use its whole
// parameters. Internal to the library. Definition: docs/definitions.md, "Units".
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "traces/analysis/communication/matching.h"
#include "traces/schema/enums.h"
#include "traces/store/columns/index.h"

namespace shardscope::traces::store {
struct Trace;
}

namespace shardscope::traces::analysis {

struct UnitRanges;

struct UnitCollective {
    std::size_t event = 0;      // DeviceEvents row
    std::int64_t launched = 0;  // nanoseconds
    std::int64_t bytes = 0, padding = 0;
    store::UnitIndex unit;  // in UnitRanges::names
    std::int32_t group_size = 0;
    schema::Phase phase = schema::Phase::none;
    bool gather = false;  // an all-gather; else a reduce-scatter, all-reduce or reduce
};

// Collectives of our own traces carry their unit and phase; others belong to the unit of the range that
// launched them.
class UnitCollectives {
  public:
    UnitCollectives(const store::Trace& trace, const UnitRanges& ranges);

    // The collective of a device event; none if it is neither a gather nor a reduction.
    std::optional<UnitCollective> of_event(std::size_t event) const;

  private:
    const store::Trace& trace_;
    const UnitRanges& ranges_;
    KernelOperations operations_;
};

enum class UnitUse : std::uint8_t {
    computes,
    copies_out,  // copies gathered parameters to where compute reads them
    nothing,     // works on the shard or the gradients: into the next gather, or into or out of a reduction
};

// By host range: how kernels launched in it use their unit's whole parameters.
std::vector<UnitUse> unit_uses(const store::Trace& trace);

}  // namespace shardscope::traces::analysis
