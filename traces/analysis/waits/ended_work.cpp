// See ended_work.h.
#include "traces/analysis/waits/ended_work.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "traces/analysis/base/step_windows.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::analysis {
namespace {

constexpr std::size_t kBlock = 64;  // events under a leaf
constexpr int kMostBlocks = 256;    // that are looked through for one question

// Of events that end together the one of the first stream is last.
struct EndsLater {
    const store::DeviceEvents& device;
    bool operator()(std::uint32_t a, std::uint32_t b) const {
        if (device.end[a] != device.end[b]) return device.end[a] > device.end[b];
        return device.stream[a] != device.stream[b] ? device.stream[a] < device.stream[b] : a > b;
    }
};

}  // namespace

void EndedWork::Launched::add(std::int64_t launched, int on) {
    if (on == stream) {
        first = std::min(first, launched);
    } else if (launched < first) {
        elsewhere = first;
        first = launched;
        stream = on;
    } else {
        elsewhere = std::min(elsewhere, launched);
    }
}

struct EndedWork::Search {
    const WorkBounds& bounds;
    std::size_t begin = 0, end = 0;  // in the list: what ended in time
    int blocks = 0;                  // looked through
};

EndedWork::EndedWork(const store::Trace& trace, std::vector<std::uint32_t> events)
    : trace_(trace), events_(std::move(events)) {
    const std::size_t blocks = (events_.size() + kBlock - 1) / kBlock;
    leaves_ = std::bit_ceil(std::max<std::size_t>(blocks, 1));
    nodes_.resize(2 * leaves_);
    for (std::size_t i = 0; i < events_.size(); ++i)
        nodes_[leaves_ + i / kBlock].add(launched_at(trace, events_[i]), trace.device.stream[events_[i]]);
    for (std::size_t n = leaves_ - 1; n > 0; --n) {
        nodes_[n] = nodes_[2 * n];
        const Launched& right = nodes_[2 * n + 1];
        if (right.stream < 0) continue;
        nodes_[n].add(right.first, right.stream);
        nodes_[n].elsewhere = std::min(nodes_[n].elsewhere, right.elsewhere);
    }
}

bool EndedWork::counts(std::uint32_t event, const WorkBounds& bounds) const {
    const store::DeviceEvents& device = trace_.device;
    if (device.stream[event] == bounds.besides || (bounds.only >= 0 && device.stream[event] != bounds.only) ||
        device.start[event] >= bounds.ended_by || launched_at(trace_, event) > bounds.launched_by)
        return false;
    const std::int32_t row = device.collective[event];
    return bounds.group < 0 || row < 0 ||
           trace_.collectives.group[static_cast<std::size_t>(row)] != bounds.group;
}

// The last event within the bounds in the leaves [from, to) under this node.
std::int32_t EndedWork::find(Search& search, std::size_t node, std::size_t from, std::size_t to) const {
    if (from * kBlock >= search.end || to * kBlock <= search.begin || search.blocks >= kMostBlocks ||
        nodes_[node].besides(search.bounds.besides) > search.bounds.launched_by)
        return -1;
    if (to - from > 1) {
        const std::size_t middle = (from + to) / 2;
        const std::int32_t found = find(search, 2 * node + 1, middle, to);
        return found >= 0 ? found : find(search, 2 * node, from, middle);
    }
    ++search.blocks;
    const std::size_t first = std::max(search.begin, from * kBlock);
    for (std::size_t i = std::min(search.end, to * kBlock); i > first; --i) {
        if (counts(events_[i - 1], search.bounds)) return static_cast<std::int32_t>(events_[i - 1]);
    }
    return -1;
}

std::int32_t EndedWork::last(const WorkBounds& bounds) const {
    const auto ended = [&](std::int64_t by) {
        const auto late = std::partition_point(events_.begin(), events_.end(),
                                               [&](std::uint32_t e) { return trace_.device.end[e] <= by; });
        return static_cast<std::size_t>(late - events_.begin());
    };
    Search search{bounds, ended(bounds.ended_after), ended(bounds.ended_by)};
    return find(search, 1, 0, leaves_);
}

// Events are in order of their start: what ended before one starts is followed only by later ends.
std::vector<EndedWork> ended_work(const store::Trace& trace) {
    const store::DeviceEvents& device = trace.device;
    struct Events {
        std::vector<std::uint32_t> ended, running;  // `running`: a heap whose front ends first
    };
    std::vector<Events> ranks(trace.ranks.size());
    const EndsLater later{device};
    const auto end_first = [&](Events& of) {
        std::pop_heap(of.running.begin(), of.running.end(), later);
        of.ended.push_back(of.running.back());
        of.running.pop_back();
    };
    for (std::size_t i = 0; i < device.size(); ++i) {
        if (!trace.streams[device.stream[i]].rank.known()) continue;
        Events& of = ranks[trace.streams[device.stream[i]].rank.at()];
        while (!of.running.empty() && device.end[of.running.front()] < device.start[i]) end_first(of);
        of.running.push_back(static_cast<std::uint32_t>(i));
        std::push_heap(of.running.begin(), of.running.end(), later);
    }
    std::vector<EndedWork> all;
    for (Events& of : ranks) {
        while (!of.running.empty()) end_first(of);
        all.emplace_back(trace, std::move(of.ended));
    }
    return all;
}

}  // namespace shardscope::traces::analysis
