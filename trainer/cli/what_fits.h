// For a job that runs out of memory: the changes to it that would fit, as lines for standard error.
#pragma once

#include <cstdint>
#include <string>

#include "trainer/job/job.h"
#include "trainer/planner/nearest.h"
#include "trainer/sharding/program.h"

namespace shardscope::trainer {

// One line for each, "  fits: --fsdp.wrap=module:Block (peak 61.2 MB, ...)"; or the smallest that does not
// fit.
std::string fits_text(const planner::NearestFits& found, std::int64_t limit, const std::string& cluster);

// Looks for such changes for a second or so and prints the result on standard error; prints nothing where
// nothing is known (limit 0). The failure itself has been reported: nothing is thrown. `among_processes`: the
// other processes of the job are about to end, and the SIGTERM by which the launcher then ends this one, too,
// is ignored.
void tell_what_fits(const Job& job, std::int64_t limit, bool among_processes = false) noexcept;

// Before a run: prints a note where the predicted peak is beyond the limit (0: none), with what fits.
void warn_of_memory(const Program& program, std::int64_t limit);

}  // namespace shardscope::trainer
