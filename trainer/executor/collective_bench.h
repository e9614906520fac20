// What a job's process group gives: time and latency of each collective by size, measured with Plans of
// nothing else, so that they run, and are recorded, as a step's collectives are.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "traces/schema/enums.h"
#include "trainer/executor/processes.h"
#include "trainer/sharding/program.h"

namespace shardscope::profiler {
class Recorder;
}

namespace shardscope::trainer {

// All measurements take turns in every round, copies of memory too, and the fastest round of each counts: a
// machine that others use as well is slow for some of them only.
inline constexpr int kCollectiveBenchRounds = 7;

struct CollectiveRate {
    traces::Operation operation = traces::Operation::all_gather;
    std::int64_t bytes = 0;  // of the full buffer
    int repeats = 0;         // one after another, without a wait of the host between
    // On the slowest rank, in the fastest round:
    double us = 0;          // of each
    double latency_us = 0;  // of one alone, from the host's call until its wait returns; the round's median
    // What the bytes that must move through a rank's memory take at least, at the rate that the ranks of one
    // host copy memory all at once; 0: not known (a GPU, several hosts).
    double bound_us = 0;
};

struct CollectiveBench {
    double copy_gbps = 0;  // of one rank while all copy, bytes read and written; 0: not measured
    std::vector<CollectiveRate> rates;
};

struct CollectiveBenchOptions {
    std::int64_t smallest = 4 << 10, largest = 64 << 20;  // bytes; four times as much from one to the next
    profiler::Recorder* recorder = nullptr;               // null: nothing is recorded
    Processes* processes = nullptr;                       // null: all ranks are of this process
    std::function<void(const CollectiveRate&)> on_rate;   // in the process of rank 0; may be empty
};

// Among all ranks of the program, in fp32. The result is complete in the process of rank 0. Throws as
// run_training does.
CollectiveBench bench_collectives(const Program& program, const CollectiveBenchOptions& options);

}  // namespace shardscope::trainer
