// A runtime call on the host thread, recorded from construction to the end of the scope.
#pragma once

#include <cstdint>

#include "profiler/base/clock.h"
#include "profiler/log/thread_log.h"

namespace shardscope::trainer {

class RuntimeCall {
  public:
    // `log` null: nothing is recorded.
    RuntimeCall(profiler::ThreadLog* log, profiler::NameId name, std::int64_t correlation)
        : log_(log), name_(name), correlation_(correlation), start_(log ? profiler::ticks() : 0) {}
    ~RuntimeCall() {
        if (log_) log_->runtime(name_, start_, profiler::ticks(), correlation_);
    }
    RuntimeCall(const RuntimeCall&) = delete;
    RuntimeCall& operator=(const RuntimeCall&) = delete;

  private:
    profiler::ThreadLog* log_;
    profiler::NameId name_;
    std::int64_t correlation_;
    std::uint64_t start_;
};

}  // namespace shardscope::trainer
