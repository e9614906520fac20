// MPI as a module, libshardscope_mpi.so, opened at run time: shardscope-train runs without MPI being
// installed and needs it only under mpirun (or another MPI launcher) and for run.comm = "mpi".
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "trainer/comm/wire.h"

namespace shardscope::trainer::comm {

struct MpiWireOptions {
    std::size_t chunk_bytes = std::size_t{1} << 30;  // the most per MPI message, whose sizes are ints
    std::uint64_t tags = 0;  // for tests: limit of a communicator's tags; 0: the library's
};

class MpiModule {
  public:
    // Calls MPI_Init; once per process. Throws WorldError: no module, no MPI, not started by its launcher.
    static std::unique_ptr<MpiModule> open();
    virtual ~MpiModule() = default;  // calls MPI_Finalize unless something failed

    virtual int rank() const = 0;
    virtual int ranks() const = 0;
    virtual std::string library() const = 0;  // "Open MPI v4.1.4"
    // Returns rank 0's text, which tells the processes where to meet (World). Call before wire().
    virtual std::string broadcast(const std::string& from_rank_0) = 0;
    // After this, only the wire's thread may use this object's other members.
    virtual std::unique_ptr<Wire> wire(const MpiWireOptions& options) = 0;
    std::unique_ptr<Wire> wire() { return wire(MpiWireOptions()); }
    // Called if the job has failed: nothing is finalized, so that no process waits for ranks that are gone.
    virtual void abandon() = 0;
};

}  // namespace shardscope::trainer::comm
