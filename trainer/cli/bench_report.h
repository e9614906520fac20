// The figures of shardscope-train bench, and how they are printed: in the form of Horovod's synthetic
// benchmarks. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace shardscope::trainer::cli {

// How many steps are timed: the warm-up's are not.
struct BenchLength {
    int warm_up = 10, iterations = 10, steps = 10;  // steps: of an iteration

    // One more than are timed: a loss is known a step late, but for the last (docs/definitions.md,
    // "Metrics").
    std::int64_t all() const { return warm_up + std::int64_t{iterations} * steps + 1; }
};

// Items (tokens, images or samples) per second of one rank, in each iteration.
struct BenchRates {
    std::vector<double> of_iterations;

    double mean() const;
    double plus_minus() const;  // 1.96 standard deviations of the iterations: 95 of 100, if they are normal
};

// `done`: when each step of a run was done, in seconds, BenchLength::all() of them. `items`: of a step and
// rank.
BenchRates rates_of(const std::vector<double>& done, const BenchLength& length, double items);

struct BenchRun {
    std::string engine;  // "gloo"
    int ranks = 1;
    std::string description;  // what runs, in one line
    BenchRates rates;         // no iterations: it could not run
    std::string error;        // then why, in one sentence
    std::optional<double>
        efficiency;  // the total over ranks times that of one rank; none: that was not measured
};

struct BenchResult {
    BenchLength length;
    std::string items = "tokens";
    int batch = 1;  // samples of a micro-batch and rank
    std::vector<BenchRun> runs;
};

// Fills in the efficiencies: beside the run of one rank of the same engine or, without one, of `local`.
void compare_with_one_rank(BenchResult& result);

// One run's lines, ending with a newline.
std::string bench_text(const BenchResult& result, const BenchRun& run);
// All runs.
std::string bench_table(const BenchResult& result);
std::string bench_json(const BenchResult& result);

}  // namespace shardscope::trainer::cli
