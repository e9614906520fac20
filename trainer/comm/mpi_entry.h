// What shardscope-train and the MPI module, a shared library that it opens at run time, say to each other.
// Both are built from one tree; `version` keeps a module of another build out.
#pragma once

#include <string>

#include "trainer/comm/mpi_module.h"

namespace shardscope::trainer::mpi {

// The entry point: MPI_Init. Null where it cannot; then `why` is one sentence.
using Open = MpiModule* (*)(const std::string& version, std::string& why);
inline constexpr const char* kOpenSymbol = "shardscope_open_mpi";

}  // namespace shardscope::trainer::mpi
