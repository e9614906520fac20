// The engines of collectives that a benchmark compares: local (ranks are threads), tcp, gloo and mpi (ranks
// are processes of this machine), nccl (GPUs).
#pragma once

#include <string>
#include <vector>

#include "trainer/job/job.h"

namespace shardscope::trainer::cli {

// The engines that can be named, without "all".
const std::vector<std::string>& bench_engines();

// What an engine is in a job's keys, whatever the job says. One rank needs no engine: on the cpu it is a
// thread.
std::vector<job::Override> engine_keys(const std::string& engine, int ranks, job::SumOrder sums);
// The engine of a job that names none.
std::string engine_of(const job::Job& job);

// The given keys, but for those that `keys` has, then these.
std::vector<job::Override> with_keys(const std::vector<job::Override>& given,
                                     const std::vector<job::Override>& keys);

}  // namespace shardscope::trainer::cli
