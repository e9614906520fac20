// The ranks of a run: one RankRunner and one host thread each, with the device that they share. Nothing
// outlives the object.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/executor/device_trace.h"
#include "trainer/executor/devices.h"
#include "trainer/executor/gates.h"
#include "trainer/executor/nvtx.h"
#include "trainer/executor/rank_runner.h"
#include "trainer/executor/run.h"
#include "trainer/sharding/program.h"

namespace shardscope::trainer {

class Ranks {
  public:
    // `calls_of(rank)`: what the rank's host calls reach. `recorder` may be null. `make`: the device; empty:
    // the one that the job asks for.
    Ranks(const Program& program, profiler::Recorder* recorder, const TestSettings& test,
          const std::function<HostCalls(int rank)>& calls_of, const MakeDevice& make = {});
    ~Ranks();
    Ranks(const Ranks&) = delete;
    Ranks& operator=(const Ranks&) = delete;

    RankRunner& runner(int rank) { return *runners_[static_cast<std::size_t>(rank)]; }
    HostBarrier& barrier() { return barrier_; }
    const Nvtx* nvtx() const { return nvtx_.get(); }  // null: no tool listens

    // One sentence where the trace cannot have what the device does; else empty.
    const std::string& trace_problem() const { return device_trace_.problem(); }

    // Calls `host` for every rank on a thread of its own, all at once, and returns when all have ended and
    // the streams are empty. Throws what the first failure threw (std::bad_alloc as OutOfMemory); a failure
    // stops all ranks. Once.
    void run(const std::function<void(int rank, RankRunner& runner, profiler::ThreadLog* log)>& host);

  private:
    void give_up(std::exception_ptr error);
    profiler::ThreadLog* attach_host(int rank);

    profiler::Recorder* recorder_;
    Delays delays_;
    DeviceTrace device_trace_;
    std::unique_ptr<Device> device_;
    std::optional<Instruments> instruments_;
    std::unique_ptr<Nvtx> nvtx_;
    Shared shared_;
    HostBarrier barrier_;
    std::vector<std::unique_ptr<RankRunner>> runners_;
    std::mutex error_mutex_;
    std::exception_ptr error_;
};

}  // namespace shardscope::trainer
