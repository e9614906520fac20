// What each piece of work waited for, and what ran at the same time.
#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "trainer/calibrate/walk.h"

namespace shardscope::trainer::calibrate {

namespace {

constexpr std::int64_t kUnknown = std::numeric_limits<std::int64_t>::min();

}  // namespace

// Tracks streams and events as RankRunner does, but with the times at which they completed.
void Walk::find_ready(const std::vector<JoinedStep>& steps) {
    std::array<Time, kStreams> last, waits;
    last.fill(kUnknown);
    waits.fill(kUnknown);
    std::vector<Time> events;
    std::map<std::int64_t, Time> queues;  // by communicator
    for (const JoinedStep& step : steps) {
        events.resize(std::max(events.size(), static_cast<std::size_t>(step.plan->events)), kUnknown);
        for (std::size_t i = 0; i < step.plan->ops.size(); ++i) {
            const Op& op = step.plan->ops[i];
            const auto s = static_cast<std::size_t>(std::max(0, static_cast<int>(op.stream)));
            if (op.kind == OpKind::record_event) {
                last[s] = std::max(last[s], std::exchange(waits[s], kUnknown));
                events[static_cast<std::size_t>(op.event)] = last[s];
            } else if (op.kind == OpKind::wait_event) {
                waits[s] = std::max(waits[s], events[static_cast<std::size_t>(op.event)]);
            } else if (op.kind == OpKind::host_wait && step.used) {
                const auto call = static_cast<std::size_t>(step.call[i]);
                const Time happened = events[static_cast<std::size_t>(op.event)];
                if (happened > trace_.runtime.start[call] && trace_.runtime.end[call] >= happened)
                    run_.wakes.push_back(seconds(trace_.runtime.end[call] - happened));
            } else if (step.work[i] >= 0) {
                MeasuredOp& work = run_.work[static_cast<std::size_t>(step.work[i])];
                Time others = std::max(work.launched, std::exchange(waits[s], kUnknown));
                if (op.kind == OpKind::collective) {
                    Time& queue = queues.try_emplace(work.group, kUnknown).first->second;
                    others = std::max(others, queue);
                    queue = work.over;
                }
                work.queued = last[s] > others;
                work.ready = std::max(last[s], others);
                last[s] = work.over;
            }
        }
        for (const auto& [from, to] : step.plan->carry)
            events[static_cast<std::size_t>(to)] = events[static_cast<std::size_t>(from)];
    }
}

// The mean number of pieces of work that ran on the node while each did. A collective works from the last
// arrival on.
void Walk::find_busy() {
    struct Change {
        Time time = 0;
        int by = 0;
    };
    std::vector<std::vector<Change>> changes(static_cast<std::size_t>(run_.nodes));
    const auto node_of = [&](int rank) {
        return static_cast<std::size_t>(run_.node_of[static_cast<std::size_t>(rank)]);
    };
    for (const MeasuredOp& work : run_.work) {
        auto& own = changes[node_of(work.rank)];
        own.push_back({work.begin, 1});
        own.push_back({work.end, -1});
    }
    for (const HostInterval& interval : host_intervals_) {
        auto& own = changes[node_of(interval.rank)];
        own.push_back({interval.start, 1});
        own.push_back({interval.end, -1});
    }
    struct Point {
        Time time = 0;
        double area = 0;  // work seen so far, in nanoseconds
        int active = 0;   // from that time on
    };
    std::vector<std::vector<Point>> curves;
    for (auto& own : changes) {
        std::sort(own.begin(), own.end(), [](const Change& a, const Change& b) { return a.time < b.time; });
        std::vector<Point>& curve = curves.emplace_back();
        for (const Change& change : own) {
            if (curve.empty() || curve.back().time != change.time) {
                const Point before = curve.empty() ? Point{change.time, 0, 0} : curve.back();
                curve.push_back({change.time,
                                 before.area + static_cast<double>(before.active) *
                                                   static_cast<double>(change.time - before.time),
                                 before.active});
            }
            curve.back().active += change.by;
        }
    }
    const auto area_at = [](const std::vector<Point>& curve, Time time) {
        const auto above = std::upper_bound(curve.begin(), curve.end(), time,
                                            [](Time t, const Point& point) { return t < point.time; });
        if (above == curve.begin()) return 0.0;
        const Point& point = *(above - 1);
        return point.area + static_cast<double>(point.active) * static_cast<double>(time - point.time);
    };
    for (MeasuredOp& work : run_.work) {
        if (work.end <= work.begin) continue;
        const auto& curve = curves[node_of(work.rank)];
        work.busy = (area_at(curve, work.end) - area_at(curve, work.begin)) /
                    static_cast<double>(work.end - work.begin);
    }
}

}  // namespace shardscope::trainer::calibrate
