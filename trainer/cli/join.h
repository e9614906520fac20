// The processes that a launcher has started for one job, come together: the World, and the wire that their
// collectives go over.
#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "traces/store/rows.h"
#include "trainer/comm/mpi_module.h"
#include "trainer/executor/processes.h"
#include "trainer/job/job.h"

namespace shardscope::trainer {

class Joined {
  public:
    // Collective among the processes. `job`: null where it could not be read; then the processes come
    // together to say so. Throws WorldError.
    Joined(Place place, const Job* job);
    // Leaves with the others; after a failure (also while an exception is under way), alone.
    ~Joined();
    Joined(const Joined&) = delete;
    Joined& operator=(const Joined&) = delete;

    World& world() { return *world_; }
    Processes& processes() { return processes_; }
    // What the trace tells of them.
    std::vector<traces::RunInfoRow> facts() const;
    // "4 processes on 2 hosts, started by mpirun, collectives over Open MPI v4.1.4"
    std::string line() const;

    // Where any process has an error (one sentence; null: none), all throw: those that have one nothing,
    // theirs is told by the caller, the others JobError with that of the lowest rank. Collective.
    void agree(const std::string* error);

  private:
    std::unique_ptr<Wire> open_wire();

    std::unique_ptr<MpiModule> mpi_;
    bool over_mpi_ = false;
    bool gpus_ = false;
    std::string mpi_library_;
    std::unique_ptr<World> world_;
    Processes processes_;
    bool agreed_ = false;  // that an error ends all
    int exceptions_;
};

// Does `work` in every process (`joined` null: there is one) and returns where it succeeded in all. What it
// throws is thrown on; the others throw JobError.
template <class Work>
void together(Joined* joined, const Work& work) {
    try {
        work();
    } catch (const std::exception& error) {
        const std::string sentence = error.what();
        if (joined) joined->agree(&sentence);
        throw;
    }
    if (joined) joined->agree(nullptr);
}

}  // namespace shardscope::trainer
