// Samples the stacks of the command's threads, and adds them to the trace (SHARD_SAMPLES). One thread.
//
// A processor's ring may be read before another's, so that a mapping arrives after samples that need it:
// records wait until the next drain, and are then taken in order of time.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "profiler/stacks/address_space.h"
#include "profiler/stacks/perf_rings.h"
#include "traces/store/sink.h"

namespace shardscope::profiler {

class StackSampler {
  public:
    // To be made before the command is started, on the thread that starts it.
    explicit StackSampler(int hertz) : rings_(hertz) {}

    const std::string& refusal() const { return rings_.refusal(); }

    struct Place {
        traces::store::EventSink& sink;
        MonotonicTime origin;                          // of trace time
        bool recording = true;                         // false: samples are discarded
        bool last = false;                             // the command has ended
        std::function<int(std::int32_t pid)> rank_of;  // -1: of none
    };
    // To be called regularly, and twice at the end.
    void tick(const Place& place);

    std::int64_t samples() const { return samples_; }
    std::int64_t lost() const { return rings_.lost(); }

  private:
    using Thread = std::pair<std::int32_t, std::int32_t>;  // pid, tid

    void add(const PerfStack& stack, const Place& place);
    void name_threads(MonotonicTime seen_before, const Place& place);

    PerfRings rings_;
    AddressSpaces spaces_;
    std::vector<PerfRecord> waiting_;
    MonotonicTime drained_{0};  // when the last drain began
    std::map<Thread, std::string> names_;
    std::set<Thread> known_;
    std::map<Thread, MonotonicTime> unnamed_;  // known, without a row yet; when each was seen first
    std::string text_;
    std::int64_t samples_ = 0;
};

}  // namespace shardscope::profiler
