// Calls in which a host thread waits for the device ("cudaStreamSynchronize" and similar). Internal to the
// library. Times in nanoseconds.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace shardscope::traces {

struct Trace;

class BlockingCalls {
  public:
    // Ignores calls directly inside the ranges `left_out`.
    BlockingCalls(const Trace& trace, std::span<const std::int32_t> left_out);

    // The start of the call that held the thread at `time`; `time` itself if none did.
    std::int64_t since(std::uint16_t thread, std::int64_t time) const;

  private:
    const Trace& trace_;
    std::vector<std::vector<std::int32_t>> by_thread_;  // by thread, sorted by time
};

}  // namespace shardscope::traces
