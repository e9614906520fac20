// The traffic along each axis of the mesh: what its communicators carry, and what compute does not hide of
// it. Two axes of equal size are two rows. Definition: docs/definitions.md, "Distributed". Times in
// nanoseconds.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "traces/analysis/base/result_table.h"
#include "traces/analysis/base/selection.h"
#include "traces/analysis/base/step_windows.h"
#include "traces/analysis/communication/matching.h"

namespace shardscope::traces::analysis {

struct AxisTraffic {
    std::string axis;         // as in GroupRow; "" of communicators whose axis is unknown
    std::int64_t groups = 0;  // communicators along it
    int group_size = 0;       // ranks of each; 0: they differ, or are unknown
    // Each collective once:
    std::int64_t collectives = 0, bytes = 0, transfer_ns = 0;
    double algbw_gbps = 0, busbw_gbps = 0;  // 0 unknown
    // The ranks' parts in kept steps:
    std::int64_t steps = 0;  // summed over the ranks
    std::int64_t parts = 0, part_bytes = 0, waiting_ns = 0;
    std::int64_t ns = 0;          // union of the parts in the steps' windows
    std::int64_t exposed_ns = 0;  // of it outside compute kernels
};
Fields<AxisTraffic> axis_traffic_fields();
inline constexpr ResultColumn kAxisColumn = {
    "axis", "Axis", Unit::text,
    "Axis of the mesh: data, shard, context, tensor, pipeline, or as "
    "the trace names it; \"data+shard\" if the ranks lie along both."};

// In the order of the mesh's axes, an unknown one last. Empty if no communicator's axis is known.
std::vector<AxisTraffic> axis_traffic(const store::Trace& trace, const Selection& selection,
                                      const TraceSteps& steps, const Communications& all);

inline constexpr std::string_view kNoKnownAxis =
    "No collective on a device belongs to a communicator whose axis is known.";

// The axis of a communicator; "" unknown.
std::string_view axis_of(const store::Trace& trace, std::int64_t group);

// A rank's place in the mesh, "data 0, tensor 1": along the axes on which the trace's ranks differ. "" if
// they differ on fewer than two.
std::string place_in_mesh(const store::Trace& trace, store::RankIndex rank);

}  // namespace shardscope::traces::analysis
