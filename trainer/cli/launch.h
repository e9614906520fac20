// run.processes: this program starts the processes of a job itself, on this machine.
#pragma once

#include <string>
#include <vector>

#include "trainer/job/job.h"

namespace shardscope::trainer::cli {

// Runs this program once per rank with the same arguments, and waits for all. Forwards signals that request a
// stop. Returns the exit status of the lowest rank that failed, or 0. With CommKind::mpi, mpirun replaces
// this process and starts them. Throws WorldError, std::system_error.
int launch(const std::vector<std::string>& arguments, const job::Job& job);

}  // namespace shardscope::trainer::cli
