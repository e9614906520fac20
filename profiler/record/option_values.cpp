// Parses whole texts: trailing text is an error.
#include "profiler/record/option_values.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string_view>

#include <fmt/core.h>
#include <signal.h>

namespace shardscope::profiler {
namespace {

// A whole number of 0 or more that is all of `text`.
template <typename Number>
bool parse_number(std::string_view text, Number* number) {
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, *number);
    return error == std::errc() && stop == end && *number >= 0 && text.front() != '-';
}

}  // namespace

std::int64_t parse_bytes(const std::string& text) {
    const std::invalid_argument wrong(
        fmt::format("'{}' is not a size; write bytes, or a number with K, M, G or T as in 500M", text));
    double number = 0;
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, number);
    if (error != std::errc() || !std::isfinite(number) || number <= 0) throw wrong;
    std::string_view unit(stop, static_cast<std::size_t>(end - stop));
    double factor = 1;
    if (!unit.empty()) {
        const std::size_t power = std::string_view("kmgt").find(static_cast<char>(unit[0] | 0x20));
        if (power == std::string_view::npos) {
            if (unit != "B") throw wrong;
        } else {
            factor = std::ldexp(1.0, 10 * static_cast<int>(power + 1));
            unit.remove_prefix(1);
            if (!unit.empty() && unit != "B" && unit != "iB") throw wrong;
        }
    }
    const double bytes = number * factor;
    if (bytes < 1 || bytes > 9e18) throw wrong;
    return static_cast<std::int64_t>(bytes);
}

std::pair<std::int64_t, std::int64_t> parse_steps(const std::string& text) {
    const std::invalid_argument wrong(fmt::format(
        "'{}' is not a range of steps; write FIRST:LAST, as in 100:103 (both are recorded)", text));
    const std::string_view all = text;
    const std::size_t colon = all.find(':');
    std::pair<std::int64_t, std::int64_t> steps{0, std::numeric_limits<std::int64_t>::max()};
    if (colon == std::string_view::npos) {
        if (all.empty() || !parse_number(all, &steps.first)) throw wrong;
        steps.second = steps.first;
        return steps;
    }
    const std::string_view first = all.substr(0, colon), last = all.substr(colon + 1);
    if (first.empty() && last.empty()) throw wrong;
    if (!first.empty() && !parse_number(first, &steps.first)) throw wrong;
    if (!last.empty() && !parse_number(last, &steps.second)) throw wrong;
    if (steps.first > steps.second) {
        throw std::invalid_argument(
            fmt::format("'{}' ends before it begins; write the smaller step first", text));
    }
    return steps;
}

std::vector<std::pair<std::int32_t, std::int32_t>> parse_ranks(const std::string& text) {
    std::vector<std::pair<std::int32_t, std::int32_t>> ranks;
    std::string_view rest = text;
    for (bool more = true; more;) {
        const std::size_t comma = rest.find(',');
        more = comma != std::string_view::npos;
        const std::string_view part = rest.substr(0, comma);
        if (more) rest.remove_prefix(comma + 1);
        const std::size_t dash = part.find('-');
        const std::string_view first = part.substr(0, dash);
        const std::string_view last = dash == std::string_view::npos ? first : part.substr(dash + 1);
        std::pair<std::int32_t, std::int32_t> range;
        if (first.empty() || last.empty() || !parse_number(first, &range.first) ||
            !parse_number(last, &range.second) || range.first > range.second) {
            throw std::invalid_argument(
                fmt::format("'{}' is not a list of ranks; write numbers and ranges, as in 0,8-11", text));
        }
        ranks.push_back(range);
    }
    if (ranks.size() > kMostRankRanges) {
        throw std::invalid_argument(fmt::format("'{}' has {} parts; {} are possible, so write ranges as 0-7",
                                                text, ranks.size(), kMostRankRanges));
    }
    return ranks;
}

int parse_signal(const std::string& text) {
    std::string_view name = text;
    if (name.rfind("SIG", 0) == 0) name.remove_prefix(3);
    if (name == "USR1") return SIGUSR1;
    if (name == "USR2") return SIGUSR2;
    int number = 0;
    if (name == "RTMIN") return SIGRTMIN;
    if (name.rfind("RTMIN+", 0) == 0 && name.size() > 6 && parse_number(name.substr(6), &number) &&
        number <= SIGRTMAX - SIGRTMIN) {
        return SIGRTMIN + number;
    }
    if (!name.empty() && parse_number(name, &number) &&
        (number == SIGUSR1 || number == SIGUSR2 || (number >= SIGRTMIN && number <= SIGRTMAX))) {
        return number;
    }
    throw std::invalid_argument(
        fmt::format("'{}' is not a signal that can be used; write USR1, USR2 or RTMIN+1", text));
}

}  // namespace shardscope::profiler
