// The module's exported function; see module.h.
#include <exception>
#include <string>

#include <shardscope/version.h>

#include "trainer/comm/mpi/mpi_job.h"
#include "trainer/comm/mpi_entry.h"

using namespace shardscope::trainer::comm;

extern "C" __attribute__((visibility("default"))) MpiModule* shardscope_open_mpi(const std::string& version,
                                                                                 std::string& why) {
    if (version != shardscope::kVersion) {
        why = "libshardscope_mpi.so has version " + std::string(shardscope::kVersion) +
              ", but shardscope-train has version " + version + "; install both from one build";
        return nullptr;
    }
    try {
        return new mpi::MpiJob;
    } catch (const std::exception& error) {
        why = error.what();
        return nullptr;
    }
}
