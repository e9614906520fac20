// See axis.h.
#include "viewer/draw/axis.h"

#include <algorithm>
#include <cmath>
#include <string>

#include <fmt/core.h>

#include "viewer/draw/format.h"

namespace shardscope::viewer::draw {
namespace {

struct Scale {
    double size;  // base units in one of this unit
    const char* suffix;
};

// The largest unit of which `extent` holds at least one.
Scale choose_scale(double extent, AxisUnit unit) {
    if (unit == AxisUnit::bytes) {
        if (extent >= 1024.0 * 1024 * 1024) return {1024.0 * 1024 * 1024, " GiB"};
        if (extent >= 1024.0 * 1024) return {1024.0 * 1024, " MiB"};
        if (extent >= 1024.0) return {1024.0, " KiB"};
        return {1, " B"};
    }
    if (unit == AxisUnit::nanoseconds) {
        if (extent >= 1e9) return {1e9, " s"};
        if (extent >= 1e6) return {1e6, " ms"};
        if (extent >= 1e3) return {1e3, " \u00b5s"};
        return {1, " ns"};
    }
    return {1, unit == AxisUnit::percent ? " %" : ""};
}

// The tick that follows `value` (a tick itself) on a logarithmic axis; a `fineness` of 0 keeps every tick.
double next_power(double value, int fineness, AxisUnit unit) {
    if (unit == AxisUnit::bytes) return value * std::exp2(fineness + 1);
    if (fineness > 0) return value * std::pow(10.0, fineness);
    const double power = std::pow(10.0, std::floor(std::log10(value) + 1e-9));
    const double digit = std::round(value / power);
    return power * (digit < 2 ? 2 : digit < 5 ? 5 : 10);
}

// The power at or below `low` from which the ticks are counted.
double first_power(double low, int fineness, AxisUnit unit) {
    const double base = unit == AxisUnit::bytes ? 2 : 10,
                 step = unit == AxisUnit::bytes ? fineness + 1 : std::max(1, fineness);
    return std::pow(base, std::floor(std::log(low) / std::log(base) / step) * step);
}

int decimals_of(double step) {
    int decimals = 0;
    while (decimals < 9 && std::abs(step - std::round(step)) > 1e-9 * std::max(1.0, std::abs(step))) {
        step *= 10;
        ++decimals;
    }
    return decimals;
}

// A tick's number on an axis up to `largest`, with as many digits as `step` has. What would be long, or
// nothing but zeros, has an exponent: "2e+34".
std::string label_of(double value, double step, double largest, AxisUnit unit) {
    const bool is_number = unit == AxisUnit::number;
    if (largest < (is_number ? 1e9 : 1e15) && (!is_number || largest >= 1e-6))
        return format_decimal(value, decimals_of(step));
    const double digits = std::floor(std::log10(largest)) - std::floor(std::log10(step) + 1e-9) + 1;
    return fmt::format("{:.{}g}", value + 0.0, static_cast<int>(std::clamp(digits, 1.0, 17.0)));
}

}  // namespace

double nice_step(double value) {
    const double power = std::pow(10.0, std::floor(std::log10(value)));
    for (const double factor : {1.0, 2.0, 5.0, 10.0}) {
        if (factor * power >= value * (1 - 1e-12)) return factor * power;
    }
    return 10 * power;
}

std::vector<Tick> make_ticks(double low, double high, int max_ticks, AxisUnit unit) {
    std::vector<Tick> ticks;
    if (!(high > low) || max_ticks < 1 || !std::isfinite(low) || !std::isfinite(high)) return ticks;
    const Scale scale = choose_scale(std::max(std::abs(low), std::abs(high)), unit);
    const double from = low / scale.size, to = high / scale.size;
    double step = nice_step((to - from) / max_ticks);
    const bool whole = scale.size == 1 && unit != AxisUnit::percent && unit != AxisUnit::number;
    if (whole) step = std::max(step, 1.0);
    double first = std::ceil(from / step - 1e-9);
    double last = std::floor(to / step + 1e-9);
    if (last - first + 1 > max_ticks) {  // both ends are ticks: one too many
        step = nice_step(step * 1.01);
        first = std::ceil(from / step - 1e-9);
        last = std::floor(to / step + 1e-9);
    }
    double stride = 1;
    if (max_ticks >= 2 && !whole) {  // one tick says nothing of the scale: the first and last of a finer step
        for (int finer = 0; finer < 3 && last - first < 1; ++finer) {
            step = nice_step(step * 0.4);
            first = std::ceil(from / step - 1e-9);
            last = std::floor(to / step + 1e-9);
            stride = std::max(1.0, last - first);
        }
    }
    const double largest = std::max(std::abs(from), std::abs(to));
    // Counts with an integer: beyond 2^53 a double plus one is the same double.
    for (int n = 0; n <= max_ticks && first + n * stride <= last; ++n) {
        const double value = (first + n * stride) * step;
        if (!ticks.empty() && value * scale.size <= ticks.back().value) continue;
        ticks.push_back({value * scale.size, label_of(value, step, largest, unit) + scale.suffix});
    }
    return ticks;
}

std::vector<Tick> make_log_ticks(double low, double high, int max_ticks, AxisUnit unit) {
    if (!(low > 0) || !(high > low) || max_ticks < 1 || !std::isfinite(high)) return {};
    constexpr int kCoarsest = 2100;  // octaves, more than a double has
    std::vector<double> values;
    for (int fineness = 0; fineness < kCoarsest; ++fineness) {
        values.clear();
        for (double value = first_power(low, fineness, unit); value <= high * (1 + 1e-9);
             value = next_power(value, fineness, unit)) {
            if (value >= low * (1 - 1e-9)) values.push_back(value);
            if (!(next_power(value, fineness, unit) > value)) break;  // beyond the precision of a double
        }
        if (static_cast<int>(values.size()) <= max_ticks) break;
    }
    if (values.size() < 2 && max_ticks >= 2) return make_ticks(low, high, max_ticks, unit);
    std::vector<Tick> ticks;
    for (const double value : values) {
        const Scale scale = choose_scale(value, unit);
        const double shown = value / scale.size;
        ticks.push_back({value, label_of(shown, shown, shown, unit) + scale.suffix});
    }
    return ticks;
}

double axis_top(double largest) {
    return largest > 0 ? largest * 1.06 : 1.0;
}

}  // namespace shardscope::viewer::draw
