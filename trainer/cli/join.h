// The joined processes that a launcher started for one job: the World, and the wire for their collectives.
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

namespace shardscope::trainer::cli {

// Which process reports why a run that has begun could not continue.
enum class ErrorReporter : std::uint8_t {
    first,   // this process, whose failure is the job's first
    itself,  // this process too: the job failed earlier, for another reason
    other,   // not this process: the one that failed first reports the same failure
};

class Joined {
  public:
    // Collective among the processes. `job`: null if it could not be read; then the processes join only to
    // report that. Throws WorldError.
    Joined(world::Place place, const job::Job* job);
    // Leaves together with the others; after a failure (or while an exception is in flight), alone.
    ~Joined();
    Joined(const Joined&) = delete;
    Joined& operator=(const Joined&) = delete;

    world::World& world() { return *world_; }
    executor::Processes& processes() { return processes_; }
    // Facts about the processes for the trace.
    std::vector<traces::schema::RunInfoRow> facts() const;
    // "4 processes on 2 hosts, started by mpirun, collectives over Open MPI v4.1.4"
    std::string line() const;

    // If any process has an error (null: this one has none), rank 0 prints the errors of all, and all throw
    // ReportedTogether. Collective.
    void agree(const std::exception* error);
    // Called after this process's run has failed; informs the others.
    ErrorReporter reporter(const std::exception& error);

  private:
    std::unique_ptr<comm::Wire> open_wire();

    std::unique_ptr<comm::MpiModule> mpi_;
    job::CommKind comm_;  // the job's; automatic if there is no job
    bool over_mpi_ = false;
    bool gpus_ = false;
    std::string mpi_library_;
    std::unique_ptr<world::World> world_;
    executor::Processes processes_;
    bool agreed_ = false;  // all processes have agreed to end with an error
    int exceptions_;
};

// Does `work` in every process and returns if it succeeded in all; otherwise all throw ReportedTogether
// (rank_errors.h). If `joined` is null there is one process, and its exception propagates.
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

}  // namespace shardscope::trainer::cli
