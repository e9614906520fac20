// Kernel rates, from the mean time of each kernel at each size, and the latencies around kernels.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include <fmt/core.h>

#include "trainer/calibrate/fit.h"
#include "trainer/calibrate/fit_curve.h"
#include "trainer/sim/costs.h"

namespace shardscope::trainer::calibrate {

namespace {

using sim::Arithmetic;
using sim::ClassRates;

constexpr std::size_t kFewest = 5;    // fewest times per size, both lone and busy, to compare
constexpr double kNearlyWhole = 0.2;  // distance from a whole number of busy cores

// All times of one kernel at one size.
struct KernelGroup {
    plan::Kernel kernel = plan::Kernel::none;
    Arithmetic arithmetic = Arithmetic::fp32;
    double flops = 0, bytes = 0;
    std::vector<double> seconds;
    double time = 0;  // mean of one kernel: sums matter, not typical values

    double weight() const { return static_cast<double>(seconds.size()) * time; }
};
using Groups = std::vector<KernelGroup>;

template <class Seconds>
Groups group(const Runs& runs, const Seconds& seconds_of) {
    using Key = std::tuple<plan::Kernel, Arithmetic, std::int64_t, std::int64_t>;
    std::map<Key, KernelGroup> groups;
    for (const MeasuredRun& run : runs) {
        for (const MeasuredOp& work : run.work) {
            const plan::Op& op = *work.op;
            if (op.kind != plan::OpKind::kernel || work.end <= work.start) continue;
            const double seconds = seconds_of(run, work);
            if (!(seconds > 0)) continue;
            const Arithmetic arithmetic = sim::arithmetic_of(op, run.job.precision.tf32);
            KernelGroup& own = groups[{op.kernel().kernel, arithmetic, op.flops, op.bytes}];
            own.kernel = op.kernel().kernel;
            own.arithmetic = arithmetic;
            own.flops = static_cast<double>(op.flops);
            own.bytes = static_cast<double>(op.bytes);
            own.seconds.push_back(seconds);
        }
    }
    Groups result;
    for (auto& [key, own] : groups) {
        own.time = trimmed_mean(own.seconds);
        result.push_back(std::move(own));
    }
    return result;
}

// Whether operations, not bytes, limit a class.
bool computes(plan::KernelClass c) {
    return c == plan::KernelClass::matmul || c == plan::KernelClass::attention;
}

// The rates that some groups show, with bytes per second in place of a share of the memory bandwidth.
struct Shown {
    ClassRates rates;
    sim::Curve bytes_per_second;
    std::set<Arithmetic> arithmetics;
    std::int64_t kernels = 0;
    double best_bytes_per_second = 0;
};

Shown rates_of(const std::vector<const KernelGroup*>& groups, const ClassRates& base, Shape shape) {
    Shown shown;
    shown.rates.flops = {};
    // The type that took the most time gives the curve; the others differ from it by a constant factor.
    std::array<double, sim::kArithmetics> weights{};
    for (const KernelGroup* own : groups) {
        weights[static_cast<std::size_t>(own->arithmetic)] += own->weight();
        shown.kernels += std::ssize(own->seconds);
        shown.arithmetics.insert(own->arithmetic);
        shown.best_bytes_per_second = std::max(shown.best_bytes_per_second, own->bytes / own->time);
    }
    const auto main =
        static_cast<Arithmetic>(std::max_element(weights.begin(), weights.end()) - weights.begin());
    std::vector<RateSample> computing, moving;
    for (const KernelGroup* own : groups) {
        const bool by_flops =
            own->flops > 0 && (computes(kernel_info(own->kernel).kernel_class) || own->bytes <= 0);
        double& best = shown.rates.flops[static_cast<std::size_t>(own->arithmetic)];
        if (own->flops > 0) best = std::max(best, own->flops / own->time);
        if (by_flops && own->arithmetic == main)
            computing.push_back({own->flops, own->flops / own->time, own->weight()});
        if (!by_flops && own->bytes > 0)
            moving.push_back({own->bytes, own->bytes / own->time, own->weight()});
    }
    const RateCurve efficiency = rate_curve(computing, shape);
    if (efficiency.best > 0) {
        shown.rates.flops[static_cast<std::size_t>(main)] = efficiency.best;
        shown.rates.efficiency = efficiency.share;
        // The rates of the other types are those that reproduce their times with this curve.
        for (const Arithmetic other : shown.arithmetics) {
            if (other == main) continue;
            std::vector<Weighted> rates;
            for (const KernelGroup* own : groups) {
                if (own->arithmetic == other && own->flops > 0)
                    rates.push_back(
                        {own->flops / own->time / efficiency.share.at(own->flops), own->weight()});
            }
            shown.rates.flops[static_cast<std::size_t>(other)] = weighted_median(rates);
        }
    }
    const RateCurve bandwidth = rate_curve(moving, Shape::any);
    for (const sim::Curve::Point& point : bandwidth.share.points)
        shown.bytes_per_second.points.push_back({point.size, point.share * bandwidth.best});
    // Types that were not seen keep the base model's proportions.
    double scale = 0;
    for (std::size_t a = 0; a < sim::kArithmetics; ++a) {
        if (shown.rates.flops[a] > 0 && scale == 0) scale = shown.rates.flops[a] / base.flops[a];
    }
    for (std::size_t a = 0; a < sim::kArithmetics; ++a) {
        if (!(shown.rates.flops[a] > 0))
            shown.rates.flops[a] = scale > 0 ? scale * base.flops[a] : base.flops[a];
    }
    return shown;
}

// Drops points that lie on the line through their neighbours, as they add nothing.
sim::Curve thinned(const sim::Curve& curve) {
    constexpr double kSame = 0.01;
    sim::Curve result;
    const auto& points = curve.points;
    for (std::size_t i = 0; i < points.size(); ++i) {
        if (i > 0 && i + 1 < points.size()) {
            const sim::Curve around{{result.points.back(), points[i + 1]}};
            if (std::abs(around.at(points[i].size) - points[i].share) < kSame * points[i].share) continue;
        }
        result.points.push_back(points[i]);
    }
    return result;
}

double rounded(double value) {
    if (value <= 0) return value;
    const double unit = std::pow(10.0, std::floor(std::log10(value)) - 3);
    return std::round(value / unit) * unit;
}

sim::Curve as_share(const sim::Curve& rates, double of) {
    sim::Curve share;
    for (const sim::Curve::Point& point : rates.points)
        share.points.push_back({std::round(point.size), std::min(1.0, point.share / of)});
    return thinned(share);
}

// A base model's curve, converted to another bandwidth.
sim::Curve rebased(const sim::Curve& share, double base, double now) {
    sim::Curve result = share;
    if (result.points.empty()) result.points = {{1, 1}};
    for (sim::Curve::Point& point : result.points) point.share = std::min(1.0, point.share * base / now);
    return result;
}

std::string seen(const Shown& shown) {
    return fmt::format("{} kernels measured", shown.kernels);
}

}  // namespace

double alone(const MeasuredOp& work, const Calibration& fitted) {
    const sim::DeviceModel& device = fitted.cluster.device;
    const double seconds = static_cast<double>(work.end - work.begin) * 1e-9;
    if (device.cores == 0 || is_disk_stream(work.op->stream)) return seconds;
    const double busy = std::clamp(work.busy, 1.0, static_cast<double>(device.cores));
    return seconds * device.busy_share.at(busy) * busy / std::max(busy, work.busy);
}

void fit_busy_share(const Runs& runs, Calibration& into) {
    sim::DeviceModel& device = into.cluster.device;
    if (device.cores == 0) return;
    sim::Curve shares{{{1, 1}}};
    std::int64_t sizes = 0;
    for (int busy = 2; busy <= device.cores; ++busy) {
        const auto at = [&](double count) {
            return [count](const MeasuredRun&, const MeasuredOp& work) {
                const bool near = std::abs(work.busy - count) <= kNearlyWhole;
                return near ? static_cast<double>(work.end - work.start) * 1e-9 : 0.0;
            };
        };
        std::map<std::tuple<plan::Kernel, Arithmetic, double, double>, KernelGroup> lone;
        for (KernelGroup& own : group(runs, at(1)))
            lone[{own.kernel, own.arithmetic, own.flops, own.bytes}] = std::move(own);
        std::vector<Weighted> ratios;
        for (const KernelGroup& own : group(runs, at(busy))) {
            const auto other = lone.find({own.kernel, own.arithmetic, own.flops, own.bytes});
            if (other == lone.end() || other->second.seconds.size() < kFewest || own.seconds.size() < kFewest)
                continue;
            ratios.push_back({other->second.time / own.time, own.weight()});
        }
        if (ratios.empty()) continue;
        sizes += std::ssize(ratios);
        const double share = std::min(weighted_median(ratios), shares.points.back().share);
        shares.points.push_back({static_cast<double>(busy), std::round(share * 1000) / 1000});
    }
    const bool shown = shares.points.size() > 1;
    if (shown) device.busy_share = shares;
    into.notes["device.busy_share"] =
        shown ? fmt::format("{} sizes of kernels, alone and together with other work", sizes)
              : fmt::format("from {}: no kernel was measured alone and together with other work", into.base);
}

void fit_kernels(const Runs& runs, Calibration& into) {
    sim::DeviceModel& device = into.cluster.device;
    const sim::DeviceModel base = device;
    std::vector<double> gaps, wakes;
    for (const MeasuredRun& run : runs) {
        const bool waits_for_cores = base.cores > 0 && run.job.run.ranks > base.cores * run.nodes;
        for (const MeasuredOp& work : run.work) {
            if (waits_for_cores || work.op->kind == plan::OpKind::collective) continue;
            const double late =
                1e-9 * static_cast<double>(std::max<std::int64_t>(0, work.start - work.ready));
            const bool idle = base.cores == 0 || work.busy < base.cores - 0.5;
            if (work.op->kind == plan::OpKind::kernel && work.queued) gaps.push_back(late);
            if (work.ready == work.launched && idle) wakes.push_back(late);
        }
    }
    if (!gaps.empty()) device.kernel_latency = rounded(median(gaps));
    into.note("device.kernel_latency", !gaps.empty(),
              fmt::format("median gap between {} kernels that were queued", gaps.size()));
    if (!wakes.empty()) device.wake = rounded(median(wakes));
    into.note(
        "device.wake", !wakes.empty(),
        fmt::format("median time from a launch to the start, {} times on an idle device", wakes.size()));

    const Groups groups =
        group(runs, [&](const MeasuredRun&, const MeasuredOp& work) { return alone(work, into); });
    std::map<plan::KernelClass, std::vector<const KernelGroup*>> by_class;
    std::map<plan::Kernel, std::vector<const KernelGroup*>> by_kernel;
    for (const KernelGroup& own : groups) {
        by_class[kernel_info(own.kernel).kernel_class].push_back(&own);
        by_kernel[own.kernel].push_back(&own);
    }
    std::map<plan::KernelClass, Shown> classes;
    std::map<plan::Kernel, Shown> kernels;
    double fastest = 0;
    for (const auto& [c, own] : by_class) {
        classes[c] = rates_of(own, base.rates(c), computes(c) ? Shape::rising : Shape::any);
        fastest = std::max(fastest, classes[c].best_bytes_per_second);
    }
    for (const auto& [kernel, own] : by_kernel)
        kernels[kernel] = rates_of(own, base.rates(kernel), Shape::any);
    if (fastest > 0) device.memory_bandwidth = rounded(fastest * 1.001);
    into.note("device.memory_bandwidth", fastest > 0,
              "the most bytes per second that any kernel moved, caches included");

    for (auto& [kernel, rates] : device.kernels) {  // from a base model that was itself fitted
        rates.bandwidth_share =
            rebased(rates.bandwidth_share, base.memory_bandwidth, device.memory_bandwidth);
        into.notes[fmt::format("kernels.{}", kernel_info(kernel).name)] = "from " + into.base;
    }
    for (std::size_t i = 0; i < plan::kKernelClasses; ++i) {
        const auto c = static_cast<plan::KernelClass>(i);
        ClassRates& rates = device.classes[i];
        const std::string section = fmt::format("operators.{}", plan::kKernelClassNames[i]);
        const auto own = classes.find(c);
        if (own == classes.end()) {
            rates.bandwidth_share =
                rebased(rates.bandwidth_share, base.memory_bandwidth, device.memory_bandwidth);
            into.notes[section] = "from " + into.base + ": no trace has such a kernel";
            continue;
        }
        rates = own->second.rates;
        rates.efficiency = thinned(rates.efficiency);
        rates.bandwidth_share = as_share(own->second.bytes_per_second, device.memory_bandwidth);
        into.notes[section] = seen(own->second);
    }
    for (auto& [kernel, shown] : kernels) {
        ClassRates& rates = device.kernels[kernel] = shown.rates;
        rates.efficiency = thinned(rates.efficiency);
        rates.bandwidth_share = as_share(shown.bytes_per_second, device.memory_bandwidth);
        into.notes[fmt::format("kernels.{}", kernel_info(kernel).name)] = seen(shown);
    }
}

}  // namespace shardscope::trainer::calibrate
