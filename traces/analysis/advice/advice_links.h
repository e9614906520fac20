// Detects links that are slower than they should be: compares large collectives with the same ones of other
// groups, and with the links' nominal bandwidth if the trace has it. Internal to the library. Times in ns.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace shardscope::traces::store {
struct Trace;
}

namespace shardscope::traces::analysis {

struct LinkReport {
    bool judged = false;  // there was something to compare with
    bool slow = false;
    bool between = false;               // between hosts; else within one host
    bool by_groups = false;             // compared with other groups; else with the nominal bandwidth
    std::string where;                  // the hosts of the slow groups, if these are not all hosts
    double times = 0;                   // measured time over expected time
    std::int64_t transfer_ns = 0;       // of the slow collectives, summed over their ranks
    std::vector<double> event_factors;  // by device event: expected over measured
};

// Judges the collectives whose device events are in `selected`.
LinkReport link_report(const store::Trace& trace, const std::vector<bool>& selected);

}  // namespace shardscope::traces::analysis
