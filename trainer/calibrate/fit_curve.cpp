#include "trainer/calibrate/fit_curve.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

namespace shardscope::trainer::calibrate {

namespace {

constexpr double kOneSize = 1.1;  // sizes within this factor are one point of a curve

double middle(double low, double high) {
    return 0.5 * (low + high);
}

// Isotonic regression: merges adjacent points that fall into one level, by weight.
void make_rising(std::vector<RateSample>& points) {
    struct Level {
        double rate = 0, weight = 0;
        std::size_t points = 0;
    };
    std::vector<Level> levels;
    for (const RateSample& point : points) {
        levels.push_back({point.rate, point.weight, 1});
        while (levels.size() > 1 && levels.back().rate < levels[levels.size() - 2].rate) {
            const Level last = levels.back();
            levels.pop_back();
            Level& level = levels.back();
            level.rate = (level.rate * level.weight + last.rate * last.weight) / (level.weight + last.weight);
            level.weight += last.weight;
            level.points += last.points;
        }
    }
    std::size_t at = 0;
    for (const Level& level : levels) {
        for (std::size_t i = 0; i < level.points; ++i) points[at++].rate = level.rate;
    }
}

}  // namespace

double median(std::vector<double> values) {
    if (values.empty()) return 0;
    const auto half = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), half, values.end());
    if (values.size() % 2 == 1) return *half;
    return middle(*std::max_element(values.begin(), half), *half);
}

double percentile(std::vector<double> values, double share) {
    if (values.empty()) return 0;
    const auto wanted = static_cast<std::size_t>(std::ceil(share * static_cast<double>(values.size())));
    const auto at =
        values.begin() + static_cast<std::ptrdiff_t>(std::clamp<std::size_t>(wanted, 1, values.size()) - 1);
    std::nth_element(values.begin(), at, values.end());
    return *at;
}

double trimmed_mean(std::vector<double> values) {
    if (values.empty()) return 0;
    std::sort(values.begin(), values.end());
    const auto cut = static_cast<std::ptrdiff_t>(values.size() / 10);
    const double sum = std::accumulate(values.begin() + cut, values.end() - cut, 0.0);
    return sum / static_cast<double>(std::ssize(values) - 2 * cut);
}

double weighted_median(std::vector<Weighted> values) {
    std::sort(values.begin(), values.end(),
              [](const Weighted& a, const Weighted& b) { return a.value < b.value; });
    double all = 0, below = 0;
    for (const Weighted& value : values) all += value.weight;
    for (const Weighted& value : values) {
        below += value.weight;
        if (below >= 0.5 * all) return value.value;
    }
    return 0;
}

RateCurve rate_curve(std::vector<RateSample> samples, Shape shape) {
    std::sort(samples.begin(), samples.end(),
              [](const RateSample& a, const RateSample& b) { return a.size < b.size; });
    std::vector<RateSample> points;
    for (std::size_t first = 0; first < samples.size();) {
        std::size_t end = first;
        std::vector<Weighted> rates, logs;
        double weight = 0;
        for (; end < samples.size() && samples[end].size <= kOneSize * samples[first].size; ++end) {
            rates.push_back({samples[end].rate, samples[end].weight});
            logs.push_back({samples[end].size, samples[end].weight});
            weight += samples[end].weight;
        }
        points.push_back({weighted_median(logs), weighted_median(rates), weight});
        first = end;
    }
    if (shape == Shape::rising) make_rising(points);
    RateCurve curve;
    for (const RateSample& point : points) curve.best = std::max(curve.best, point.rate);
    for (const RateSample& point : points)
        curve.share.points.push_back({point.size, point.rate / curve.best});
    return curve;
}

}  // namespace shardscope::trainer::calibrate
