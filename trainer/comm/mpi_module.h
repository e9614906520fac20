// MPI as a module, libshardscope_mpi.so, opened at run time: shardscope-train starts where no MPI is
// installed and needs one only under mpirun (or another launcher of MPI) and for run.comm = "mpi".
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "trainer/comm/wire.h"

namespace shardscope::trainer {

struct MpiWireOptions {
    std::size_t chunk_bytes = std::size_t{1} << 30;  // the most in one message of MPI's, whose sizes are ints
    std::uint64_t tags = 0;  // for tests: the library carries no more; 0: what it says
};

class MpiModule {
  public:
    // MPI_Init; once in a process. Throws WorldError: no module, no MPI, not started by its launcher.
    static std::unique_ptr<MpiModule> open();
    virtual ~MpiModule() = default;  // MPI_Finalize, where nothing failed

    virtual int rank() const = 0;
    virtual int ranks() const = 0;
    virtual std::string library() const = 0;  // "Open MPI v4.1.4"
    // What rank 0 brings: how the processes learn where to meet (World). Before wire() is used.
    virtual std::string broadcast(const std::string& from_rank_0) = 0;
    // After this, this object's other members are not used any more but by the wire's thread.
    virtual std::unique_ptr<Wire> wire(const MpiWireOptions& options) = 0;
    std::unique_ptr<Wire> wire() { return wire(MpiWireOptions()); }
    // The job has failed: nothing is finalized, so that nobody waits for ranks that are gone.
    virtual void abandon() = 0;
};

}  // namespace shardscope::trainer
