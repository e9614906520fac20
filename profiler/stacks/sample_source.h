// Where samples of threads come from, and what they consist of.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "profiler/base/clock.h"

namespace shardscope::profiler {

struct SampledStack {
    MonotonicTime time{0};
    std::int32_t pid = 0, tid = 0, cpu = 0;
    std::int64_t weight = 0;  // ns since the last one
    bool in_kernel = false;
    std::string thread;                    // its name, if it comes with the sample
    std::vector<std::uint64_t> addresses;  // in user code, innermost first
};
struct CodeMapping {
    MonotonicTime time{0};
    std::int32_t pid = 0;
    std::uint64_t start = 0, size = 0, offset = 0;
    std::string file;
};
struct ProcessFork {
    MonotonicTime time{0};
    std::int32_t pid = 0, parent = 0;
};
struct ProgramStart {  // a new program replaced the process's mappings
    MonotonicTime time{0};
    std::int32_t pid = 0;
};
struct ThreadName {
    MonotonicTime time{0};
    std::int32_t pid = 0, tid = 0;
    std::string name;
};
struct ThreadEnd {
    MonotonicTime time{0};
    std::int32_t pid = 0, tid = 0;
};
using StackRecord = std::variant<SampledStack, CodeMapping, ProcessFork, ProgramStart, ThreadName, ThreadEnd>;

class SampleSource {
  public:
    virtual ~SampleSource() = default;

    virtual std::string_view means() const = 0;  // "perf events", "timers"

    // Visits what has arrived; of one thread in order of time.
    using Visit = std::function<void(StackRecord&&)>;
    virtual void drain(const Visit& visit) = 0;
    // Whether a drain can be left to later, `since` ns after the last: each one disturbs the program.
    virtual bool can_wait(std::int64_t /*since*/) const { return false; }
    // Ends sampling; what has not been drained is gone.
    virtual void stop() {}
    // Where a process has its code now, for an address that is in no mapping so far; empty if the source
    // reports all of them by itself. `certain`: code runs there; else it may be no address of code.
    virtual std::vector<CodeMapping> mappings(std::int32_t pid, bool certain) = 0;

    virtual std::int64_t lost() const = 0;       // samples for which there was no room
    virtual std::string incomplete() const = 0;  // a sentence on threads that were not sampled; empty: none
};

}  // namespace shardscope::profiler
