// See format.h.
#include "viewer/draw/format.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

namespace shardscope::viewer {
namespace {

std::string group_thousands(std::string_view digits) {
    std::string out;
    out.reserve(digits.size() + digits.size() / 3);
    for (std::size_t i = 0; i < digits.size(); ++i) {
        if (i > 0 && (digits.size() - i) % 3 == 0) out += ',';
        out += digits[i];
    }
    return out;
}

bool only_zeros(std::string_view digits) {
    return digits.find_first_not_of("0.") == std::string_view::npos;
}

// Four significant digits while the number is below 1000, none after the point above.
int decimals_for(double value) {
    if (value >= 999.5) return 0;
    if (value >= 99.95) return 1;
    if (value >= 9.995) return 2;
    return 3;
}

}  // namespace

std::string format_count(std::int64_t value) {
    const std::string digits = fmt::format("{}", value);
    return value < 0 ? "-" + group_thousands(std::string_view(digits).substr(1)) : group_thousands(digits);
}

std::string format_decimal(double value, int decimals) {
    if (!std::isfinite(value)) return "n/a";
    const std::string text = fmt::format("{:.{}f}", std::abs(value), decimals);
    const std::size_t point = text.find('.');
    std::string out = group_thousands(std::string_view(text).substr(0, point));
    if (point != std::string::npos) out += text.substr(point);
    return value < 0 && !only_zeros(text) ? "-" + out : out;
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

std::string shorten_middle(const std::string& text, std::size_t limit) {
    static constexpr std::string_view kDots = "...";
    if (text.size() <= limit) return text;
    if (limit <= kDots.size()) return text.substr(0, limit);
    const std::size_t keep = limit - kDots.size();
    const std::size_t head = keep / 2;
    return text.substr(0, head) + std::string(kDots) + text.substr(text.size() - (keep - head));
}

}  // namespace shardscope::viewer
