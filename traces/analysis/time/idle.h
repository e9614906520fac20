// Why a device and its streams stood still, how long launched work waited, how long the queues were.
// Definition: docs/definitions.md, "Idle, launch, queue" (after Holistic Trace Analysis). Times in
// nanoseconds.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "traces/analysis/base/result_table.h"
#include "traces/analysis/base/selection.h"

namespace shardscope::traces {

struct Trace;

// A gap lies between the latest end so far and the next start, on one stream.
enum class GapKind {
    host_wait,    // the work after it was launched only after that end: the host was late
    kernel_wait,  // launched before, and the gap is short: what the device needs between two kernels
    other,        // the rest: dependencies on other streams, limiters, ...
};
inline constexpr int kGapKinds = 3;
inline constexpr std::array<std::string_view, kGapKinds> kGapKindNames = {"host_wait", "kernel_wait",
                                                                          "other"};

struct GapStats {
    std::int64_t count = 0, ns = 0, longest = 0;
};

// Of the events whose launching call is known: start on the device - end of that call, at least 0.
struct LaunchDelay {
    std::int64_t count = 0, shortest = 0, longest = 0;
    double mean = 0, median = 0, p95 = 0;
};

// Launched (the call has begun) and not started. The mean is weighted with time, from the first launch to the
// last start.
struct QueueLength {
    double mean = 0;
    std::int64_t longest = 0;
};

struct StreamIdle {
    int stream = 0;         // its id
    std::string_view name;  // where it has one; lives as long as the trace
    std::int64_t events = 0;
    std::int64_t span = 0;  // from the first start (of the gap before it, where that counts) to the last end
    std::int64_t busy = 0;  // union of its events; busy and gaps sum to the span
    std::array<GapStats, kGapKinds> gaps{};
    LaunchDelay launch;
    QueueLength queue;
    const GapStats& gap(GapKind kind) const { return gaps[static_cast<std::size_t>(kind)]; }
    std::int64_t idle() const { return span - busy; }
};

Fields<StreamIdle> gap_fields();           // its gaps by kind
Fields<StreamIdle> launch_delay_fields();  // its launches and its queue

struct RankIdle {
    int rank = 0;
    StreamIdle device;  // all of its streams as one: it is idle where none of them runs anything
    std::vector<StreamIdle> streams;
};

struct IdleReport {
    std::int64_t kernel_wait_ns = 0;  // the threshold that was used
    std::vector<RankIdle> ranks;
};

inline constexpr std::int64_t kKernelWait = 30'000;

// A gap belongs to the event that ends it. With steps selected, what they launched counts, with the gaps
// before it; with a range selected, what starts in it counts, and a gap only as far as it lies in it.
IdleReport idle_report(const Trace& trace, const Selection& selection = {},
                       std::int64_t kernel_wait_ns = kKernelWait);

}  // namespace shardscope::traces
