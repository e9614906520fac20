// See device_figures.h.
#include "traces/analysis/job/device_figures.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/core.h>

#include "traces/store/grouped.h"

namespace shardscope::traces::analysis {
namespace {

using Curve = const SampledCurve*;

// NVML's bits for clocks that are held down. Not among them: an idle GPU, clocks that someone has set, clocks
// that follow those of other GPUs or of a display.
struct Throttle {
    std::uint64_t bit;
    std::string_view name;
};
constexpr std::array kThrottles = {Throttle{0x04, "power cap"}, Throttle{0x08, "hardware slowdown"},
                                   Throttle{0x20, "temperature"}, Throttle{0x40, "temperature (hardware)"},
                                   Throttle{0x80, "power brake"}};
constexpr std::uint64_t kThrottled = 0x04 | 0x08 | 0x20 | 0x40 | 0x80;

bool has_bits(const Sample& sample, std::uint64_t bits) {
    return (static_cast<std::uint64_t>(sample.value) & bits) != 0;
}

void add_throttling(const SampledCurve& reasons, Curve clock, DeviceUse& use) {
    use.throttled_percent = reasons.percent_of_time([](const Sample& s) { return has_bits(s, kThrottled); });
    std::vector<std::pair<double, std::string_view>> parts;
    for (const Throttle& throttle : kThrottles) {
        const double percent =
            reasons.percent_of_time([&](const Sample& s) { return has_bits(s, throttle.bit); });
        if (percent > 0) parts.emplace_back(percent, throttle.name);
    }
    std::stable_sort(parts.begin(), parts.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    for (const auto& [percent, name] : parts)
        use.throttled_by +=
            fmt::format("{}{} {} %", use.throttled_by.empty() ? "" : ", ", name, store::grouped(percent, 1));
    if (clock == nullptr) return;
    // Reasons and clocks are sampled together.
    std::array<double, 2> sums{}, counts{};
    auto reason = reasons.samples().begin();
    for (const Sample& sample : clock->samples()) {
        while (reason != reasons.samples().end() && reason->time < sample.time) ++reason;
        if (reason == reasons.samples().end()) break;
        if (reason->time != sample.time) continue;
        const std::size_t throttled = has_bits(*reason, kThrottled) ? 1 : 0;
        sums[throttled] += sample.value;
        ++counts[throttled];
    }
    if (counts[0] > 0) use.free_sm_clock_mhz = sums[0] / counts[0];
    if (counts[1] > 0) use.throttled_sm_clock_mhz = sums[1] / counts[1];
}

}  // namespace

std::vector<SampledFigure> figures_of(const OwnedCurves& owned) {
    std::vector<SampledFigure> figures;
    for (const auto& [name, curve] : owned.curves) {
        if (curve.empty()) continue;
        figures.push_back({name, curve.mean(), curve.percentile(0.95), curve.lowest(), curve.highest(),
                           curve.zero_percent(), curve.seconds(),
                           static_cast<std::int64_t>(curve.samples().size())});
    }
    return figures;
}

// The energy of a device in a part of the time, and whether its own counter tells it.
std::pair<Known, bool> energy_of(const OwnedCurves& owned, const Interval* part) {
    const auto cut = [&](Curve curve) {
        return part == nullptr ? *curve
                               : SampledCurve({curve->samples().begin(), curve->samples().end()}, {},
                                              static_cast<std::int64_t>(curve->period_ns()), *part);
    };
    const Curve counter = owned.find("energy_joules"), power = owned.find("power_watts");
    if (counter != nullptr && counter->samples().size() > 1) {
        const double joules = cut(counter).growth();
        if (joules > 0) return {joules, true};
    }
    if (power == nullptr) return {std::nullopt, false};
    const SampledCurve own = cut(power);
    if (own.seconds() <= 0) return {std::nullopt, false};
    return {own.integral(), false};
}

void add_gpu_figures(const OwnedCurves& owned, DeviceUse& use) {
    const Curve utilization = owned.find("utilization_percent"), power = owned.find("power_watts"),
                memory = owned.find("memory_used_bytes"), clock = owned.find("sm_clock_mhz"),
                temperature = owned.find("temperature_celsius"),
                reasons = owned.find("throttle_reasons_bits");
    use.utilization_percent = mean_of(utilization);
    use.utilization_p95_percent = p95_of(utilization);
    use.idle_percent = idle_of(utilization);
    use.memory_mean_bytes = mean_of(memory);
    use.memory_peak_bytes = highest_of(memory);
    use.power_watts = mean_of(power);
    use.power_p95_watts = p95_of(power);
    std::tie(use.energy_j, use.energy_from_counter) = energy_of(owned);
    use.sm_clock_mhz = mean_of(clock);
    use.memory_clock_mhz = mean_of(owned.find("memory_clock_mhz"));
    use.temperature_celsius = mean_of(temperature);
    use.temperature_highest_celsius = highest_of(temperature);
    if (reasons != nullptr) add_throttling(*reasons, clock, use);
    use.sampled = figures_of(owned);
}

std::vector<LanePoint> lane_of(const SampledCurve* utilization, const SampledCurve* reasons, Interval time,
                               std::size_t points) {
    std::vector<LanePoint> lane(points);
    if (utilization != nullptr) {
        const auto folded = utilization->fold(lane.size());
        for (std::size_t c = 0; c < lane.size(); ++c)
            lane[c] = {folded[c].mean, folded[c].highest, 0, folded[c].known};
    }
    if (reasons != nullptr) {
        std::vector<Sample> throttled(reasons->samples().begin(), reasons->samples().end());
        for (Sample& sample : throttled) sample.value = has_bits(sample, kThrottled) ? 1 : 0;
        const auto folded = SampledCurve(std::move(throttled), {},
                                         static_cast<std::int64_t>(reasons->period_ns()), time, true)
                                .fold(lane.size());
        for (std::size_t c = 0; c < lane.size(); ++c) lane[c].throttled = folded[c].mean;
    }
    return lane;
}

}  // namespace shardscope::traces::analysis
