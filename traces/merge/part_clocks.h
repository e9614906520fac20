// Aligns the clocks of all parts: by the wall clock or by measurements, then by the ends of collectives.
//
// 1. Wall clock. A part's time 0 is TARGET_INFO_SESSION_START_TIME.utcEpochNs. Parts of one machine since the
//    same boot (same host, and utcEpochNs - systemClockNs equal within a minute) share CLOCK_MONOTONIC,
//    which is never set: for them systemClockNs is used. A part without clocks begins with the first part.
// 2. Measurements. If the processes measured their hosts' CLOCK_MONOTONIC against rank 0's (SHARD_CLOCKS,
//    measured_clock.h), these replace the wall clock, and the parts of one machine are one clock: they move
//    together or not at all.
// 3. Ends of collectives that two parts have in common (same group, operation and sequence number; without
//    sequence numbers by order, if all ranks have equally many of the group and operation; only operations
//    that no rank can leave before all have arrived). Parts are joined one after another, the pair with the
//    most collectives in common first (a maximum spanning tree), each by fit_clock() against the one that is
//    already aligned. Parts that share a clock are corrected only if the ends differ by more than their
//    spread; measured clocks are moved by no more than their uncertainty, and only if the collectives give a
//    more exact offset. Then, in a few rounds, each part but the first is moved by the median of its
//    distances to the median of the others, so that all pairs count. Parts that share no collective keep the
//    wall clock.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "traces/merge/clock_fit.h"
#include "traces/merge/row_ids.h"
#include "traces/schema/enums.h"

namespace shardscope::traces::merge {

struct Part;

// (group, operation, sequence)
using CollectiveKey = std::tuple<std::int64_t, std::int64_t, std::int64_t>;
// When each collective ended on the part's last rank, in ns on the part's clock.
using CollectiveEnds = std::map<CollectiveKey, std::int64_t>;
// (start, end) of each collective that has no sequence number, ns on the part's clock, in any order; by
// (group, operation) and by rank.
using UnnumberedCollectives =
    std::map<std::pair<std::int64_t, std::int64_t>,
             std::map<std::int64_t, std::vector<std::pair<std::int64_t, std::int64_t>>>>;

struct PartClock {
    std::int64_t utc_ns = 0, system_ns = 0;  // at its time 0; 0: unknown
    std::string host;
    std::vector<ClockMeasure> measures = {};  // of its host's clock; `at` is in the part's time
    bool has_rank_0 = false;                  // if so, all measurements are against this part's clock
    std::int64_t length_ns = 0;               // of the part
    CollectiveEnds ends;
    UnnumberedCollectives unnumbered;

    // Adds a rank's collective if it can align clocks, that is, if no rank leaves it before all have arrived.
    // `sequence` < 0: it has no number.
    void add(schema::Operation operation, std::int64_t group, std::int64_t group_size, std::int64_t sequence,
             std::int64_t rank, std::int64_t start, std::int64_t end);
};

// Reads SHARD_COLLECTIVES or, in an export of Nsight Systems, NCCL's ranges (store/nccl_collectives.h).
// `group_of`: a group's number in the merged trace.
void read_collectives(Part& part, const std::function<std::int64_t(std::int64_t)>& group_of, PartClock& into);

struct AlignedPart : ClockShift {
    ClockMap clock;  // to the clock of the first part
};

struct Alignment : ClockResiduals {
    std::vector<AlignedPart> parts;
};

// A pure function; `parts` must not be empty.
Alignment align_clocks(const std::vector<PartClock>& parts);

}  // namespace shardscope::traces::merge
