// The cpu executor: a job's ranks as threads of this process, their streams carried out by one pool of
// workers.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "trainer/data/dataset.h"
#include "trainer/plan/account.h"
#include "trainer/sharding/program.h"

namespace shardscope::profiler {
class Recorder;
}

namespace shardscope::trainer {

struct StepReport {  // called in order of steps, from one of the ranks' threads, under a lock
    std::int64_t step = 0;
    double loss = 0;  // mean over the ranks, summed in double in rank order
    double seconds_since_start = 0;
};

struct RunResult {
    std::vector<double> losses;          // by step
    double seconds = 0;                  // from rank 0's first step until the device was done
    std::vector<MemoryPeak> peaks;       // by rank
    std::vector<std::int64_t> reserved;  // by rank
};

// Trains. `recorder` may be null. Throws what a rank threw first.
RunResult run_on_cpu(const Program& program, const Dataset& dataset, profiler::Recorder* recorder,
                     const std::function<void(const StepReport&)>& on_step);

// How many workers a job gets: what it asks for, else the cores.
int worker_count(const Job& job);

}  // namespace shardscope::trainer
