// See waits.h: what waits, and for what.
#include "traces/analysis/waits/waits.h"

#include <algorithm>
#include <limits>

#include "traces/analysis/time/idle.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::analysis {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::min();

WaitFor work_of(store::DeviceKind kind) {
    switch (kind) {
        case store::DeviceKind::communication:
            return WaitFor::collective;
        case store::DeviceKind::memcpy:
        case store::DeviceKind::memset:
            return WaitFor::copy;
        case store::DeviceKind::kernel:
            break;
    }
    return WaitFor::kernel;
}

void add(std::vector<Wait>& waits, Wait wait) {
    if (wait.to > wait.from) waits.push_back(wait);
}

}  // namespace

std::span<const std::uint32_t> WaitFinder::stream(std::size_t s) const {
    return std::span(streams_.events).subspan(streams_.first[s], streams_.first[s + 1] - streams_.first[s]);
}

std::size_t WaitFinder::place(std::size_t event) const {
    const std::span<const std::uint32_t> events = stream(trace_.device.stream[event]);
    return static_cast<std::size_t>(std::lower_bound(events.begin(), events.end(), event) - events.begin());
}

std::int32_t WaitFinder::last_before(std::size_t event) const {
    const std::uint16_t s = trace_.device.stream[event];
    const std::size_t at = place(event);
    if (!before_[s].empty()) return before_[s][at];
    return at > 0 ? static_cast<std::int32_t>(stream(s)[at - 1]) : -1;
}

const WaitFinder::Communicating* WaitFinder::communicating(std::size_t event) const {
    if (trace_.device.kind[event] != store::DeviceKind::communication) return nullptr;
    const auto e = static_cast<std::int32_t>(event);
    const auto at = std::partition_point(communicating_.begin(), communicating_.end(),
                                         [e](const Communicating& one) { return one.event < e; });
    return at != communicating_.end() && at->event == e ? &*at : nullptr;
}

std::int32_t WaitFinder::ahead_of(std::size_t event) const {
    const Communicating* one = communicating(event);
    return one != nullptr ? one->ahead : -1;
}

const CollectiveMatch* WaitFinder::match_of(std::size_t event) const {
    const Communicating* one = communicating(event);
    if (one == nullptr || one->match < 0) return nullptr;
    return &communications_.matches[static_cast<std::size_t>(one->match)];
}

std::int32_t WaitFinder::launch_of(std::size_t event) const {
    return trace_.device.launch[event];
}

std::int64_t WaitFinder::launched(std::size_t event) const {
    return launched_at(trace_, event);
}

// The work of another stream that the event's stream was told to wait for since its last launch. The trace
// does not record which event was meant: if it was recorded just before, it is the work launched last, else
// the last to end of what had been launched. `binding`: that may have ended at most kKernelWait before.
std::int32_t WaitFinder::dependency(std::size_t event, bool binding) const {
    const store::DeviceEvents& device = trace_.device;
    const std::int32_t call = launch_of(event);
    if (call < 0) return -1;
    const std::vector<StreamWait>& waits = stream_waits_[device.stream[event]];
    const std::size_t at = place(event);
    constexpr std::size_t kBack = 256;  // events of the stream, and its waits, that are looked at
    std::int32_t last = -1;
    for (std::size_t back = at; back > 0 && at - back < kBack && last < 0; --back)
        last = launch_of(stream(device.stream[event])[back - 1]);
    auto wait =
        std::partition_point(waits.begin(), waits.end(), [&](const StreamWait& w) { return w.call < call; });
    const auto end_of = [&](std::int32_t e) { return device.end[static_cast<std::size_t>(e)]; };
    WorkBounds bounds{.ended_by = device.start[event], .besides = device.stream[event]};
    if (binding) bounds.ended_after = bounds.ended_by - kKernelWait - 1;
    if (const std::int32_t row = device.collective[event]; row >= 0)
        bounds.group = trace_.collectives.group[static_cast<std::size_t>(row)];
    std::int32_t found = -1;
    for (std::size_t back = 0; back < kBack && wait != waits.begin() && (--wait)->call > last; ++back) {
        std::int32_t on = wait->on;
        if (on < 0) {
            bounds.launched_by = trace_.runtime.start[static_cast<std::size_t>(wait->call)];
            on = ended_[device.rank[event]].last(bounds);
        }
        if (on < 0 || end_of(on) > bounds.ended_by ||
            device.stream[static_cast<std::size_t>(on)] == bounds.besides)
            continue;
        if (found < 0 || end_of(on) > end_of(found)) found = on;
    }
    return found;
}

// The work that ended last before a waiting call returned, -1: the call did not wait for any.
std::int32_t WaitFinder::awaited_by(const HostWait& wait) const {
    const auto call = static_cast<std::size_t>(wait.call);
    const store::RankIndex rank = trace_.threads[trace_.runtime.thread[call]].rank;
    if (!rank.known()) return -1;
    return ended_[rank.at()].last({.launched_by = trace_.runtime.start[call],
                                   .ended_by = trace_.runtime.end[call],
                                   .ended_after = trace_.runtime.start[call],
                                   .only = wait.stream});
}

// Host time before a launch: waiting for the device, for the data loader, else the host's own.
void WaitFinder::add_host(std::vector<Wait>& waits, std::size_t event, std::int64_t from,
                          std::int64_t to) const {
    const store::RuntimeCalls& runtime = trace_.runtime;
    const std::int32_t launch = launch_of(event);
    const std::vector<HostWait>& calls = host_waits_[runtime.thread[static_cast<std::size_t>(launch)]];
    const auto i32 = static_cast<std::int32_t>(event);
    auto next = std::partition_point(calls.begin(), calls.end(), [&](const HostWait& wait) {
        return runtime.end[static_cast<std::size_t>(wait.call)] <= from;
    });
    std::int64_t done = from;
    for (; next != calls.end(); ++next) {
        const auto call = static_cast<std::size_t>(next->call);
        if (runtime.start[call] >= to) break;
        const std::int32_t on = awaited_by(*next);
        const std::int64_t begin = std::max(runtime.start[call], done), end = std::min(runtime.end[call], to);
        if (on < 0 || end <= begin) continue;
        add_loading(waits, {WaitFor::host, done, begin, i32, -1, launch, {}});
        add(waits, {WaitFor::device, begin, end, i32, on, next->call, {}});
        done = end;
    }
    add_loading(waits, {WaitFor::host, done, to, i32, -1, launch, {}});
}

void WaitFinder::add_loading(std::vector<Wait>& waits, const Wait& host) const {
    const store::HostRanges& ranges = trace_.ranges;
    const auto& loading = loading_[trace_.runtime.thread[static_cast<std::size_t>(host.call)]];
    auto next = std::partition_point(loading.begin(), loading.end(), [&](std::int32_t r) {
        return ranges.end[static_cast<std::size_t>(r)] <= host.from;
    });
    Wait rest = host;
    for (; next != loading.end(); ++next) {
        const auto range = static_cast<std::size_t>(*next);
        if (ranges.start[range] >= host.to) break;
        Wait loads = host;
        loads.what = WaitFor::data;
        loads.from = rest.to = std::max(ranges.start[range], rest.from);
        loads.to = std::min(ranges.end[range], host.to);
        add(waits, rest);
        add(waits, loads);
        rest.from = std::max(rest.from, loads.to);
        rest.to = host.to;
    }
    add(waits, rest);
}

// Waiting for device work, and while that waits for a rank, for the rank.
void WaitFinder::add_device(std::vector<Wait>& waits, std::size_t event, std::int32_t on, std::int64_t from,
                            std::int64_t to) const {
    const auto i32 = static_cast<std::int32_t>(event);
    const WaitFor what = work_of(trace_.device.kind[static_cast<std::size_t>(on)]);
    const Wait late = for_last_rank(static_cast<std::size_t>(on));
    const std::int64_t begin = std::clamp(late.from, from, to), end = std::clamp(late.to, from, to);
    if (late.length() <= 0 || end <= begin) return add(waits, {what, from, to, i32, on, -1, {}});
    add(waits, {what, from, begin, i32, on, -1, {}});
    add(waits, {WaitFor::rank, begin, end, i32, on, -1, late.rank});
    add(waits, {what, end, to, i32, on, -1, {}});
}

std::vector<Wait> WaitFinder::before(std::size_t event, std::int64_t from) const {
    const store::DeviceEvents& device = trace_.device;
    const std::int64_t to = device.start[event];
    const auto i32 = static_cast<std::int32_t>(event);
    std::vector<Wait> waits;
    if (to <= from) return waits;
    std::int64_t done = from;
    const std::int32_t call = launch_of(event);
    if (call >= 0 && trace_.runtime.start[static_cast<std::size_t>(call)] > from) {
        done = std::clamp(trace_.runtime.end[static_cast<std::size_t>(call)], from, to);
        add_host(waits, event, from, done);
    }
    if (done == to) return waits;
    const auto end_of = [&](std::int32_t e) {
        return e < 0 ? kNever : device.end[static_cast<std::size_t>(e)];
    };
    const std::int32_t ahead = ahead_of(event);
    std::int32_t on = dependency(event);
    const std::int64_t queue = end_of(ahead) <= to ? end_of(ahead) : kNever;
    if (end_of(on) <= done && queue <= done && to - done > kKernelWait) {
        // No wait is recorded: work that ended just before is what it waited for.
        on = ended_[device.rank[event]].last({.launched_by = to,
                                              .ended_by = to,
                                              .ended_after = to - kKernelWait - 1,
                                              .besides = device.stream[event]});
    }
    if (queue > done && queue >= end_of(on)) {
        add(waits, {WaitFor::queue, done, queue, i32, ahead, -1, {}});
        done = queue;
    } else if (end_of(on) > done) {
        add_device(waits, event, on, done, end_of(on));
        done = end_of(on);
    }
    add(waits, {to - done <= kKernelWait ? WaitFor::start : WaitFor::unknown, done, to, i32, -1, call, {}});
    return waits;
}

std::vector<Wait> WaitFinder::gap_before(std::size_t event) const {
    const std::int32_t last = last_before(event);
    return last < 0 ? std::vector<Wait>() : before(event, trace_.device.end[static_cast<std::size_t>(last)]);
}

Wait WaitFinder::for_last_rank(std::size_t event) const {
    const store::DeviceEvents& device = trace_.device;
    Wait wait{.what = WaitFor::rank,
              .from = device.start[event],
              .to = device.start[event],
              .event = static_cast<std::int32_t>(event)};
    const CollectiveMatch* match = match_of(event);
    if (match == nullptr) return wait;
    wait.to = device.end[event] - match->transfer_ns;
    for (const Communication& part : communications_.of(*match)) {
        if (part.event < 0 || duration(trace_, part) != match->transfer_ns) continue;
        wait.on = part.event;
        wait.rank = store::RankIndex(part.rank);
        break;
    }
    return wait;
}

Wait WaitFinder::host_wait(std::size_t call) const {
    const auto c = static_cast<std::int32_t>(call);
    Wait wait{.what = WaitFor::device,
              .from = trace_.runtime.start[call],
              .to = trace_.runtime.end[call],
              .call = c};
    const std::vector<HostWait>& waits = host_waits_[trace_.runtime.thread[call]];
    const auto at =
        std::partition_point(waits.begin(), waits.end(), [c](const HostWait& one) { return one.call < c; });
    if (at != waits.end() && at->call == c) wait.on = awaited_by(*at);
    return wait;
}

std::vector<Wait> WaitFinder::waiting_for(std::size_t event) const {
    const store::DeviceEvents& device = trace_.device;
    const auto i32 = static_cast<std::int32_t>(event);
    const std::int64_t end = device.end[event];
    const store::RankIndex rank(device.rank[event]);
    std::vector<Wait> waits;
    for (const std::uint16_t s : of_rank_[rank.at()]) {
        if (s == device.stream[event]) continue;
        const std::span<const std::uint32_t> events = stream(s);
        const auto next = std::partition_point(events.begin(), events.end(),
                                               [&](std::uint32_t e) { return device.start[e] < end; });
        if (next == events.end()) continue;
        for (const Wait& wait : gap_before(*next)) {
            // A host that waited is listed once, below.
            if (wait.on == i32 && wait.what != WaitFor::device) waits.push_back(wait);
        }
    }
    for (std::size_t t = 0; t < host_waits_.size(); ++t) {
        if (trace_.threads[t].rank != rank) continue;
        const auto next =
            std::partition_point(host_waits_[t].begin(), host_waits_[t].end(), [&](const HostWait& wait) {
                return trace_.runtime.end[static_cast<std::size_t>(wait.call)] < end;
            });
        if (next == host_waits_[t].end()) continue;
        const auto call = static_cast<std::size_t>(next->call);
        if (trace_.runtime.start[call] < end && awaited_by(*next) == i32)
            waits.push_back({WaitFor::device,
                             trace_.runtime.start[call],
                             trace_.runtime.end[call],
                             -1,
                             i32,
                             next->call,
                             {}});
    }
    if (const CollectiveMatch* match = match_of(event)) {
        for (const Communication& part : communications_.of(*match)) {
            if (part.event < 0 || part.event == i32) continue;
            const Wait wait = for_last_rank(static_cast<std::size_t>(part.event));
            if (wait.on == i32 && wait.length() > 0) waits.push_back(wait);
        }
    }
    return waits;
}

}  // namespace shardscope::traces::analysis
