// Samples that programs take of themselves by a timer of each thread, with the library profiler/preload in
// them: the reading end of their ring. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "profiler/preload/sample_ring.h"
#include "profiler/stacks/sample_source.h"

namespace shardscope::profiler {

class TimerRing final : public SampleSource {
  public:
    // Makes the ring in the session's directory, for samples after each 1/hertz s of a thread's processor
    // time. Where that is not possible, refusal() is a part of a sentence that says why.
    TimerRing(std::string directory, int hertz);
    ~TimerRing() override;
    TimerRing(const TimerRing&) = delete;
    TimerRing& operator=(const TimerRing&) = delete;

    const std::string& refusal() const { return refusal_; }

    std::string_view means() const override { return "timers"; }
    void drain(const Visit& visit) override;
    void stop() override;
    std::vector<CodeMapping> mappings(std::int32_t pid, bool certain) override;
    std::int64_t lost() const override;
    std::string incomplete() const override;

    // The kernel looks at timers of processor time when its clock ticks: samples per second that a running
    // thread can have.
    static int most_hertz();

    // How long a slot may be taken and not filled: then its process was killed in between.
    static constexpr std::int64_t kFillingNs = 1'000'000'000;

  private:
    struct Program {
        std::uint64_t image = 0;
        MonotonicTime looked{0};  // when its mappings were last read for an uncertain address
    };

    bool is_given_up(std::uint64_t number);
    void take(const TimerSample& sample, const Visit& visit);
    void meet(std::int32_t pid, std::uint64_t image, const Visit& visit);

    const std::string directory_;
    RingHeader* ring_ = nullptr;  // mapped
    std::size_t bytes_ = 0;
    std::uint32_t slots_ = 0;  // programs might write over the header's number
    std::uint64_t next_ = 0;   // number of the sample to be read
    MonotonicTime stuck_{0};   // since when that is taken and not filled; 0: it is not
    std::int64_t given_up_ = 0;
    std::unordered_map<std::int32_t, Program> programs_;  // by pid
    std::string refusal_;
};

}  // namespace shardscope::profiler
