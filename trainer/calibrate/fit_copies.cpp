// Copies between host and device, and on the device.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <tuple>

#include <fmt/core.h>

#include "trainer/calibrate/fit.h"
#include "trainer/calibrate/fit_curve.h"

namespace shardscope::trainer::calibrate {

namespace {

enum Direction : std::size_t { to_device = 0, to_host = 1, on_device = 2 };

struct Copy {
    Direction direction = on_device;
    bool pageable = false;
    double bytes = 0;  // moved; on the device, read and written
};

Copy copy_of(const MeasuredOp& work) {
    const plan::Op& op = *work.op;
    const auto pageable = [&](const plan::Arg& arg) {
        return work.plan->buffers[static_cast<std::size_t>(arg.buffer)].space == plan::MemorySpace::host;
    };
    const auto bytes = static_cast<double>(op.bytes);
    if (op.kind == plan::OpKind::memset) return {on_device, false, bytes};
    if (op.copy_kind() == traces::schema::kCopyHostToDevice) return {to_device, pageable(op.args[1]), bytes};
    if (op.copy_kind() == traces::schema::kCopyDeviceToHost) return {to_host, pageable(op.args[0]), bytes};
    return {on_device, false, 2 * bytes};
}

}  // namespace

void fit_copies(const Runs& runs, Calibration& into) {
    sim::CopyModel& copy = into.cluster.copy;
    std::map<std::tuple<Direction, bool, double>, std::vector<double>> times;
    std::vector<double> gaps;
    for (const MeasuredRun& run : runs) {
        for (const MeasuredOp& work : run.work) {
            if (work.op->kind != plan::OpKind::memcpy && work.op->kind != plan::OpKind::memset) continue;
            if (is_disk_stream(work.op->stream)) continue;
            const Copy own = copy_of(work);
            const double seconds = alone(work, into);
            if (!(seconds > 0) || !(own.bytes > 0)) continue;
            times[{own.direction, own.pageable, own.bytes}].push_back(seconds);
            if (own.direction != on_device && work.queued && run.job.run.ranks <= into.cluster.device.cores)
                gaps.push_back(static_cast<double>(std::max<std::int64_t>(0, work.start - work.ready)) *
                               1e-9);
        }
    }
    std::array<std::array<std::vector<RateSample>, 2>, 3> rates;  // by direction, pageable
    std::array<std::int64_t, 3> counts{};
    for (const auto& [key, seconds] : times) {
        const auto& [direction, pageable, bytes] = key;
        const double time = trimmed_mean(seconds);
        rates[direction][pageable].push_back(
            {bytes, bytes / time, static_cast<double>(seconds.size()) * time});
        counts[direction] += std::ssize(seconds);
    }
    // The rate of pageable memory as a share of pinned memory's.
    const bool both = !rates[to_device][0].empty() && !rates[to_device][1].empty();
    if (both) {
        const double share = rate_curve(rates[to_device][1], Shape::any).best /
                             rate_curve(rates[to_device][0], Shape::any).best;
        copy.pageable_share = std::clamp(std::round(share * 1000) / 1000, 1e-3, 1.0);
    }
    into.note("copy.pageable_share", both, "measured beside pinned memory");
    std::vector<RateSample> normal;  // both directions, each as a share of its best rate
    std::array<double, 2> best{};
    for (const Direction direction : {to_device, to_host}) {
        std::vector<RateSample> all = rates[direction][0];
        for (RateSample sample : rates[direction][1]) {
            sample.rate /= copy.pageable_share;
            all.push_back(sample);
        }
        best[direction] = rate_curve(all, Shape::any).best;
        for (RateSample sample : all) {
            sample.rate /= best[direction];
            normal.push_back(sample);
        }
    }
    const RateCurve curve = rate_curve(normal, Shape::any);
    if (curve.best > 0) {
        copy.bandwidth_share = curve.share;
        const double ratio = copy.to_host / copy.to_device;
        copy.to_device = (best[to_device] > 0 ? best[to_device] : best[to_host] / ratio) * curve.best;
        copy.to_host = (best[to_host] > 0 ? best[to_host] : best[to_device] * ratio) * curve.best;
        copy.latency = gaps.empty() ? into.cluster.device.kernel_latency : median(gaps);
    }
    const auto note = [&](const char* key, Direction direction) {
        into.note(key, curve.best > 0,
                  counts[direction] > 0 ? fmt::format("{} copies measured", counts[direction])
                                        : "from the other direction, in the proportion of " + into.base);
    };
    note("copy.to_device", to_device);
    note("copy.to_host", to_host);
    into.note("copy.latency", curve.best > 0, "median gap before a copy that was queued");
    const RateCurve inside = rate_curve(rates[on_device][0], Shape::any);
    if (inside.best > 0) {
        std::vector<Weighted> all;
        for (const RateSample& sample : rates[on_device][0]) all.push_back({sample.rate, sample.weight});
        copy.on_device = weighted_median(all);
    } else if (!(copy.on_device > 0)) {
        copy.on_device = into.cluster.device.memory_bandwidth;
    }
    into.notes["copy.on_device"] = inside.best > 0
                                       ? fmt::format("{} copies and memsets measured", counts[on_device])
                                       : "none was measured: as device.memory_bandwidth";
}

}  // namespace shardscope::trainer::calibrate
