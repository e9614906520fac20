// Calls in which a host thread waits for the device ("cudaStreamSynchronize" and its kin). Inside the room
// only. Times in nanoseconds.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace shardscope::traces {

struct Trace;

class BlockingCalls {
  public:
    // Those directly in the ranges `left_out` do not count.
    BlockingCalls(const Trace& trace, std::span<const std::int32_t> left_out);

    // When the call began that held the thread at `time`; `time` itself where none did.
    std::int64_t since(std::uint16_t thread, std::int64_t time) const;

  private:
    const Trace& trace_;
    std::vector<std::vector<std::int32_t>> by_thread_;  // in order of time
};

}  // namespace shardscope::traces
