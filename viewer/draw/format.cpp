// See format.h.
#include "viewer/draw/format.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include <fmt/core.h>

#include "traces/store/grouped.h"

namespace shardscope::viewer {
namespace {

bool only_zeros(std::string_view digits) {
    return digits.find_first_not_of("0.") == std::string_view::npos;
}

// A byte of UTF-8 that is not the first of its character.
bool continues(char byte) {
    return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U;
}

// Four significant digits for numbers below 1000, no decimals above.
int decimals_for(double value) {
    if (value >= 999.5) return 0;
    if (value >= 99.95) return 1;
    if (value >= 9.995) return 2;
    return 3;
}

}  // namespace

std::string format_count(std::int64_t value) {
    return traces::grouped(value);
}

std::string format_decimal(double value, int decimals) {
    return std::isfinite(value) ? traces::grouped(value, decimals) : "n/a";
}

std::string format_mb(std::int64_t bytes, bool with_unit) {
    const std::string number = format_decimal(static_cast<double>(bytes) / (1 << 20), 2);
    return with_unit ? number + " MB" : number;
}

std::string format_size(std::int64_t bytes) {
    static constexpr std::array<std::string_view, 5> kUnits = {"B", "KB", "MB", "GB", "TB"};
    double value = static_cast<double>(bytes);
    std::size_t unit = 0;
    while (std::abs(value) >= 1023.95 && unit + 1 < kUnits.size()) {
        value /= 1024;
        ++unit;
    }
    return fmt::format("{} {}", format_decimal(value, unit == 0 ? 0 : 1), kUnits[unit]);
}

std::string format_duration(double ns) {
    if (!std::isfinite(ns)) return "n/a";
    const double size = std::abs(ns);
    if (size < 999.5) return fmt::format("{} ns", format_decimal(ns, 0));
    if (size < 999.95e3)
        return fmt::format("{} \u00b5s", format_decimal(ns / 1e3, std::min(2, decimals_for(size / 1e3))));
    if (size < 999.95e6)
        return fmt::format("{} ms", format_decimal(ns / 1e6, std::min(2, decimals_for(size / 1e6))));
    return fmt::format("{} s", format_decimal(ns / 1e9, decimals_for(size / 1e9)));
}

std::string format_short(double value) {
    static constexpr std::array<std::string_view, 5> kPowers = {"", " k", " M", " B", " T"};
    std::size_t power = 0;
    while (std::abs(value) >= 999.95 && power + 1 < kPowers.size()) {
        value /= 1000;
        ++power;
    }
    const bool whole = power == 0 && value == std::round(value);
    return format_decimal(value, whole ? 0 : decimals_for(std::abs(value))) + std::string(kPowers[power]);
}

std::string format_percent(double percent) {
    return format_decimal(percent, 2) + " %";
}

std::string format_change(double value, double base) {
    if (base == 0) return value == 0 ? "0.0 %" : "new";
    const std::string text = format_decimal(100.0 * (value - base) / base, 1);
    const bool grows = value > base && !only_zeros(text);
    return fmt::format("{}{} %", grows ? "+" : "", text);
}

std::string spaced(std::string_view name) {
    std::string text(name);
    std::replace(text.begin(), text.end(), '_', ' ');
    return text;
}

std::size_t first_character(std::string_view text) {
    if (text.empty()) return 0;
    const auto lead = static_cast<unsigned char>(text[0]);
    const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1;
    if (lead >= 0xF8 || length > text.size()) return 1;
    for (std::size_t i = 1; i < length; ++i)
        if (!continues(text[i])) return 1;
    return length;
}

std::size_t last_character(std::string_view text) {
    for (std::size_t length = 1; length <= std::min<std::size_t>(4, text.size()); ++length) {
        const std::string_view end = text.substr(text.size() - length);
        if (continues(end[0])) continue;
        return first_character(end) == length ? length : 1;
    }
    return text.empty() ? 0 : 1;
}

std::string shorten_middle(const std::string& text, std::size_t limit) {
    static constexpr std::string_view kDots = "...";
    if (text.size() <= limit) return text;
    const bool dots = limit > kDots.size();
    const std::size_t keep = dots ? limit - kDots.size() : limit;
    std::size_t head = dots ? keep / 2 : keep, tail = text.size() - (keep - head);
    while (head > 0 && continues(text[head])) --head;
    while (tail < text.size() && continues(text[tail])) ++tail;
    return text.substr(0, head) + std::string(dots ? kDots : "") + text.substr(tail);
}

}  // namespace shardscope::viewer
