// Performance of a job's process group: time and latency of each collective by size, measured with Plans that
// contain nothing else, so that collectives run and are recorded as in a step.
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

namespace shardscope::trainer::executor {

// Every round makes all measurements in turn, memory copies too, and the fastest round of each counts: on a
// shared machine only some rounds are slow.
inline constexpr int kCollectiveBenchRounds = 7;

struct CollectiveRate {
    traces::schema::Operation operation = traces::schema::Operation::all_gather;
    std::int64_t bytes = 0;  // size of the full buffer
    int repeats = 0;         // back to back, without a wait of the host in between
    // Times on the slowest rank, in the fastest round:
    double us = 0;          // of each repeat
    double latency_us = 0;  // of one alone, from the host's call until its wait returns; the round's median
    // Lower bound: the time to move the bytes through a rank's memory at the rate at which all ranks of one
    // host copy memory at the same time; 0: unknown (a GPU, several hosts).
    double bound_us = 0;
};

struct CollectiveBench {
    double copy_gbps = 0;  // of one rank while all copy, bytes read and written; 0: not measured
    std::vector<CollectiveRate> rates;
};

struct CollectiveBenchOptions {
    std::int64_t smallest = 4 << 10, largest = 64 << 20;  // bytes; each size is four times the one before
    profiler::Recorder* recorder = nullptr;               // null: nothing is recorded
    Processes* processes = nullptr;                       // null: all ranks are in this process
    std::function<void(const CollectiveRate&)> on_rate;   // called in the process of rank 0; may be empty
};

// Measures among all ranks of the program, in fp32. The result is complete in the process of rank 0. Throws
// as run_training does.
CollectiveBench bench_collectives(const sharding::Program& program, const CollectiveBenchOptions& options);

}  // namespace shardscope::trainer::executor
