// See stream_walk.h. The device's events are sorted by start, so one pass over each stream finds its gaps;
// data that needs another order (launches) is collected on the way.
#include "traces/analysis/time/stream_walk.h"

#include <algorithm>
#include <array>
#include <span>

#include "traces/analysis/base/percentile.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::analysis {

void StreamWalk::add(std::size_t event, bool counts) {
    const store::DeviceEvents& device = trace_.device;
    const std::int64_t start = device.start[event], end = device.end[event];
    if (counts) {
        ++result_.events;
        const std::int32_t launch = device.launch[event];
        const bool launched = launch >= 0;
        const auto call = static_cast<std::size_t>(launch);
        if (latest_end_ != kBefore && start > latest_end_) {
            add_gap(event, start, launched && trace_.runtime.start[call] > latest_end_);
        }
        const std::int64_t busy_from = std::max(start, latest_end_);
        if (end > busy_from) result_.busy += end - busy_from;
        if (launched) add_launch(start, trace_.runtime.start[call], trace_.runtime.end[call]);
    }
    latest_end_ = std::max(latest_end_, end);
}

StreamIdle StreamWalk::finish() {
    result_.span = result_.busy;
    for (const GapStats& gap : result_.gaps) result_.span += gap.ns;
    finish_launches();
    finish_queue();
    return result_;
}

void StreamWalk::add_gap(std::size_t event, std::int64_t start, bool host_was_late) {
    const std::int64_t from = std::max(latest_end_, from_);
    if (from >= start) return;
    GapKind kind = GapKind::other;
    if (host_was_late) {
        kind = GapKind::host_wait;
    } else if (start - latest_end_ <= kernel_wait_) {
        kind = GapKind::kernel_wait;
    }
    GapStats& gap = result_.gaps[static_cast<std::size_t>(kind)];
    ++gap.count;
    gap.ns += start - from;
    gap.longest = std::max(gap.longest, start - from);
    if (on_gap_) on_gap_(kind, from, start, event);
}

void StreamWalk::add_launch(std::int64_t start, std::int64_t call_start, std::int64_t call_end) {
    delays_.push_back(std::max<std::int64_t>(0, start - call_end));
    if (call_start > start) return;  // the clocks disagree: it was never in the queue
    launches_.push_back(call_start);
    starts_.push_back(start);
}

void StreamWalk::finish_launches() {
    if (delays_.empty()) return;
    LaunchDelay& launch = result_.launch;
    launch.count = static_cast<std::int64_t>(delays_.size());
    double sum = 0;
    for (const std::int64_t delay : delays_) sum += static_cast<double>(delay);
    launch.mean = sum / static_cast<double>(delays_.size());
    const auto [shortest, longest] = std::minmax_element(delays_.begin(), delays_.end());
    launch.shortest = *shortest;
    launch.longest = *longest;
    launch.median = percentile(std::span(delays_), 0.5);
    launch.p95 = percentile(std::span(delays_), 0.95);
}

// Each event is in the queue from its launch to its start, so the mean needs only the sum of those times.
void StreamWalk::finish_queue() {
    if (launches_.empty()) return;
    double waited = 0;
    for (std::size_t i = 0; i < launches_.size(); ++i) {
        waited += static_cast<double>(starts_[i] - launches_[i]);
    }
    if (!std::is_sorted(launches_.begin(), launches_.end())) std::sort(launches_.begin(), launches_.end());
    const std::int64_t whole = starts_.back() - launches_.front();
    result_.queue.mean = whole > 0 ? waited / static_cast<double>(whole) : 0.0;
    // An event that starts at the instant of a launch has already left the queue.
    std::int64_t length = 0;
    std::size_t started = 0;
    for (const std::int64_t launched : launches_) {
        while (started < starts_.size() && starts_[started] <= launched) {
            ++started;
            --length;
        }
        result_.queue.longest = std::max(result_.queue.longest, ++length);
    }
}

EventsByStream events_by_stream(const store::Trace& trace) {
    const store::DeviceEvents& device = trace.device;
    EventsByStream result;
    result.first.assign(trace.streams.size() + 1, 0);
    for (const std::uint16_t stream : device.stream) ++result.first[stream + std::size_t{1}];
    for (std::size_t s = 1; s < result.first.size(); ++s) result.first[s] += result.first[s - 1];
    result.events.resize(device.size());
    std::vector<std::size_t> next(result.first.begin(), result.first.end() - 1);
    for (std::size_t i = 0; i < device.size(); ++i) {
        result.events[next[device.stream[i]]++] = static_cast<std::uint32_t>(i);
    }
    return result;
}

}  // namespace shardscope::traces::analysis
