#include "trainer/pipeline/costs.h"

#include <charconv>
#include <optional>
#include <vector>

#include <fmt/core.h>

#include "trainer/pipeline/schedule.h"

namespace shardscope::trainer::pipeline {

namespace {

constexpr std::int64_t kMostTicks = 1'000'000;  // with kMostForwards and kMostRanks, all sums fit 64 bits

std::optional<std::int64_t> digits(std::string_view text) {
    std::int64_t value = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    if (text.empty() || error != std::errc() || stop != end || value < 0 || value > kMostTicks)
        return std::nullopt;
    return value;
}

// "2", "1.25", "5/4"
std::optional<Fraction> number(std::string_view text) {
    if (const auto slash = text.find('/'); slash != std::string_view::npos) {
        const auto part = digits(text.substr(0, slash)), whole = digits(text.substr(slash + 1));
        return part && whole && *whole > 0 ? std::optional(Fraction::of(*part, *whole)) : std::nullopt;
    }
    const auto point = text.find('.');
    const auto whole = digits(text.substr(0, point));
    if (point == std::string_view::npos || !whole)
        return whole ? std::optional(Fraction{*whole, 1}) : std::nullopt;
    const std::string_view behind = text.substr(point + 1);
    const auto part = digits(behind);
    if (!part || behind.size() > 6) return std::nullopt;
    std::int64_t power = 1;
    for (std::size_t i = 0; i < behind.size(); ++i) power *= 10;
    return Fraction::of(*whole * power + *part, power);
}

}  // namespace

std::string text_of(const Fraction& fraction) {
    return fraction.denominator == 1 ? fmt::format("{}", fraction.numerator)
                                     : fmt::format("{}/{}", fraction.numerator, fraction.denominator);
}

std::string time_text(const Fraction& fraction) {
    const bool decimal = fraction.denominator > 1 && 1000 % fraction.denominator == 0;
    return decimal ? fmt::format("{}", fraction.value()) : text_of(fraction);
}

Costs parse_costs(std::string_view forward_input_weight, std::string_view transfer) {
    std::vector<Fraction> times;
    std::string_view rest = forward_input_weight;
    for (bool more = true; more;) {
        const auto comma = rest.find(',');
        more = comma != std::string_view::npos;
        const auto time = number(rest.substr(0, comma));
        if (more) rest.remove_prefix(comma + 1);
        if (time && time->numerator > 0 && times.size() < 3 && more == (times.size() < 2)) {
            times.push_back(*time);
            continue;
        }
        throw ScheduleError(fmt::format(
            "--costs: \"{}\" is not three times above 0; give those of forward, backward input and "
            "backward weight of a chunk, such as 1,1,1 or 1.5,4/3,1",
            forward_input_weight));
    }
    const auto between = number(transfer);
    if (!between)
        throw ScheduleError(fmt::format(
            "--transfer: \"{}\" is not a time; give a number from 0 on, such as 0.25 or 1/3", transfer));
    times.push_back(*between);
    Costs costs;
    for (const Fraction& time : times) {
        costs.scale = std::lcm(costs.scale, time.denominator);
        if (costs.scale > kMostTicks) break;
    }
    std::vector<std::int64_t> ticks;
    for (const Fraction& time : times) {
        if (costs.scale > kMostTicks || time.numerator > kMostTicks / (costs.scale / time.denominator))
            throw ScheduleError(
                fmt::format("--costs and --transfer: these times have no common unit of which each is at "
                            "most {} multiples; give "
                            "fewer digits",
                            kMostTicks));
        ticks.push_back(time.numerator * (costs.scale / time.denominator));
    }
    return {ticks[0], ticks[1], ticks[2], ticks[3], costs.scale};
}

}  // namespace shardscope::trainer::pipeline
