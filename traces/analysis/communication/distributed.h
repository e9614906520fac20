// What the ranks do together: where each rank's time goes, the transfer and waiting of each collective, and
// which rank arrives last. Definition: docs/definitions.md, "Distributed". Times in nanoseconds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "traces/analysis/base/result_table.h"
#include "traces/analysis/base/selection.h"
#include "traces/analysis/communication/axes.h"
#include "traces/analysis/communication/hosts.h"
#include "traces/analysis/communication/stopped.h"
#include "traces/analysis/time/overlap.h"
#include "traces/schema/enums.h"

namespace shardscope::traces::store {
struct Trace;
}

namespace shardscope::traces::analysis {

// Bounds of the size classes of a collective's full buffer: the first is [0, 4 KiB), the last is unbounded.
inline constexpr std::int64_t kSizeClasses[] = {std::int64_t{4} << 10, std::int64_t{64} << 10,
                                                std::int64_t{1} << 20, std::int64_t{16} << 20,
                                                std::int64_t{256} << 20};

// One rank's part in all collectives.
struct RankTraffic {
    int rank = 0;
    std::string host;        // "" unknown
    std::string place;       // in the mesh (place_in_mesh)
    std::int64_t steps = 0;  // kept steps
    OverlapParts parts;      // summed over the kept steps' windows
    // false: nothing is recorded on its device, and `parts` is unknown.
    bool device_known = true;
    // Host threads carried out its collectives (host_collectives.h): how much compute hides them is unknown.
    bool on_host = false;
    std::int64_t collectives = 0, bytes = 0;
    std::int64_t ns = 0, transfer_ns = 0;  // ns - transfer_ns: waiting for other ranks
};

// Overlap parts as means per step; collectives as sums.
Fields<RankTraffic> rank_traffic_fields();

// Collectives of one kind in one group. A collective counts once, however many ranks it has.
struct Traffic {
    schema::Operation operation = schema::Operation::other;
    std::int64_t group = 0;
    std::string axis;     // of the mesh; "" unknown
    int group_size = 0;   // 0 unknown
    int size_class = -1;  // index into kSizeClasses, or its size: unbounded; -1 bytes unknown
    int nodes = 0;        // hosts that the group spans; 0 unknown
    std::int64_t count = 0, bytes = 0;
    std::int64_t transfer_ns = 0;  // sum of the shortest durations
    std::int64_t waiting_ns = 0;   // sum over ranks of duration - transfer
    std::int64_t parts = 0;        // ranks' parts with a time: the terms of `waiting_ns`
    std::int64_t unmatched = 0;    // parts without counterpart
    bool on_host = false;          // carried out by host threads, whose times these are
    double algbw_gbps = 0, busbw_gbps = 0;
};

Fields<Traffic> traffic_fields();

// A collective in which ranks waited.
struct SlowCollective {
    schema::Operation operation = schema::Operation::other;
    std::int64_t group = 0, sequence = -1, bytes = 0;
    int ranks = 0;
    std::int64_t start_ns = 0;  // start on the first rank, by that rank's clock
    std::int64_t transfer_ns = 0, longest_ns = 0, waiting_ns = 0;
    int last_rank = -1;  // number of the rank with the shortest duration
    bool on_host = false;
    MessageEnds ends = {};  // of a message
};
Fields<SlowCollective> slow_collective_fields();

struct DistributedReport {
    std::vector<RankTraffic> ranks;
    bool stepped = true;                  // false: the trace has no steps, and all of it is one "step"
    std::vector<Traffic> traffic;         // by group, operation, size class
    std::vector<AxisTraffic> axes;        // empty: no communicator's axis is known
    bool by_axis = false;                 // only the axes are of interest
    std::vector<SlowCollective> slowest;  // longest waiting first; at most kMostSlow
    std::int64_t collectives = 0;         // matched ones, counted once
    std::int64_t unmatched = 0;           // parts without a counterpart on another rank
    std::int64_t without_metadata = 0;    // parts known only from a kernel: matched by order
    std::string host_libraries;  // libraries whose host threads carried out collectives: "Gloo"; "" none
    HostsReport hosts;           // work on devices only
    StopReport stopped;          // for the whole trace, whatever the selection
};
inline constexpr std::size_t kMostSlow = 100;

// With a rank selected, only the collectives that it takes part in, and only its own parts in the sums;
// counterparts are found on all ranks. Sends and receives have no counterpart: all of their time is transfer.
DistributedReport distributed_report(const store::Trace& trace, const Selection& selection = {});

// How much the ranks differ.
struct RankSkew {
    double computation = 0;  // the largest rank's compute time per step over the mean; 0 unknown
    int slowest_rank = -1;   // its number; -1: all are alike (steps.h)
    int waited_for = -1;     // number of the rank that waits least in collectives: the others wait for it
    double least_waiting_us = 0, most_waiting_us = 0;  // per step, of the ranks that wait least and most
};

// Needs at least two ranks, all with kept steps; otherwise all values are unknown.
RankSkew rank_skew(const DistributedReport& report);

}  // namespace shardscope::traces::analysis
