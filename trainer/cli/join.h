// The processes that a launcher started for one job, joined: the World, and the wire that their collectives
// use.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "traces/schema/rows.h"
#include "trainer/comm/mpi_module.h"
#include "trainer/executor/processes.h"
#include "trainer/job/job.h"

namespace shardscope::trainer {

// The process that reports why a run that has begun could not go on.
enum class ErrorReporter : std::uint8_t {
    first,   // this process's failure is the job's first
    itself,  // the job had failed before, for another reason
    other,   // the process that failed first reports the same
};

class Joined {
  public:
    // Collective among the processes. `job`: null where it could not be read; then the processes join to
    // report that. Throws WorldError.
    Joined(Place place, const Job* job);
    // Leaves together with the others; after a failure (also while an exception is in flight), alone.
    ~Joined();
    Joined(const Joined&) = delete;
    Joined& operator=(const Joined&) = delete;

    World& world() { return *world_; }
    Processes& processes() { return processes_; }
    // The processes' facts for the trace.
    std::vector<traces::RunInfoRow> facts() const;
    // "4 processes on 2 hosts, started by mpirun, collectives over Open MPI v4.1.4"
    std::string line() const;

    // Where any process has an error (null: this one has none), rank 0 prints the errors of all, and all
    // throw ReportedTogether. Collective.
    void agree(const std::exception* error);
    // Call after this process's run has failed; the others learn of it.
    ErrorReporter reporter(const std::exception& error);

  private:
    std::unique_ptr<Wire> open_wire();

    std::unique_ptr<MpiModule> mpi_;
    CommKind comm_;  // of the job; automatic where there is none
    bool over_mpi_ = false;
    bool gpus_ = false;
    std::string mpi_library_;
    std::unique_ptr<World> world_;
    Processes processes_;
    bool agreed_ = false;  // an error ends all
    int exceptions_;
};

// Does `work` in every process and returns where it succeeded in all; otherwise all throw ReportedTogether
// (rank_errors.h). `joined` null: there is one process, and its exception is passed on.
template <class Work>
void together(Joined* joined, const Work& work) {
    if (!joined) return work();
    try {
        work();
    } catch (const std::exception& error) {
        joined->agree(&error);  // throws
        return;
    }
    joined->agree(nullptr);
}

}  // namespace shardscope::trainer
