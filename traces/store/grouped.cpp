#include "traces/store/grouped.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/core.h>

namespace shardscope::traces::store {

namespace {

std::string thousands_apart(std::string_view digits) {
    std::string text;
    text.reserve(digits.size() + digits.size() / 3);
    for (std::size_t i = 0; i < digits.size(); ++i) {
        if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
        text += digits[i];
    }
    return text;
}

}  // namespace

std::string grouped(std::int64_t value) {
    const std::string digits = fmt::format("{}", value);
    return value < 0 ? "-" + thousands_apart(std::string_view(digits).substr(1)) : thousands_apart(digits);
}

std::string counted(std::int64_t count, std::string_view one, std::string_view many) {
    return fmt::format("{} {}", grouped(count), count == 1 ? one : many);
}

std::string grouped(double value, int decimals) {
    if (!std::isfinite(value)) return "-";
    constexpr double kExact = 9e15;  // whole numbers below it are exact
    const double scale = std::pow(10.0, decimals);
    // A half that has no exact binary form can be one ulp too low: 1.005 * 100 is 100.49999999999999.
    const double scaled = std::nextafter(std::abs(value) * scale, std::numeric_limits<double>::infinity());
    std::string digits =
        scaled < kExact ? fmt::format("{:0{}}", std::llround(scaled), static_cast<std::size_t>(decimals) + 1)
                        : fmt::format("{:.{}f}", std::abs(value), decimals);
    if (scaled < kExact && decimals > 0)
        digits.insert(digits.size() - static_cast<std::size_t>(decimals), 1, '.');
    const bool zero = digits.find_first_not_of("0.") == std::string::npos;
    const std::size_t point = std::min(digits.find('.'), digits.size());
    return (value < 0 && !zero ? "-" : "") + thousands_apart(std::string_view(digits).substr(0, point)) +
           digits.substr(point);
}

}  // namespace shardscope::traces::store
