// Inputs (other than the Program) and results of a run.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "trainer/data/dataset.h"
#include "trainer/data/epochs.h"
#include "trainer/executor/devices.h"
#include "trainer/executor/step_metrics.h"
#include "trainer/plan/account.h"

namespace shardscope::profiler {
class Recorder;
}

namespace shardscope::trainer::executor {

class LiveBoard;
class RankRunner;

// A run that cannot go on; the message is one sentence: at which step, what, what to do. The tool exits
// with 1.
class RunError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// A buffer does not fit into run.memory_limit or into the system's memory.
class OutOfMemory : public RunError {
  public:
    // `room`: total bytes of device memory that the rank can have; 0: unknown.
    explicit OutOfMemory(const std::string& sentence, std::int64_t room = 0)
        : RunError(sentence), room_(room) {}
    std::int64_t room() const { return room_; }

  private:
    std::int64_t room_;
};

struct StepReport {  // called in order of steps, from one of rank 0's process's threads, under a lock
    std::int64_t step = 0;
    double loss =
        0;  // mean over micro-batches and ranks, summed in double: for each micro-batch, rank by rank
    double seconds_since_start = 0;
    double seconds = 0;           // that the step took; 0: unknown
    std::optional<double> epoch;  // of the data, by the step's end: 1.5 in the middle of the second; none: it
                                  // has no epochs
    StepMemory memory;
};

struct ValidationReport {            // called as StepReport is; also of the test
    std::int64_t step = 0;           // the step after which it was measured
    double loss = 0;                 // mean over the batches, summed in double: for each batch, rank by rank
    std::int64_t batches = 0;        // total over all ranks
    std::optional<double> accuracy;  // share of the samples whose class was found; none: there are no classes
};

// A request from outside (another thread, a signal handler) to end after the steps that have begun.
struct RunControl {
    std::atomic<bool> stop = false;
};

// Called on the ranks' host threads, for different ranks at the same time.
struct RunHooks {
    // The rank's buffers hold the initial values and its streams are empty: a checkpoint may be put in place.
    std::function<void(int rank, RankRunner&)> after_setup;
    // As often as checkpoint.every says, after the last and after a stop; `steps_done` counts from the very
    // first step, not from this run's. Until the last rank's call has returned, all ranks' streams are empty
    // and no rank continues.
    std::function<void(int rank, std::int64_t steps_done, RankRunner&)> at_step_end;
    // Before the test, likewise: may put other parameters in place, and returns after how many steps and
    // samples these were.
    std::function<data::Position(int rank, data::Position done, RankRunner&)> before_test;
};

struct RunOptions {
    profiler::Recorder* recorder = nullptr;     // null: nothing is recorded
    LiveBoard* live = nullptr;                  // null: nobody can watch the run
    const data::Dataset* validation = nullptr;  // the held-out data; null: no validation
    const data::Dataset* test_data = nullptr;   // evaluated once, after the last step; null: no test
    std::function<void(const StepReport&)> on_step;
    std::function<void(const ValidationReport&)> on_validation, on_test;
    // Called on the thread of rank 0, in the order of steps, with overflow_line() of a skipped step.
    std::function<void(const std::string&)> on_overflow;
    // Called once on the caller's thread, before the first step, with one sentence on what the trace cannot
    // contain.
    std::function<void(const std::string&)> on_warning;
    RunControl* control = nullptr;
    RunHooks hooks;
    // Where a resumed run continues: steps done before, and the position in the dataset's stream of samples.
    std::int64_t first_step = 0;
    std::int64_t first_sample = 0;
    TestSettings test;
    MakeDevice make_device;          // empty: the device that the job asks for
    Processes* processes = nullptr;  // of the job's ranks; null: all are threads of this process
};

// If ranks are processes, only rank 0's process knows losses, validation, peaks, active and reserved.
struct RunResult {
    std::vector<double> losses;    // by step, from first_step on
    std::vector<double> known_at;  // when each was known, in seconds since the run's start
    std::vector<ValidationReport> validation;
    std::optional<ValidationReport> test;     // none: there is no test, or the last step was not reached
    std::int64_t steps_done = 0;              // including those before this run
    std::optional<double> epochs;             // of the data, likewise; none: it has no epochs
    std::optional<std::int64_t> stopped_at;   // RunControl::stop: steps_done when it ended early
    std::optional<std::int64_t> diverged_at;  // the step from which the losses were too large (divergence.h)
    std::string divergence;                   // one sentence on it
    double seconds = 0;                       // from the first step until the device was done
    // By rank, of device memory: peaks of allocated bytes (host program order), of active ones (freed blocks
    // count until their last stream use is over) and of what the pool holds.
    std::vector<plan::MemoryPeak> peaks;
    std::vector<std::int64_t> active, reserved;
    std::vector<double> file_wait_s;  // by rank: for how long its host waited for files in steps
};

}  // namespace shardscope::trainer::executor
