// Collectives by operation: counts, bytes, time, bandwidth. Definitions: docs/definitions.md, "Distributed"
// (bandwidths as nccl-tests defines them).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "traces/analysis/base/result_table.h"
#include "traces/analysis/base/selection.h"
#include "traces/analysis/communication/messages.h"
#include "traces/schema/enums.h"
#include "traces/store/columns/names.h"

namespace shardscope::traces::store {
struct Trace;
}

namespace shardscope::traces::analysis {

struct OperationStats {
    schema::Operation operation = schema::Operation::other;
    bool on_host = false;  // carried out by host threads (host_collectives.h): exposed time is unknown
    std::int64_t count = 0;
    std::int64_t bytes = 0;  // sum of full-buffer bytes, of those whose bytes are known; 0: none known
    double us = 0;           // sum of device durations
    double transfer_us = 0;  // sum of transfers: the shortest duration of each among its ranks
    double waiting_us = 0;   // us - transfer_us
    double exposed_us = 0;   // part of the union outside compute kernels; unknown if on_host
    double algbw_gbps = 0, busbw_gbps = 0;  // 0 unknown
    // In the kept steps; work outside steps is not counted.
    double count_per_step = 0, bytes_per_step = 0, us_per_step = 0;
};

Fields<OperationStats> collective_fields();

struct RankCollectives {
    int rank = 0;
    std::vector<OperationStats> operations;
    std::int64_t unmatched = 0;  // collectives without their counterpart on another rank
};

struct CollectivesReport {
    std::vector<RankCollectives> ranks;
    bool stepped = true;  // false: the trace has no steps, and figures per step are of the whole trace
};

// Communication kernels without collective metadata (an Nsight export without NCCL's ranges, an old Kineto
// trace) count with their time but without bytes. Their operation is taken from their name or the ranges
// around their launch, and they are matched by order (matching.h). Ranks whose devices did not communicate
// have the collectives of their host threads.
CollectivesReport collectives_report(const store::Trace& trace, const Selection& selection = {});

// One collective of one rank, compared with its counterparts on the other ranks.
struct MatchedCollective {
    std::int64_t transfer_ns = -1;  // the shortest duration among the ranks; -1: no rank has a device event
    bool unmatched = false;         // fewer ranks took part than the group has
    bool bytes_differ = false;      // differs from a counterpart's
    std::int32_t match = -1;        // the same number for all counterparts, starting at 0
};

// By row of Trace::collectives: the result of match_communications (matching.h).
std::vector<MatchedCollective> match_collectives(const store::Trace& trace);

// busbw / algbw of nccl-tests for n ranks; NaN if it depends on n and n is unknown (0).
double bus_factor(schema::Operation operation, int ranks);
// The bandwidths of several collectives together: of those whose bytes are known.
class Bandwidths {
  public:
    void add(schema::Operation operation, std::int64_t bytes, std::int64_t transfer_ns, int ranks);
    double algbw() const { return gbps(bytes_); }  // GB/s; 0 unknown
    double busbw() const { return gbps(bus_bytes_); }

  private:
    double gbps(double bytes) const;

    std::int64_t ns_ = 0;
    double bytes_ = 0, bus_bytes_ = 0;
};

// One collective of all its ranks, or a message of its two; a message whose other end is unknown is alone.
struct CollectiveTimes {
    schema::Operation operation = schema::Operation::other;
    schema::Phase phase = schema::Phase::none;
    store::UnitIndex unit;
    std::int64_t group = -1;  // -1 unknown, as below
    std::int64_t sequence = -1, bytes = -1;
    MessageEnds ends;              // of a message
    int group_size = 0;            // 0 unknown
    int ranks = 0;                 // number of ranks with a device event for it
    std::int32_t event = -1;       // DeviceEvents row of the rank that spent the longest time in it
    std::int64_t start_ns = 0;     // start of that row
    std::int64_t transfer_ns = 0;  // the shortest duration
    std::int64_t longest_ns = 0;
    std::int64_t waiting_ns = 0;     // sum over ranks of duration - transfer
    std::int64_t exposed_ns = 0;     // sum over ranks of the time outside compute kernels
    std::int64_t overlapped_ns = 0;  // sum over ranks of the rest
    int last_rank = -1;              // number of the rank with the shortest duration; -1 if there is one rank
    double algbw_gbps = 0, busbw_gbps = 0;  // 0 without bytes or time
};

// In order of start: every collective with at least one selected event (by step and time), with all its
// parts. With a rank selected, only the collectives that it takes part in. Collectives without a device event
// are omitted.
std::vector<CollectiveTimes> collective_list(const store::Trace& trace, const Selection& selection = {});

}  // namespace shardscope::traces::analysis
