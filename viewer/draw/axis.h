// Where an axis puts its ticks and their labels: steps of 1, 2 or 5 times a power of ten in a suitable unit.
// Pure arithmetic, no drawing; any thread.
#pragma once

#include <string>
#include <vector>

namespace shardscope::viewer::draw {

enum class AxisUnit {
    count,        // no unit
    bytes,        // B, KiB, MiB, GiB by 1024; steps are round numbers of the chosen unit
    nanoseconds,  // ns, us, ms, s
    percent,
    number,  // no unit, and not only whole numbers
};

struct Tick {
    double value = 0;   // in the axis's base unit (bytes, nanoseconds, ...)
    std::string label;  // with unit: "40 MiB"
};

// The smallest 1, 2 or 5 times a power of ten that is at least `value` (> 0).
double nice_step(double value);

// At most `max_ticks` ticks inside [low, high], all multiples of one nice step; empty for an empty range.
std::vector<Tick> make_ticks(double low, double high, int max_ticks, AxisUnit unit);

// The same for a logarithmic axis: powers of two for bytes, else 1, 2 and 5 times powers of ten, thinned out
// to `max_ticks`; if the range holds hardly any of those, make_ticks(). Empty unless 0 < low < high.
std::vector<Tick> make_log_ticks(double low, double high, int max_ticks, AxisUnit unit);

// A little more than `largest`, so that the highest point does not touch the frame; 1 if `largest` is 0.
double axis_top(double largest);

// The linear map from [low, high] to pixels [from, to]; an empty range maps to `from`.
struct LinearScale {
    double low = 0, high = 1;
    double from = 0, to = 1;
    double pixel(double value) const {
        return high > low ? from + (value - low) / (high - low) * (to - from) : from;
    }
    double value(double at) const {
        return to != from ? low + (at - from) / (to - from) * (high - low) : low;
    }
};

}  // namespace shardscope::viewer::draw
