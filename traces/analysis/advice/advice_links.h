// Whether a link is slower than it should be: large collectives against the same ones of other groups, and
// against the links' nominal bandwidth where the trace says it. Internal to the room. Times in nanoseconds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace shardscope::traces {

struct Trace;

struct LinkReport {
    bool judged = false;  // there was something to compare with
    bool slow = false;
    bool between = false;               // hosts, else within one
    bool by_groups = false;             // against other groups, else against the nominal bandwidth
    std::string where;                  // the hosts of the slow groups, where not all are
    double times = 0;                   // as long as expected
    std::int64_t transfer_ns = 0;       // of the slow collectives, summed over their ranks
    std::vector<double> event_factors;  // by device event: expected over measured
};

// The nominal bandwidths are facts of the run, in bytes a second of one device and one direction.
inline constexpr const char* kIntraBandwidth = "sim.intra_bandwidth";
inline constexpr const char* kInterBandwidth = "sim.inter_bandwidth";

// Of the collectives whose device events `selected` has.
LinkReport link_report(const Trace& trace, const std::vector<bool>& selected);

}  // namespace shardscope::traces
