// Samples the stacks of the command's threads, and adds them to the trace (SHARD_SAMPLES). One thread.
//
// A processor's ring may be read before another's, so that a mapping arrives after samples that need it:
// records wait until the next drain, and are then taken in order of time.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "profiler/stacks/address_space.h"
#include "profiler/stacks/sample_source.h"
#include "traces/store/sink.h"

namespace shardscope::profiler {

class StackSampler {
  public:
    explicit StackSampler(std::unique_ptr<SampleSource> source) : source_(std::move(source)) {}

    std::string_view means() const { return source_->means(); }

    struct Place {
        traces::store::EventSink& sink;
        MonotonicTime origin;                          // of trace time
        bool recording = true;                         // false: samples are discarded
        bool last = false;                             // the command has ended
        std::function<int(std::int32_t pid)> rank_of;  // -1: of none
    };
    // To be called regularly. Drains the source unless that can wait.
    void tick(const Place& place);
    // To be called twice for all that has arrived.
    void drain(const Place& place);

    // Threads are not sampled any more, while the command goes on.
    void stop();

    std::int64_t samples() const { return samples_; }
    std::int64_t lost() const { return at_stop_ ? at_stop_->lost : source_->lost(); }
    std::string incomplete() const { return at_stop_ ? at_stop_->incomplete : source_->incomplete(); }

  private:
    using Thread = std::pair<std::int32_t, std::int32_t>;  // pid, tid
    struct Unnamed {
        MonotonicTime seen{0};  // first
        std::string name;       // as its last sample says it, if samples do
    };

    void take(SampledStack& stack, const Place& place);
    void take(const CodeMapping& mapping, const Place&) { spaces_.add(mapping); }
    void take(const ProcessFork& fork, const Place&);
    void take(const ProgramStart& start, const Place&) { spaces_.clear(start.pid); }
    void take(ThreadName& name, const Place&);
    void take(const ThreadEnd& end, const Place& place);
    void look_for_code(const SampledStack& stack);
    void look_at_thread(SampledStack& stack);
    void name_threads(MonotonicTime seen_before, const Place& place);
    void name_thread(const Thread& thread, const Unnamed& facts, const Place& place);

    std::unique_ptr<SampleSource> source_;
    AddressSpaces spaces_;
    std::vector<StackRecord> waiting_;
    MonotonicTime drained_{0};                // when the last drain began
    std::map<Thread, std::string> names_;     // of living threads, also those without samples
    std::unordered_set<std::int64_t> known_;  // every thread with a sample, by its global_tid
    std::map<Thread, Unnamed> unnamed_;       // known, without a row yet
    std::string text_;
    std::int64_t samples_ = 0;
    struct Shortfall {
        std::int64_t lost = 0;
        std::string incomplete;
    };
    std::optional<Shortfall> at_stop_;
};

}  // namespace shardscope::profiler
