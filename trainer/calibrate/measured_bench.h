// What a benchmark of collectives measured (shardscope-train --bench-collectives --trace), from the facts of
// its trace (bench_facts.h). Times are seconds.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "trainer/calibrate/measured.h"

namespace shardscope::trainer::calibrate {

// A collective of all ranks, or a message from rank 0 to rank 1, as each of many.
struct BenchedTime {
    plan::Operation operation = plan::Operation::other;
    std::int64_t bytes = 0;
    double seconds = 0;
};

// Messages from each rank to each other one.
struct BenchedPairs {
    int ranks = 0;
    std::int64_t small_bytes = 0, large_bytes = 0;
    std::vector<double> latency;  // half a round trip of the small ones, row by row; 0 on the diagonal
    std::vector<double> seconds;  // of each of many large ones, one way
    double latency_spread = 0, spread = 0;  // of the median pair over the rounds, as shares

    std::size_t at(int from, int to) const {
        return static_cast<std::size_t>(from) * static_cast<std::size_t>(ranks) +
               static_cast<std::size_t>(to);
    }
    // Bytes per second.
    double rate(int from, int to) const {
        return static_cast<double>(large_bytes - small_bytes) /
               (seconds[at(from, to)] - latency[at(from, to)]);
    }
};

struct MeasuredBench : Machine {
    std::vector<BenchedTime> collectives, messages;
    // The part of the latency of a small message that is the Plan's, not the wire's; negative: unknown.
    double latency_of_plan = -1;
    std::optional<BenchedPairs> pairs;
};

bool is_bench(const traces::store::Trace& trace);

// Throws CalibrationError: simulated, parts are missing, or figures are missing, damaged or impossible.
MeasuredBench measure_bench(const traces::store::Trace& trace);

}  // namespace shardscope::trainer::calibrate
