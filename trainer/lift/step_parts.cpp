#include "trainer/lift/step_parts.h"

#include <algorithm>
#include <utility>

#include "traces/store/columns/trace.h"

namespace shardscope::trainer::lift {

Part StepParts::at(std::int64_t time) const {
    if (time < micro_start) return Part::before;
    if (time < root.start) return Part::data;
    if (time < root.end) return Part::forward;
    if (time < backward.start) return Part::loss;
    return time < backward.end ? Part::backward : Part::tail;
}

// Finds the root's last call in the step and the extent of its backward.
StepParts find_parts(const traces::store::Trace& trace, const HostRangeRoles& roles,
                     const std::vector<Point>& points, traces::analysis::Interval host) {
    StepParts parts;
    std::int64_t longest = -1;
    traces::schema::StringId root_name{};
    int depth = 0;
    std::vector<traces::analysis::Interval> calls;
    std::vector<traces::schema::StringId> names;
    for (const Point& point : points) {
        if (point.kind == Point::Kind::open && depth++ == 0) {
            const auto r = static_cast<std::size_t>(point.index);
            calls.push_back({trace.ranges.start[r], trace.ranges.end[r]});
            names.push_back(trace.ranges.name[r]);
            if (calls.back().length() > longest) {
                longest = calls.back().length();
                root_name = names.back();
            }
        }
        if (point.kind == Point::Kind::close) --depth;
    }
    // The outermost autograd nodes of this rank and step.
    std::vector<traces::analysis::Interval> nodes;
    std::int32_t last = -1;
    for (const Point& point : points) {
        const std::int32_t n = roles.node(point.range);
        if (n < 0 || n == last) continue;
        last = n;
        const auto i = static_cast<std::size_t>(n);
        nodes.push_back({trace.ranges.start[i], trace.ranges.end[i]});
    }
    parts.has_modules = !calls.empty();
    parts.has_backward = !nodes.empty();
    parts.micro_batches = 0;
    parts.micro_start = host.start;
    if (parts.has_modules) {
        for (std::size_t c = 0; c < calls.size(); ++c) {
            if (names[c] != root_name) continue;
            ++parts.micro_batches;
            parts.root = calls[c];
        }
        for (const traces::analysis::Interval& n : nodes)
            if (n.end <= parts.root.start) parts.micro_start = std::max(parts.micro_start, n.end);
    } else {
        parts.micro_batches = 1;
        parts.root = {host.start, nodes.empty() ? host.end : nodes.front().start};
    }
    parts.backward = {parts.root.end, parts.root.end};
    bool first = true;
    for (const traces::analysis::Interval& n : nodes) {
        if (n.start < parts.root.end) continue;
        if (std::exchange(first, false)) parts.backward.start = n.start;
        parts.backward.end = std::max(parts.backward.end, n.end);
    }
    if (first) parts.backward = {host.end, host.end};
    return parts;
}

}  // namespace shardscope::trainer::lift
