// run.processes: this program starts the processes of a job itself, on this machine.
#pragma once

#include <string>
#include <vector>

#include "trainer/job/job.h"

namespace shardscope::trainer {

// Runs this program again with the same arguments, once for each rank, and waits for all. Passes on signals
// that ask it to stop. Returns the exit status for the whole: rank 0's, or that of the first rank that failed
// where rank 0 did not. With CommKind::mpi, mpirun replaces this process and starts them. Throws WorldError,
// std::system_error.
int launch(const std::vector<std::string>& arguments, const Job& job);

}  // namespace shardscope::trainer
