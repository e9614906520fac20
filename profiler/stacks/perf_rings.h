// Samples of the processor's clock in user code and, where the kernel permits it, in itself, by perf events
// of Linux: one ring for each processor. Source: the manual page perf_event_open(2). One thread.
//
// The events belong to the calling thread and are inherited by every process that it starts from then on;
// they begin to count when such a process executes its program (enable_on_exec), so that this process is not
// sampled.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "profiler/stacks/sample_source.h"
#include "traces/store/file_descriptor.h"

namespace shardscope::profiler {

// Why there are no perf events, as parts of a sentence.
struct PerfRefusal {
    std::string reason;  // "the kernel refuses perf events (Permission denied)"
    std::string advice;  // "sysctl kernel.perf_event_paranoid=2 permits them"; empty: there is nothing to do
};
// For an error of perf_event_open(), or of mapping a ring.
PerfRefusal perf_refusal(int error, bool of_mapping);

class PerfRings final : public SampleSource {
  public:
    // Samples `hertz` times per second of processor time. Where that is not possible, refusal() has a reason,
    // and there are no rings.
    explicit PerfRings(int hertz);
    ~PerfRings() override;
    PerfRings(const PerfRings&) = delete;
    PerfRings& operator=(const PerfRings&) = delete;

    const PerfRefusal& refusal() const { return refusal_; }

    std::string_view means() const override { return "perf events"; }
    void drain(const Visit& visit) override;
    bool can_wait(std::int64_t since) const override;  // a while, unless a ring is half full
    void stop() override { close(); }
    std::vector<CodeMapping> mappings(std::int32_t, bool) override { return {}; }
    std::int64_t lost() const override { return lost_; }
    std::string incomplete() const override { return {}; }

  private:
    struct Ring {
        traces::store::FileDescriptor event;
        void* memory = nullptr;
    };
    bool open(int hertz, bool kernel);
    void close();
    void drain(Ring& ring, const Visit& visit);
    void take(const std::byte* record, std::size_t size, const Visit& visit);

    std::vector<Ring> rings_;
    std::vector<std::byte> wrapped_;  // a record that goes over the ring's end
    PerfRefusal refusal_;
    std::int64_t lost_ = 0;
};

}  // namespace shardscope::profiler
