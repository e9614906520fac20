// Robust statistics of measured times: medians, and curves of medians over sizes.
#pragma once

#include <vector>

#include "trainer/sim/cluster.h"

namespace shardscope::trainer::calibrate {

// The median of the values in any order; 0 if empty. Of an even number: the mean of the two in the middle.
double median(std::vector<double> values);
// The smallest value that has at least `share` of the others at or below it; 0 if empty.
double percentile(std::vector<double> values, double share);

// The mean without the tenth at either end: what many of them add up to, without outliers. 0 if empty.
double trimmed_mean(std::vector<double> values);

struct Weighted {
    double value = 0, weight = 0;
};
// Half of the weight is at or below it.
double weighted_median(std::vector<Weighted> values);

// A rate that work of a size has reached.
struct RateSample {
    double size = 0, rate = 0, weight = 0;
};
enum class Shape { any, rising };

// The best rate of all sizes, and its share by size: weighted medians of sizes that are within a tenth of
// each other. Rising: larger work is never less efficient (neighbours that say so are pooled).
struct RateCurve {
    double best = 0;  // 0: no samples
    sim::Curve share;
};
RateCurve rate_curve(std::vector<RateSample> samples, Shape shape);

}  // namespace shardscope::trainer::calibrate
