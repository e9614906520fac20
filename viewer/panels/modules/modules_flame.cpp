// See modules_flame.h.
#include "viewer/panels/modules/modules_flame.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "traces/schema/sort_rows.h"
#include "viewer/draw/strip.h"

namespace shardscope::viewer::panels {
namespace {

using traces::store::HostRanges;
using traces::store::Trace;

// The ranges of a call: it and everything nested in it on its thread.
class InCall {
  public:
    InCall(const Trace& trace, std::int32_t call) : first_(static_cast<std::size_t>(call)) {
        const HostRanges& ranges = trace.ranges;
        inside_.push_back(true);
        for (std::size_t i = first_ + 1; i < ranges.size() && ranges.start[i] < ranges.end[first_]; ++i)
            inside_.push_back(ranges.parent[i] >= call && holds(ranges.parent[i]));
    }

    bool holds(std::int32_t range) const {
        if (range < 0 || static_cast<std::size_t>(range) < first_) return false;
        const std::size_t at = static_cast<std::size_t>(range) - first_;
        return at < inside_.size() && inside_[at];
    }
    std::size_t first() const { return first_; }
    std::size_t last() const { return first_ + inside_.size(); }

  private:
    std::size_t first_;
    std::vector<bool> inside_;
};

// Puts bars, which arrive sorted by start, into the first lane from `depth` on that has room.
void put(std::vector<FlameLane>& lanes, std::size_t depth, const FlameBar& bar, model::EventKind kind) {
    while (depth < lanes.size() && !lanes[depth].bars.empty() && lanes[depth].bars.back().end > bar.start)
        ++depth;
    while (lanes.size() <= depth) lanes.push_back({kind, {}, {}});
    lanes[depth].bars.push_back(bar);
}

// Appends the lanes to the chart's; the first one carries the title.
void take(FlameChart& chart, std::vector<FlameLane> lanes, std::string title) {
    std::erase_if(lanes, [](const FlameLane& lane) { return lane.bars.empty(); });
    if (!lanes.empty()) lanes.front().title = std::move(title);
    for (FlameLane& lane : lanes) chart.lanes.push_back(std::move(lane));
}

void add_ranges(const Trace& trace, const InCall& call, Frames frames, FlameChart& chart) {
    const HostRanges& ranges = trace.ranges;
    std::vector<FlameLane> lanes;
    // By range, starting with the call: the number of shown ranges around it, including itself; hidden ones
    // do not count.
    std::vector<std::size_t> depths(call.last() - call.first(), 0);
    for (std::size_t i = call.first(); i < call.last(); ++i) {
        if (!call.holds(static_cast<std::int32_t>(i))) continue;
        const bool frame = ranges.kind[i] == traces::store::RangeKind::function;
        const bool shown = i == call.first() || !frame || frames == Frames::shown;
        const std::size_t around =
            i == call.first() ? 0 : depths[static_cast<std::size_t>(ranges.parent[i]) - call.first()];
        depths[i - call.first()] = around + (shown ? 1 : 0);
        if (frame) ++chart.frames;
        if (!shown) continue;
        ++chart.ranges;
        put(lanes, around, {ranges.start[i], ranges.end[i], static_cast<std::int32_t>(i)},
            model::EventKind::range);
    }
    --chart.ranges;  // the call itself does not count as nested
    take(chart, std::move(lanes), "host");
}

void add_runtime_calls(const Trace& trace, const InCall& call, FlameChart& chart) {
    const traces::store::RuntimeCalls& calls = trace.runtime;
    std::vector<FlameBar> bars;
    for (std::size_t i = 0; i < calls.size(); ++i) {
        if (call.holds(calls.range[i]))
            bars.push_back({calls.start[i], calls.end[i], static_cast<std::int32_t>(i)});
    }
    traces::schema::sort_rows(bars, [](const FlameBar& a, const FlameBar& b) { return a.start < b.start; });
    std::vector<FlameLane> lanes;
    for (const FlameBar& bar : bars) put(lanes, 0, bar, model::EventKind::runtime);
    take(chart, std::move(lanes), "runtime calls");
}

void add_device_work(const Trace& trace, const InCall& call, FlameChart& chart) {
    const traces::store::DeviceEvents& device = trace.device;
    std::map<std::uint16_t, std::vector<FlameLane>> streams;
    for (std::size_t i = 0; i < device.size(); ++i) {
        if (!call.holds(device.range[i])) continue;
        ++chart.device_events;
        chart.device_ns += device.end[i] - device.start[i];
        chart.time.from = std::min(chart.time.from, device.start[i]);
        chart.time.to = std::max(chart.time.to, device.end[i]);
        put(streams[device.stream[i]], 0, {device.start[i], device.end[i], static_cast<std::int32_t>(i)},
            model::EventKind::device);
    }
    for (auto& [stream, lanes] : streams)
        take(chart, std::move(lanes), draw::stream_title(trace.streams[stream]));
}

std::int64_t length(const Trace& trace, std::int32_t range) {
    const auto i = static_cast<std::size_t>(range);
    return trace.ranges.end[i] - trace.ranges.start[i];
}

}  // namespace

FlameChart make_flame(const Trace& trace, std::int32_t range, Frames frames) {
    const auto i = static_cast<std::size_t>(range);
    FlameChart chart;
    chart.range = range;
    chart.rank = trace.threads[trace.ranges.thread[i]].rank;
    chart.call = chart.time = {trace.ranges.start[i], trace.ranges.end[i]};
    const InCall call(trace, range);
    add_ranges(trace, call, frames, chart);
    add_runtime_calls(trace, call, chart);
    add_device_work(trace, call, chart);
    return chart;
}

std::vector<ShownBar> shown_bars(const FlameLane& lane, const model::TimeView& view) {
    std::vector<ShownBar> shown;
    const auto& bars = lane.bars;
    const auto ends_after = [&](std::size_t from, std::int64_t time) {
        return static_cast<std::size_t>(
            std::partition_point(bars.begin() + static_cast<std::ptrdiff_t>(from), bars.end(),
                                 [time](const FlameBar& bar) { return bar.end <= time; }) -
            bars.begin());
    };
    for (std::size_t i = ends_after(0, view.from); i < bars.size() && bars[i].start < view.to;) {
        const double x0 = std::max(0.0, view.pixel(bars[i].start));
        const double x1 = std::min(view.width, view.pixel(bars[i].end));
        std::size_t next = i + 1;
        if (x1 - x0 < 1) {  // merges all that end in the pixel column in which this one begins
            const std::int64_t edge = std::max(view.time(std::floor(x0) + 1), bars[i].end);
            next = std::max(next, ends_after(next, edge));
        }
        shown.push_back({x0, std::max(x1, x0 + 1), i, next - i});
        i = next;
    }
    return shown;
}

std::vector<std::int32_t> calls_in(const traces::analysis::CallsOfModule& module, CallDirection direction) {
    std::vector<std::int32_t> calls;
    for (const traces::analysis::ModuleCall& call : module.calls) {
        if (call.backward == (direction == CallDirection::backward)) calls.push_back(call.range);
    }
    return calls;
}

std::optional<std::size_t> slowest_call(const Trace& trace, const std::vector<std::int32_t>& calls) {
    if (calls.empty()) return std::nullopt;
    const auto at = std::max_element(calls.begin(), calls.end(), [&](std::int32_t a, std::int32_t b) {
        return length(trace, a) < length(trace, b);
    });
    return static_cast<std::size_t>(at - calls.begin());
}

std::optional<std::size_t> median_call(const Trace& trace, const std::vector<std::int32_t>& calls) {
    if (calls.empty()) return std::nullopt;
    std::vector<std::size_t> order(calls.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    traces::schema::sort_rows(order, [&](std::size_t a, std::size_t b) {
        return length(trace, calls[a]) < length(trace, calls[b]);
    });
    return order[(order.size() - 1) / 2];
}

std::vector<std::int64_t> longest_by_column(const Trace& trace, const std::vector<std::int32_t>& calls,
                                            int columns) {
    const std::size_t count = std::min(calls.size(), static_cast<std::size_t>(std::max(1, columns)));
    std::vector<std::int64_t> longest(count);
    for (std::size_t i = 0; i < calls.size(); ++i) {
        std::int64_t& most = longest[i * count / calls.size()];
        most = std::max(most, length(trace, calls[i]));
    }
    return longest;
}

}  // namespace shardscope::viewer::panels
