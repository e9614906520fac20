// The rows of SHARD_COUNTERS by what they are counters of: a GPU, an adapter, a host, a rank. Names are
// those of docs/recording.md.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "traces/analysis/base/intervals.h"
#include "traces/analysis/job/samples.h"

namespace shardscope::traces::store {
struct Trace;
}

namespace shardscope::traces::analysis {

enum class CounterOwner : std::uint8_t { gpu, infiniband, ethernet, host, rank };

struct CounterPlace {
    std::string host;  // empty: unknown
    CounterOwner owner = CounterOwner::gpu;
    int number = 0;  // of the device on its host, or of the rank; 0 for a host
    bool operator<(const CounterPlace& other) const {
        return std::tie(host, owner, number) < std::tie(other.host, other.owner, other.number);
    }
};

struct OwnedCurves {
    std::map<std::string, SampledCurve, std::less<>> curves;  // by name, without "gpu_" and the like
    std::set<int> ranks;                                      // numbers of the ranks that report them

    const SampledCurve* find(std::string_view name) const;  // nullptr: no usable sample
};

// Processes of no rank are their host's: "job_cpu_cores". `unusable`: by name, how many values were left out.
std::map<CounterPlace, OwnedCurves> owned_counters(const store::Trace& trace, Interval within,
                                                   std::map<std::string, std::int64_t>& unusable);

// The host of what does not name one: the job's, if it has only one; else empty.
std::string only_host(const store::Trace& trace);

}  // namespace shardscope::traces::analysis
