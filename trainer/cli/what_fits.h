// For a job that runs out of memory: the changes to it that would fit, as lines for standard error.
#pragma once

#include <cstdint>
#include <string>

#include "trainer/job/job.h"
#include "trainer/planner/nearest.h"
#include "trainer/sharding/program.h"

namespace shardscope::trainer::cli {

// One line for each, " fits: --fsdp.wrap=module:Block (peak 61.2 MiB, ...)"; or, if none fits, the smallest
// configuration.
std::string fits_text(const planner::NearestFits& found, std::int64_t limit, const std::string& cluster);

// Looks for such changes for a second or so and prints the result on standard error; prints nothing if the
// limit is unknown (0). Throws nothing, as the failure itself has been reported. `among_processes`: the job
// has other processes, which are about to end; the SIGTERM that the launcher then sends to this one is
// ignored.
void tell_what_fits(const job::Job& job, std::int64_t limit, bool among_processes = false) noexcept;

// Before a run: prints a note, with the changes that would fit, if the predicted peak exceeds the limit (0:
// none).
void warn_of_memory(const sharding::Program& program, std::int64_t limit);

}  // namespace shardscope::trainer::cli
