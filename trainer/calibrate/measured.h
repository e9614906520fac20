// Compares a recorded run with the Plan that it executed: the time of each operation, on the device and on
// the host. The Plan is rebuilt from the job that the trace stores, and joined with the trace's launching
// calls, which are in the Plan's order. Times are nanoseconds from the start of the trace.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "traces/store/columns/trace.h"
#include "trainer/job/job.h"
#include "trainer/plan/plan.h"
#include "trainer/sharding/program.h"

namespace shardscope::trainer::calibrate {

// Thrown for a trace that cannot be used; the message is one sentence: file, what is wrong, what to do.
class CalibrationError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// Work on a stream.
struct MeasuredOp {
    const plan::Plan* plan = nullptr;
    const plan::Op* op = nullptr;
    traces::store::RankIndex rank;
    std::int64_t launched = 0;        // end of the launching call
    std::int64_t start = 0, end = 0;  // for a collective, from this rank's arrival until its data are there
    std::int64_t begin = 0;           // start; for a collective, the last member's arrival
    std::int64_t over = 0;            // end; for a collective, the end on the last member
    // When everything that it waited for (earlier work of its stream, events, the launch) ended; -1: unknown.
    std::int64_t ready = -1;
    bool queued = false;  // the previous work on its stream was the last of those to end
    double busy = 1;      // mean number of pieces of work that ran on the node meanwhile, including this one
    std::int64_t group = 0, sequence = 0;  // for collectives
};

// The host thread's own work: kernels and copies on Stream::host, batches.
struct MeasuredHostWork {
    const plan::Op* op = nullptr;
    double seconds = 0;
};

// The time between the end of a runtime call and the start of the next, if nothing in between is timed
// separately.
struct HostGap {
    double seconds = 0;
    int ranges = 0, allocations = 0, launches = 0;  // launches: 1 if the next call is one, else 0
};

// What a trace was recorded on, and by which job.
struct Machine {
    std::string file;
    job::Job job;
    std::string device_name;
    std::int64_t device_memory = 0;
    int cores = 0;             // cores that the run's ranks could use on a node; 0: unknown
    std::string engine;        // what carried out its collectives: "local", "nccl"; empty: there were none
    std::vector<int> node_of;  // by rank index: its host, numbered from 0 in the order of ranks
    int nodes = 1, devices_of_a_node = 1;

    bool on_gpu() const { return job.run.device == job::DeviceKind::cuda; }
    // Of the fullest one, which share its disks (sim::Cluster::sharers).
    int ranks_of_node() const { return (job.run.ranks + nodes - 1) / nodes; }
};

struct MeasuredRun : Machine {
    std::unique_ptr<sharding::Program> program;
    std::vector<MeasuredOp> work;
    std::vector<MeasuredHostWork> host_work;
    std::vector<HostGap> gaps;
    std::vector<double> launch_calls, event_calls, grow_calls;  // seconds
    std::vector<double> wakes;  // seconds from an event until the thread waiting for it continues
    std::int64_t steps = 0;     // steps of each rank that were read
    double median_step_s = 0;   // windows of rank 0, as in docs/definitions.md
};

// The job of a trainer's trace, as it was carried out. Throws CalibrationError.
job::Job job_of(const traces::store::Trace& trace);

// The machine that a trace was recorded on, and its job, without the engine. Throws CalibrationError: not a
// trace of the trainer, simulated, or without some of its ranks.
Machine machine_of(const traces::store::Trace& trace);
// "mpi": what carried out a collective (a row of the trace's).
std::string engine_of(const traces::store::Trace& trace, std::size_t collective);

// Throws CalibrationError as machine_of does, and for a trace without steps, or not in the Plan's order.
MeasuredRun measure(const traces::store::Trace& trace);

}  // namespace shardscope::trainer::calibrate
