// What each piece of work waited for, and what ran at the same time.
#include <algorithm>
#include <limits>

#include "trainer/calibrate/walk.h"
#include "trainer/executor/stream_order.h"

namespace shardscope::trainer::calibrate {

namespace {

// When an event happened; for several events, when the last one did.
struct Happened {
    std::int64_t at = std::numeric_limits<std::int64_t>::min();  // default: unknown, before everything

    void add(Happened other) { at = std::max(at, other.at); }
    bool empty() const { return at == Happened().at; }
};

bool precedes_without_wait(Happened, Happened) {
    return false;
}

}  // namespace

// Tracks the order of the streams as the walks do, using the times at which work ended.
void Walk::find_ready(const std::vector<JoinedStep>& steps) {
    executor::StreamOrder<Happened, Happened> order;
    for (const JoinedStep& step : steps) {
        order.begin(*step.plan);
        for (std::size_t i = 0; i < step.plan->ops.size(); ++i) {
            const plan::Op& op = step.plan->ops[i];
            const auto last = [&] { return order.last()[static_cast<std::size_t>(op.stream)]; };
            if (op.kind == plan::OpKind::record_event) {
                order.record(op, [&](Happened waits) {
                    waits.add(last());
                    return waits;
                });
            } else if (op.kind == plan::OpKind::wait_event) {
                order.wait(op);
            } else if (op.kind == plan::OpKind::host_wait && step.used) {
                const auto call = static_cast<std::size_t>(step.call[i]);
                const Time happened = order.event(op.event()).at;
                if (happened > trace_.runtime.start[call] && trace_.runtime.end[call] >= happened)
                    run_.wakes.push_back(seconds(trace_.runtime.end[call] - happened));
            } else if (step.work[i] >= 0) {
                MeasuredOp& work = run_.work[static_cast<std::size_t>(step.work[i])];
                const Happened over{work.over};
                if (op.kind == plan::OpKind::collective) order.queue(work.group, op.stream).last = over;
                const Time others = std::max(work.launched, order.take_waits(op.stream).at);
                work.queued = last().at > others;
                work.ready = std::max(last().at, others);
                order.started(op.stream, over);
            }
        }
        order.end(*step.plan);
    }
}

// Sets for each piece of work the mean number that ran on its node meanwhile. A collective works only after
// the last arrival.
void Walk::find_busy() {
    struct Change {
        Time time = 0;
        int by = 0;
    };
    std::vector<std::vector<Change>> changes(static_cast<std::size_t>(run_.nodes));
    const auto node_of = [&](traces::store::RankIndex rank) {
        return static_cast<std::size_t>(run_.node_of[rank.at()]);
    };
    for (const MeasuredOp& work : run_.work) {
        if (is_disk_stream(work.op->stream)) continue;  // takes no core
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
