// What the actions of a schedule cost: exact times of one chunk (one stage, one micro-batch) in ticks.
#pragma once

#include <cstdint>
#include <numeric>
#include <string>
#include <string_view>

namespace shardscope::trainer::pipeline {

// An exact number: numerator / denominator, reduced, denominator > 0.
struct Fraction {
    std::int64_t numerator = 0, denominator = 1;

    static Fraction of(std::int64_t part, std::int64_t whole) {
        const std::int64_t common = std::gcd(part, whole);
        return common == 0 ? Fraction{} : Fraction{part / common, whole / common};
    }
    double value() const { return static_cast<double>(numerator) / static_cast<double>(denominator); }
    bool operator==(const Fraction&) const = default;
};
std::string text_of(const Fraction& fraction);    // "3/11", "2"
std::string time_text(const Fraction& fraction);  // decimal if three places are exact: "2.5", "1/3"

// A unit of time is `scale` ticks. The full backward takes input + weight, an overlapped pair the sum of its
// two parts.
struct Costs {
    std::int64_t forward = 1, input = 1, weight = 1;
    std::int64_t transfer = 0;  // between two ranks, of an output or a gradient; its sender computes on
    std::int64_t scale = 1;

    std::int64_t backward() const { return input + weight; }
    Fraction units(std::int64_t ticks) const { return Fraction::of(ticks, scale); }
    // The same times, each times `factor`.
    Costs times(std::int64_t factor) const {
        return {forward * factor, input * factor, weight * factor, transfer * factor, scale};
    }
};

// "1,1,1" or "1.5,1/3,2" and "0.25". Throws ScheduleError, which names the option or key of the wrong text.
Costs parse_costs(std::string_view forward_input_weight, std::string_view transfer);

}  // namespace shardscope::trainer::pipeline
