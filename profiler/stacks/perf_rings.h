// Samples of the processor's clock in user code and, where the kernel permits it, in itself, by perf events
// of Linux: one ring for each processor. Source: the manual page perf_event_open(2). One thread.
//
// The events belong to the calling thread and are inherited by every process that it starts from then on;
// they begin to count when such a process executes its program (enable_on_exec), so that this process is not
// sampled.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "profiler/base/clock.h"
#include "traces/store/file_descriptor.h"

namespace shardscope::profiler {

struct PerfStack {
    MonotonicTime time{0};
    std::int32_t pid = 0, tid = 0, cpu = 0;
    std::int64_t weight = 0;  // ns since the last one
    bool in_kernel = false;
    std::vector<std::uint64_t> addresses;  // in user code, innermost first
};
struct PerfMapping {  // of executable code
    MonotonicTime time{0};
    std::int32_t pid = 0;
    std::uint64_t start = 0, size = 0, offset = 0;
    std::string file;
};
struct PerfFork {
    MonotonicTime time{0};
    std::int32_t pid = 0, parent = 0;
};
struct PerfName {  // of a thread; `executes`: a new program replaced the process's mappings
    MonotonicTime time{0};
    std::int32_t pid = 0, tid = 0;
    bool executes = false;
    std::string name;
};
using PerfRecord = std::variant<PerfStack, PerfMapping, PerfFork, PerfName>;

class PerfRings {
  public:
    // Samples `hertz` times per second of processor time. Where that is not possible, refusal() says why and
    // what to do, and there are no rings.
    explicit PerfRings(int hertz);
    ~PerfRings();
    PerfRings(const PerfRings&) = delete;
    PerfRings& operator=(const PerfRings&) = delete;

    const std::string& refusal() const { return refusal_; }

    // Visits what has arrived; of one processor in order of time.
    void drain(const std::function<void(PerfRecord&&)>& visit);
    std::int64_t lost() const { return lost_; }  // samples for which a ring had no room

  private:
    struct Ring {
        traces::store::FileDescriptor event;
        void* memory = nullptr;
    };
    bool open(int hertz, bool kernel);
    void close();
    void drain(Ring& ring, const std::function<void(PerfRecord&&)>& visit);
    void take(const std::byte* record, std::size_t size, const std::function<void(PerfRecord&&)>& visit);

    std::vector<Ring> rings_;
    std::vector<std::byte> wrapped_;  // a record that goes over the ring's end
    std::string refusal_;
    int failure_ = 0;
    std::int64_t lost_ = 0;
};

}  // namespace shardscope::profiler
