// See curves.h.
#include "viewer/bench/curves.h"

#include <algorithm>
#include <cstdio>
#include <random>
#include <vector>

#include <fmt/core.h>

#include "viewer/bench/measure.h"
#include "viewer/draw/fold.h"
#include "viewer/timeline/counter_fold.h"

namespace shardscope::viewer::bench {
namespace {

constexpr int kColumns = 1400;  // columns of a timeline in a window 1600 pixels wide

std::vector<traces::analysis::MemoryPoint> made_points(std::size_t count) {
    std::mt19937 random(1);
    std::vector<traces::analysis::MemoryPoint> points(count);
    traces::analysis::MemoryPoint point;
    for (traces::analysis::MemoryPoint& made : points) {
        point.time += 1 + random() % 200;
        const std::size_t category = random() % point.bytes.size();
        const std::int64_t change = (static_cast<std::int64_t>(random() % 4096) - 2000) * 512;
        const std::int64_t now = std::max<std::int64_t>(0, point.bytes[category] + change);
        point.total += now - point.bytes[category];
        point.bytes[category] = now;
        made = point;
    }
    return points;
}

// This thread's processor time for one fold in milliseconds: the median of `rounds` while the view moves.
template <class Fold>
double time_of(std::int64_t from, std::int64_t to, int rounds, const Fold& fold) {
    std::vector<double> times;
    for (int round = 0; round < rounds; ++round) {
        const std::int64_t moved = (to - from) / 50 * round;
        const double start = thread_seconds();
        fold(from + moved, to + moved);
        times.push_back((thread_seconds() - start) * 1e3);
    }
    return percentile(times, 0.5);
}

}  // namespace

void measure_curves(std::size_t count) {
    std::vector<traces::analysis::MemoryPoint> points = made_points(count);
    const std::int64_t end = points.back().time + 1;
    timeline::CounterTrack counter;
    for (const traces::analysis::MemoryPoint& point : points)
        counter.points.emplace_back(point.time, static_cast<double>(point.total));
    counter.index = draw::CurveIndex<double>(
        count, [&](std::size_t i) { return counter.points[i].first; },
        [&](std::size_t i) { return counter.points[i].second; });
    const double start = thread_seconds();
    const draw::CategoryCurve curve = draw::category_curve(std::move(points));
    const double built = thread_seconds() - start;
    fmt::print("A memory curve of {} points, folded to {} columns: processor time of one in ms\n", count,
               kColumns);
    fmt::print("index made off the frame thread {:>7.2f} s, {:.2f} bytes a point\n", built,
               static_cast<double>(curve.index.memory()) / static_cast<double>(count));
    fmt::print("{:<10}{:>14}{:>14}{:>16}\n", "shown", "with index", "counter", "every point");
    for (const double share : {1.0, 0.3, 0.1, 0.01, 0.001, 1e-4, 1e-5, 1e-6}) {
        const std::int64_t from = end / 3 * (share < 1 ? 1 : 0);
        const std::int64_t to =
            from + std::max<std::int64_t>(100, static_cast<std::int64_t>(share * static_cast<double>(end)));
        const double indexed = time_of(
            from, to, 9, [&](std::int64_t a, std::int64_t b) { (void)fold_curve(curve, a, b, kColumns); });
        const double counted = time_of(from, to, 9, [&](std::int64_t a, std::int64_t b) {
            (void)timeline::fold_counter(counter, model::TimeView{a, b, kColumns}, kColumns);
        });
        const double plain = time_of(from, to, 1, [&](std::int64_t a, std::int64_t b) {
            (void)draw::fold_curve(curve.points, a, b, kColumns);
        });
        fmt::print("{:<10}{:>14.3f}{:>14.3f}{:>16.2f}\n", fmt::format("{:g} %", share * 100), indexed,
                   counted, plain);
    }
    fmt::print("\n");
    std::fflush(stdout);  // the child process exits by _exit(), without a flush
}

}  // namespace shardscope::viewer::bench
