// What a rank's host thread reports of its walk through the Plans: rows in the recorder's log, and ranges for
// a tool that listens to NVTX. Either may be missing, and nothing is reported to it then.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "profiler/base/clock.h"
#include "profiler/log/thread_log.h"
#include "trainer/device/device.h"
#include "trainer/executor/allocator.h"
#include "trainer/executor/instruments.h"
#include "trainer/executor/nvtx.h"

namespace shardscope::trainer::executor {

// A runtime call on the host thread, recorded from construction to the end of the scope.
class RuntimeCall {
  public:
    // `log` null: nothing is recorded.
    RuntimeCall(profiler::ThreadLog* log, profiler::NameId name, std::int64_t correlation)
        : log_(log),
          name_(name),
          correlation_(correlation),
          start_(log ? profiler::ticks() : profiler::Ticks()) {}
    ~RuntimeCall() {
        if (log_) log_->runtime(name_, start_, profiler::ticks(), correlation_);
    }
    RuntimeCall(const RuntimeCall&) = delete;
    RuntimeCall& operator=(const RuntimeCall&) = delete;

  private:
    profiler::ThreadLog* log_;
    profiler::NameId name_;
    std::int64_t correlation_;
    profiler::Ticks start_;
};

class RankTrace {
  public:
    // `instruments` and `nvtx` may be null.
    RankTrace(int rank, device::Device& device, Instruments* instruments, const Nvtx* nvtx)
        : rank_(rank), device_(device), instruments_(instruments), nvtx_(nvtx) {}

    void begin(const plan::Plan& plan);
    // The clock of the rows; 0 while nothing is recorded.
    profiler::Ticks now() const { return log_ ? profiler::ticks() : profiler::Ticks(); }

    void push_range(const plan::Op& op) const;
    void push_range(const std::string& name) const;  // a range that spans several Plans
    void pop_range() const;
    void mark(const std::string& name) const;  // an instant
    void step(std::int64_t number, profiler::Ticks since) const;
    // The call that the host makes for an operation, until the end of what is returned.
    RuntimeCall runtime_call(const plan::Op& op, std::int64_t correlation = 0) const {
        return {log_, log_ ? instruments_->call(*trace_names::call_of(op)) : profiler::NameId::none,
                correlation};
    }
    void waited(const plan::Op& op, profiler::Ticks since);

    // Fill in what the device records of the work.
    void describe(const plan::Op& op, profiler::DeviceWork& work);
    void describe(const plan::Op& op, device::CollectiveLaunch& launch);
    // The range around a collective's call.
    void push_collective(const plan::Op& op, const device::CollectiveLaunch& launch) const;
    void pop_collective(const device::CollectiveLaunch& launch) const;

    // `space`: the space whose pool has grown.
    void grew(plan::MemorySpace space, profiler::Ticks since) const;
    void memory(const plan::Op& op, const MemoryBlock& block, bool allocation) const;
    void memory_changed(std::int64_t active, std::int64_t reserved) const;  // negative: unchanged

  private:
    bool tells_collectives() const { return nvtx_ && !device_.announces_collectives(); }
    std::int64_t next_correlation() { return (static_cast<std::int64_t>(rank_) << 32) | ++correlation_; }

    int rank_;
    device::Device& device_;
    Instruments* instruments_;
    const Nvtx* nvtx_;
    profiler::ThreadLog* log_ = nullptr;
    // Of the Plan that runs:
    const plan::Plan* plan_ = nullptr;
    const Instruments::PlanNames* names_ = nullptr;
    const std::vector<Nvtx::Name>* nvtx_names_ = nullptr;
    std::int64_t correlation_ = 0;
};

}  // namespace shardscope::trainer::executor
