// Performance of a job's process group: time and latency of each collective by size, and of messages between
// ranks, measured with Plans that contain nothing else, so that they run and are recorded as in a step. What
// the wire below the process group can do with messages is measured beside them.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
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

// The size of the larger message of each pair of ranks, and the least of the smaller one.
inline constexpr std::int64_t kPairBytes = 4 << 20, kSmallestBenchBytes = 8;

struct CollectiveRate {
    traces::schema::Operation operation = traces::schema::Operation::all_gather;
    std::int64_t bytes = 0;  // size of the full buffer
    int repeats = 0;         // back to back, without a wait of the host in between
    // Times on the slowest rank, in the fastest round:
    double us = 0;          // of each repeat
    double latency_us = 0;  // of one alone, from the host's call until its wait returns; the round's median
};

// Of messages from one rank to another, in microseconds.
struct MessageTimes {
    double latency_us = 0;  // half a round trip
    double us = 0;          // of each of many messages one way
    double both_us = 0;     // of each pair of messages, one in each direction at a time
};
struct MessageRate {
    int from = 0, to = 0;
    std::int64_t bytes = 0;
    int repeats = 0;
    MessageTimes in_plan;  // as pipeline stages send: one after the other on a stream of each rank
    // By how much the median round of in_plan's latency_us and us is slower than the fastest, as a share of
    // it.
    double latency_spread = 0, spread = 0;
    // Over the wire alone, as OSU's benchmarks measure (comm/message_bench.h): up to 64 under way. All 0:
    // there is no wire (ranks are threads, or GPUs).
    MessageTimes on_wire;
};

struct CollectiveBench {
    // Copies in memory, bytes read and written, of one rank: while all copy, and alone. 0: not measured.
    double copy_gbps = 0, alone_copy_gbps = 0;
    std::vector<CollectiveRate> rates;
    std::vector<MessageRate> messages;
};

struct CollectiveBenchOptions {
    std::int64_t smallest = kSmallestBenchBytes, largest = 64 << 20;  // bytes (bench_sizes in bench_plans.h)
    bool collectives = true;                                          // false: messages alone
    bool pairs = false;                      // messages between all pairs of ranks, not only of ranks 0 and 1
    profiler::Recorder* recorder = nullptr;  // null: nothing is recorded
    Processes* processes = nullptr;          // null: all ranks are in this process
    std::function<void(const std::string&)> on_progress;  // what is measured now; called in the process of
                                                          // rank 0; may be empty
};

// Measures among all ranks of the program, in fp32; messages between those that talk (Program::let_talk). The
// result is complete in the process of rank 0. Throws as run_training does.
CollectiveBench bench_collectives(const sharding::Program& program, const CollectiveBenchOptions& options);

}  // namespace shardscope::trainer::executor
