// Arithmetic of a sampled figure. Between two samples it runs in a straight line; nothing is known across a
// gap of more than three sampling intervals. A sample therefore stands for the half of the time to each
// neighbour that it has without a gap, and the mean with these weights is the integral by trapezoids over the
// known time. Definition: docs/definitions.md, "Utilization, energy". Times in nanoseconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "traces/analysis/base/intervals.h"

namespace shardscope::traces::analysis {

struct Sample {
    std::int64_t time = 0;
    double value = 0;
};

// Values outside are not usable, like those that are not numbers: they are left out and counted.
struct SampleLimits {
    double least = 0, most = 1e18;
};

// Samples by time, each time once, all of them finite and within limits.
class SampledCurve {
  public:
    static constexpr double kGap = 3;  // sampling intervals

    SampledCurve() = default;
    // In any order. `period`: of the sampler; 0: unknown, then the median of the distances. The rest of a
    // sample's time that lies outside `within` is cut off. `steps`: a value holds, unlike a line's, until
    // half of the way to the next (bits, which have nothing between them).
    SampledCurve(std::vector<Sample> samples, SampleLimits limits, std::int64_t period, Interval within,
                 bool steps = false);

    std::span<const Sample> samples() const { return samples_; }
    bool empty() const { return samples_.empty(); }
    std::int64_t unusable() const { return unusable_; }
    double period_ns() const { return gap_ns_ / kGap; }

    double seconds() const { return known_ns_ * 1e-9; }      // of known time
    double integral() const { return integral_ns_ * 1e-9; }  // value x seconds
    // Of the known time; where there is none (a single sample), of the samples.
    double mean() const;
    double percentile(double share) const;  // the lowest value that lies below for at least that share
    double lowest() const;
    double highest() const;
    double zero_percent() const;
    // The share of time, in percent, of the samples that `accept` selects.
    template <class Accept>
    double percent_of_time(Accept accept) const {
        double with = 0, all = 0;
        for (std::size_t i = 0; i < samples_.size(); ++i) {
            const double weight = weight_of(i);
            all += weight;
            if (accept(samples_[i])) with += weight;
        }
        return all > 0 ? 100 * with / all : 0;
    }
    // Of a counter that only grows: by how much, over all gaps. Where it falls (a reset) it begins again.
    double growth() const;

    // The time `within` in `columns` parts of equal length.
    struct Column {
        float mean = 0, highest = 0;
        bool known = false;
    };
    std::vector<Column> fold(std::size_t columns) const;

    bool joined(std::size_t i) const;  // sample i and the next one, without a gap

  private:
    double weight_of(std::size_t i) const { return known_ns_ > 0 ? weights_[i] : 1; }

    std::vector<Sample> samples_;
    std::vector<double> weights_;  // ns
    Interval within_;
    double gap_ns_ = 0, known_ns_ = 0, integral_ns_ = 0;
    std::int64_t unusable_ = 0;
    bool steps_ = false;
};

// The sum of curves, at the times of all of them. A curve counts only where it is known; the sum is known
// where at least one is.
SampledCurve sum_of(std::span<const SampledCurve* const> curves, Interval within);

// The higher of two curves whose samples were taken one right after the other, at the times of the first; a
// sample without one of the other within half an interval is omitted.
SampledCurve higher_of(const SampledCurve& first, const SampledCurve& second, Interval within);

}  // namespace shardscope::traces::analysis
