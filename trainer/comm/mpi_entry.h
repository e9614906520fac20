// The interface between shardscope-train and the MPI module, a shared library that it opens at run time. Both
// are built from one tree; `version` rejects a module of another build.
#pragma once

#include <string>

#include "trainer/comm/mpi_module.h"

namespace shardscope::trainer::comm::mpi {

// The entry point: calls MPI_Init. Null if it fails; then `why` is one sentence.
using Open = MpiModule* (*)(const std::string& version, std::string& why);
inline constexpr const char* kOpenSymbol = "shardscope_open_mpi";

}  // namespace shardscope::trainer::comm::mpi
