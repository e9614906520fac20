// Robust statistics of measured times: medians, and curves of medians over sizes.
#pragma once

#include <vector>

#include "trainer/sim/cluster.h"

namespace shardscope::trainer::calibrate {

// The median of the values in any order; 0 if empty. For an even count, the mean of the middle two.
double median(std::vector<double> values);
// The smallest value with at least `share` of all values at or below it; 0 if empty.
double percentile(std::vector<double> values, double share);

// The mean without the lowest and highest tenth: what many values add up to, less outliers. 0 if empty.
double trimmed_mean(std::vector<double> values);

struct Weighted {
    double value = 0, weight = 0;
};
// The smallest value with at least half of the weight at or below it.
double weighted_median(std::vector<Weighted> values);

// A rate that was reached by work of a given size.
struct RateSample {
    double size = 0, rate = 0, weight = 0;
};
enum class Shape { any, rising };

// The best rate of all sizes, and its share by size: weighted medians over sizes within a tenth of each
// other. Shape::rising: larger work is never less efficient (neighbours that contradict this are merged).
struct RateCurve {
    double best = 0;  // 0: no samples
    sim::Curve share;
};
RateCurve rate_curve(std::vector<RateSample> samples, Shape shape);

}  // namespace shardscope::trainer::calibrate
