// Details behind the sums of the idle report: the longest gaps, and the distributions of launch delays and
// queue lengths. Definition: docs/definitions.md, "Idle, launch, queue". Times in nanoseconds.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "traces/analysis/time/idle.h"

namespace shardscope::traces {

struct IdleGap {
    GapKind kind = GapKind::other;
    std::int64_t from = 0, to = 0;
    std::int32_t stream = -1;  // index into Trace::streams; -1: the device, all of its streams as one
    std::int32_t event = -1;   // the device event that ended the gap
    std::int64_t length() const { return to - from; }
};

// Bin 0 holds 0 and 1, bin b >= 1 holds [2^b, 2^(b+1)).
inline constexpr std::size_t kLengthBins = 48;
std::size_t length_bin(std::int64_t value);
inline std::int64_t bin_start(std::size_t bin) {
    return bin == 0 ? 0 : std::int64_t{1} << bin;
}

// Queue lengths: bin 0 holds 0, bin b >= 1 holds [2^(b-1), 2^b).
inline constexpr std::size_t kQueueBins = 24;
std::size_t queue_bin(std::int64_t length);
inline std::int64_t queue_bin_start(std::size_t bin) {
    return bin == 0 ? 0 : std::int64_t{1} << (bin - 1);
}

struct StreamIdleDetails {
    std::int32_t stream = -1;                        // as in IdleGap::stream
    std::array<std::int64_t, kLengthBins> delays{};  // launches by delay; sums to LaunchDelay::count
    // Time by queue length; sums to the time from the first launch to the last start.
    std::array<std::int64_t, kQueueBins> queue_ns{};
    std::vector<IdleGap> gaps;  // longest first
};

struct RankIdleDetails {
    int rank = 0;
    std::vector<StreamIdleDetails> streams;  // the device as one first, then as in RankIdle::streams
};

struct IdleDetails {
    std::vector<RankIdleDetails> ranks;
};

// `most`: maximum gaps of each kind per stream; 0 all. Otherwise as in idle_report().
IdleDetails idle_details(const Trace& trace, const Selection& selection = {}, std::size_t most = 0,
                         std::int64_t kernel_wait_ns = kKernelWait);

}  // namespace shardscope::traces
