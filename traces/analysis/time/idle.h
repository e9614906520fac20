// Why a device and its streams were idle, how long launched work waited, and how long the queues were.
// Definition: docs/definitions.md, "Idle, launch, queue" (after Holistic Trace Analysis). Times in
// nanoseconds.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/analysis/base/result_table.h"
#include "traces/analysis/base/selection.h"
#include "traces/store/columns/index.h"

namespace shardscope::traces::store {
struct Trace;
}

namespace shardscope::traces::analysis {

// A gap lies between the latest end so far and the next start on one stream.
enum class GapKind {
    host_wait,    // the next work was launched after that end: the host was late
    kernel_wait,  // it was launched before, and the gap is short: the pause between two kernels
    other,        // dependencies on other streams, limiters, ...
};
inline constexpr int kGapKinds = 3;
inline constexpr std::array<std::string_view, kGapKinds> kGapKindNames = {"host_wait", "kernel_wait",
                                                                          "other"};

struct GapStats {
    std::int64_t count = 0, ns = 0, longest = 0;
};

// Of the events with a known launching call: start on the device - end of that call, at least 0.
struct LaunchDelay {
    std::int64_t count = 0, shortest = 0, longest = 0;
    double mean = 0, median = 0, p95 = 0;
};

// Events whose launching call has begun and that have not started. The mean is weighted by time, from the
// first launch to the last start.
struct QueueLength {
    double mean = 0;
    std::int64_t longest = 0;
};

struct StreamIdle {
    int stream = 0;         // its id
    std::string_view name;  // if it has one; lives as long as the trace
    std::int64_t events = 0;
    std::int64_t span = 0;  // from the first start (or the counted gap before it) to the last end
    std::int64_t busy = 0;  // union of its events; busy and gaps sum to the span
    std::array<GapStats, kGapKinds> gaps{};
    LaunchDelay launch;
    QueueLength queue;
    const GapStats& gap(GapKind kind) const { return gaps[static_cast<std::size_t>(kind)]; }
    std::int64_t idle() const { return span - busy; }
};

Fields<StreamIdle> gap_fields();           // its gaps by kind
Fields<StreamIdle> launch_delay_fields();  // its launches and its queue

// Idle time of a stream by what its next work waited for.
struct IdleWait {
    std::optional<int> stream;       // its id; none: all streams as one
    std::string_view stream_name;    // as StreamIdle::name
    std::string_view what, title;    // the kind of wait (waits/waits.h)
    std::int64_t count = 0, ns = 0;  // parts of gaps
    std::int64_t longest = 0;
    std::string longest_for;  // what the longest waited for: "all_gather blocks.3"
};

Fields<IdleWait> idle_wait_fields();

struct RankIdle {
    int rank = 0;
    StreamIdle device;  // all of its streams but those of files as one: idle if none is busy
    std::vector<StreamIdle> streams;
    std::vector<IdleWait> waits;  // filled by name_gaps(), waits/exposed.h: the device first, longest first
};

struct IdleReport {
    std::int64_t kernel_wait_ns = 0;  // the threshold in use
    std::vector<RankIdle> ranks;
};

inline constexpr std::int64_t kKernelWait = 30'000;

// A gap belongs to the event that ends it. With steps selected, events that they launched count, with the
// gaps before them; with a range selected, events that start in it count, and only the part
// of a gap within it.
IdleReport idle_report(const store::Trace& trace, const Selection& selection = {},
                       std::int64_t kernel_wait_ns = kKernelWait);

struct IdleGap {
    GapKind kind = GapKind::other;
    std::int64_t from = 0, to = 0;
    store::StreamIndex stream;  // none: the device, all of its streams as one
    std::int32_t event = -1;    // the device event that ended the gap
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
    store::StreamIndex stream;                       // as in IdleGap::stream
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
IdleDetails idle_details(const store::Trace& trace, const Selection& selection = {}, std::size_t most = 0,
                         std::int64_t kernel_wait_ns = kKernelWait);

}  // namespace shardscope::traces::analysis
