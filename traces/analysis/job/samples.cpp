// See samples.h.
#include "traces/analysis/job/samples.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "traces/analysis/base/percentile.h"
#include "traces/schema/sort_rows.h"

namespace shardscope::traces::analysis {
namespace {

constexpr double kGap = SampledCurve::kGap;
constexpr std::size_t kEnoughDistances = 4;  // that their median tells more than the sampler's period

double length_of(std::int64_t from, std::int64_t to) {  // times may be at the ends of their range
    return static_cast<double>(to) - static_cast<double>(from);
}

double between(const Sample& a, const Sample& b, std::int64_t time) {
    const double length = length_of(a.time, b.time);
    return length > 0 ? a.value + (b.value - a.value) * (length_of(a.time, time) / length) : a.value;
}

double longest_joined(std::span<const Sample> samples, std::int64_t period) {
    std::vector<double> distances;
    distances.reserve(samples.size());
    for (std::size_t i = 1; i < samples.size(); ++i)
        distances.push_back(length_of(samples[i - 1].time, samples[i].time));
    if (distances.empty()) return 0;
    // A sampler that is slower than its period says so by its own samples, if there are some.
    if (period > 0 && distances.size() < kEnoughDistances) return kGap * static_cast<double>(period);
    return kGap * std::max(lower_median(distances), static_cast<double>(period));
}

}  // namespace

bool SampledCurve::joined(std::size_t i) const {
    return i + 1 < samples_.size() && length_of(samples_[i].time, samples_[i + 1].time) <= gap_ns_;
}

SampledCurve::SampledCurve(std::vector<Sample> samples, SampleLimits limits, std::int64_t period,
                           Interval within, bool steps)
    : within_(within), steps_(steps) {
    unusable_ = static_cast<std::int64_t>(std::erase_if(samples, [&](const Sample& s) {
        return !std::isfinite(s.value) || s.value < limits.least || s.value > limits.most;
    }));
    const auto earlier = [](const Sample& a, const Sample& b) { return a.time < b.time; };
    if (!std::is_sorted(samples.begin(), samples.end(), earlier)) schema::sort_rows(samples, earlier);
    // A device that several ranks share is reported once for each of them.
    samples.erase(std::unique(samples.begin(), samples.end(),
                              [](const Sample& a, const Sample& b) { return a.time == b.time; }),
                  samples.end());
    gap_ns_ = longest_joined(samples, period);

    // Cut to `within`: where a line crosses its ends, a sample is put there.
    std::vector<Sample> cut;
    cut.reserve(samples.size());
    for (std::size_t i = 0; i < samples.size(); ++i) {
        const Sample& s = samples[i];
        if (i > 0 && length_of(samples[i - 1].time, s.time) <= gap_ns_) {
            for (const std::int64_t end : {within.start, within.end}) {
                if (samples[i - 1].time >= end || s.time <= end) continue;
                const bool earlier_half = length_of(samples[i - 1].time, end) < length_of(end, s.time);
                cut.push_back({end, !steps         ? between(samples[i - 1], s, end)
                                    : earlier_half ? samples[i - 1].value
                                                   : s.value});
            }
        }
        if (s.time >= within.start && s.time <= within.end) cut.push_back(s);
    }
    samples_ = std::move(cut);

    weights_.assign(samples_.size(), 0);
    for (std::size_t i = 0; i + 1 < samples_.size(); ++i) {
        if (!joined(i)) continue;
        const double half = length_of(samples_[i].time, samples_[i + 1].time) / 2;
        weights_[i] += half;
        weights_[i + 1] += half;
    }
    for (std::size_t i = 0; i < samples_.size(); ++i) {
        known_ns_ += weights_[i];
        integral_ns_ += weights_[i] * samples_[i].value;
    }
}

double SampledCurve::mean() const {
    if (known_ns_ > 0) return integral_ns_ / known_ns_;
    return mean_over(samples_, [](const Sample& s) { return s.value; });
}

double SampledCurve::percentile(double share) const {
    std::vector<std::pair<double, double>> values;  // with their weights
    values.reserve(samples_.size());
    double all = 0;
    for (std::size_t i = 0; i < samples_.size(); ++i) {
        values.emplace_back(samples_[i].value, weight_of(i));
        all += weight_of(i);
    }
    std::sort(values.begin(), values.end());
    double below = 0;
    for (const auto& [value, weight] : values) {
        below += weight;
        if (below >= share * all) return value;
    }
    return values.empty() ? 0 : values.back().first;
}

double SampledCurve::lowest() const {
    double least = samples_.empty() ? 0 : samples_.front().value;
    for (const Sample& s : samples_) least = std::min(least, s.value);
    return least;
}

double SampledCurve::highest() const {
    double most = samples_.empty() ? 0 : samples_.front().value;
    for (const Sample& s : samples_) most = std::max(most, s.value);
    return most;
}

double SampledCurve::zero_percent() const {
    return percent_of_time([](const Sample& s) { return s.value == 0; });
}

double SampledCurve::growth() const {
    double sum = 0;
    for (std::size_t i = 1; i < samples_.size(); ++i)
        sum += std::max(samples_[i].value - samples_[i - 1].value, 0.0);
    return sum;
}

std::vector<SampledCurve::Column> SampledCurve::fold(std::size_t columns) const {
    std::vector<Column> folded(columns);
    const double start = static_cast<double>(within_.start),
                 width = length_of(within_.start, within_.end) / static_cast<double>(columns);
    if (columns == 0 || !(width > 0)) return folded;
    struct Sum {
        double value = 0, time = 0;
    };
    std::vector<Sum> sums(columns);
    const auto column_at = [&](double time) {
        return static_cast<std::size_t>(
            std::clamp((time - start) / width, 0.0, static_cast<double>(columns - 1)));
    };
    const auto show = [&](std::size_t c, double value) {
        folded[c].highest = std::max(folded[c].highest, static_cast<float>(value));
        folded[c].known = true;
    };
    for (std::size_t i = 0; i < samples_.size(); ++i) {
        const Sample& a = samples_[i];
        const auto from = static_cast<double>(a.time);
        if (!joined(i)) {  // also a lone sample is seen
            const std::size_t c = column_at(from);
            show(c, a.value);
            if (sums[c].time == 0) folded[c].mean = static_cast<float>(a.value);
            continue;
        }
        const Sample& b = samples_[i + 1];
        const auto to = static_cast<double>(b.time);
        const auto value_at = [&](double time) {
            if (steps_) return time - from < to - time ? a.value : b.value;
            return a.value + (b.value - a.value) * ((time - from) / (to - from));
        };
        const std::size_t last = column_at(to);
        for (std::size_t c = column_at(from); c <= last; ++c) {
            const double left = std::max(from, start + static_cast<double>(c) * width),
                         right = std::min(to, start + static_cast<double>(c + 1) * width);
            if (right <= left) continue;
            show(c, value_at(left));
            show(c, value_at(right));
            sums[c].value += value_at((left + right) / 2) * (right - left);
            sums[c].time += right - left;
        }
    }
    for (std::size_t c = 0; c < columns; ++c)
        if (sums[c].time > 0) folded[c].mean = static_cast<float>(sums[c].value / sums[c].time);
    return folded;
}

SampledCurve sum_of(std::span<const SampledCurve* const> curves, Interval within) {
    if (curves.size() == 1) return *curves.front();
    std::vector<std::int64_t> times;
    double period = 0;  // of several samplers the distances between their samples tell nothing
    for (const SampledCurve* curve : curves) {
        for (const Sample& s : curve->samples()) times.push_back(s.time);
        period = std::max(period, curve->period_ns());
    }
    std::sort(times.begin(), times.end());
    times.erase(std::unique(times.begin(), times.end()), times.end());
    std::vector<Sample> sum(times.size());
    for (std::size_t i = 0; i < times.size(); ++i) sum[i].time = times[i];
    for (const SampledCurve* curve : curves) {
        const std::span<const Sample> samples = curve->samples();
        std::size_t at = 0;  // of `times`
        for (std::size_t i = 0; i < samples.size(); ++i) {
            while (times[at] < samples[i].time) ++at;
            sum[at].value += samples[i].value;
            if (!curve->joined(i)) continue;
            for (std::size_t t = at + 1; times[t] < samples[i + 1].time; ++t)
                sum[t].value += between(samples[i], samples[i + 1], times[t]);
        }
    }
    return {std::move(sum), {}, static_cast<std::int64_t>(period), within};
}

SampledCurve higher_of(const SampledCurve& first, const SampledCurve& second, Interval within) {
    const double period = std::max(first.period_ns(), second.period_ns());
    const std::span<const Sample> others = second.samples();
    std::vector<Sample> higher;
    std::size_t at = 0;  // of `others`
    for (const Sample& own : first.samples()) {
        const auto distance = [&](std::size_t i) { return std::abs(length_of(own.time, others[i].time)); };
        while (at + 1 < others.size() && distance(at + 1) <= distance(at)) ++at;
        if (at < others.size() && distance(at) <= period / 2)
            higher.push_back({own.time, std::max(own.value, others[at].value)});
    }
    return {std::move(higher), {}, static_cast<std::int64_t>(period), within};
}

}  // namespace shardscope::traces::analysis
