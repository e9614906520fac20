// The ranks of a run in this process: one RankRunner and one host thread each, with the device that they
// share. If a job has several processes, each has one rank, and the failure of any ends all. Nothing outlives
// the object.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/executor/device_trace.h"
#include "trainer/executor/devices.h"
#include "trainer/executor/gates.h"
#include "trainer/executor/lifeline.h"
#include "trainer/executor/nvtx.h"
#include "trainer/executor/processes.h"
#include "trainer/executor/rank_runner.h"
#include "trainer/executor/run.h"
#include "trainer/sharding/program.h"

namespace shardscope::trainer::executor {

struct RanksOptions {
    profiler::Recorder* recorder = nullptr;  // null: nothing is recorded
    TestSettings test;
    MakeDevice make_device;                     // empty: the device that the job asks for
    Processes* processes = nullptr;             // null: all ranks are in this process
    std::vector<const plan::Plan*> more_plans;  // executed in addition to the program's
    std::function<void()> on_failure;           // called once, on any thread; may be empty
    LiveBoard* live = nullptr;                  // null: nobody can watch the run
};

class Ranks {
  public:
    // `calls_of(rank)`: the targets of the rank's host calls.
    Ranks(const sharding::Program& program, RanksOptions options,
          const std::function<HostCalls(int rank)>& calls_of);
    ~Ranks();
    Ranks(const Ranks&) = delete;
    Ranks& operator=(const Ranks&) = delete;

    // The ranks of this process, in increasing order.
    const std::vector<int>& here() const { return here_; }
    // `rank` is one of here().
    RankRunner& runner(int rank) { return *runners_[static_cast<std::size_t>(rank - here_.front())]; }
    // A barrier of all ranks' host threads. Throws std::runtime_error after a failure.
    void meet();
    // Ends the run on all ranks, of all processes: any thread. Only the first failure counts.
    void fail(const std::exception_ptr& error);

    // One sentence if the trace cannot contain the device's activity, else empty.
    const std::string& trace_problem() const { return device_trace_.problem(); }

    // Calls `host` for every rank on a thread of its own, all at the same time, and returns when all have
    // ended and the streams are empty. Throws what the first failure threw (std::bad_alloc as OutOfMemory); a
    // failure stops all ranks, also those of other processes, whose failures are thrown as RunError. Call
    // once.
    void run(const std::function<void(int rank, RankRunner& runner)>& host);

  private:
    void hear(const world::Failure& failure);
    std::string waiting_after(const world::Failure& failure);
    [[noreturn]] void rethrow(const std::exception_ptr& error);
    void attach_host(int rank);

    RanksOptions options_;
    const std::vector<int> here_;
    profiler::Recorder* recorder_;
    collective::Delays delays_;
    DeviceTrace device_trace_;
    std::unique_ptr<device::Device> device_;
    std::optional<Instruments> instruments_;
    std::unique_ptr<Nvtx> nvtx_;
    Shared shared_;
    HostBarrier barrier_;
    std::vector<std::unique_ptr<RankRunner>> runners_;
    std::mutex error_mutex_;
    std::condition_variable heard_;  // notified of a failure of the job
    std::exception_ptr error_;
    std::string job_failure_;  // the failure that the job's processes report; one sentence
    Lifeline<Ranks> lifeline_{this};
};

}  // namespace shardscope::trainer::executor
