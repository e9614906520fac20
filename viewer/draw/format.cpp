// See format.h.
#include "viewer/draw/format.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include <fmt/core.h>
#include <utf8proc.h>

#include "traces/store/grouped.h"

namespace shardscope::viewer::draw {
namespace {

bool only_zeros(std::string_view digits) {
    return digits.find_first_not_of("0.") == std::string_view::npos;
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
    return traces::store::grouped(value);
}

std::string format_decimal(double value, int decimals) {
    return std::isfinite(value) ? traces::store::grouped(value, decimals) : "n/a";
}

std::string format_mb(std::int64_t bytes, bool with_unit) {
    const std::string number = format_decimal(static_cast<double>(bytes) / (1 << 20), 2);
    return with_unit ? number + " MiB" : number;
}

std::string format_size(std::int64_t bytes) {
    static constexpr std::array<std::string_view, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
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

std::string format_amount(double value, std::string_view unit) {
    constexpr double kMost = 9e18;  // beyond it, no number of bytes
    if (unit == "bytes" && std::abs(value) < kMost)
        return format_size(static_cast<std::int64_t>(std::llround(value)));
    if (unit == "bytes/s" && std::isfinite(value)) {
        static constexpr std::array<std::string_view, 5> kUnits = {"B/s", "kB/s", "MB/s", "GB/s", "TB/s"};
        std::size_t power = 0;
        for (; std::abs(value) >= 999.995 && power + 1 < kUnits.size(); ++power) value /= 1000;
        return fmt::format("{} {}", format_decimal(value, power == 0 ? 0 : 2), kUnits[power]);
    }
    if (unit == "ns" && std::isfinite(value)) return format_duration(value);
    const bool whole = std::abs(value) < kMost && value == std::trunc(value);
    std::string text = format_decimal(value, whole ? 0 : 2);
    if (!unit.empty()) text += ' ' + std::string(unit);
    return text;
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

std::string lines_of(std::string_view text, const std::function<bool(std::string_view)>& fits) {
    std::string lines(text);
    std::size_t begin = 0, last = 0;  // of the line, and the last blank in it at which it may end
    for (std::size_t i = 0; i <= text.size(); ++i) {
        const bool ends = i == text.size() || text[i] == '\n';
        if (!ends && text[i] != ' ') continue;
        if (!ends && i > 0 && i - 1 == last) {  // a second blank ends the line as well
            last = i;
            continue;
        }
        if (last > begin && !fits(text.substr(begin, i - begin))) {
            lines[last] = '\n';
            begin = last + 1;
        }
        // A number stays with its unit; two numbers may part.
        const auto is_digit = [&](std::size_t at) {
            return at < text.size() && text[at] >= '0' && text[at] <= '9';
        };
        const bool number = i > 0 && is_digit(i - 1) && !is_digit(i + 1);
        if (ends) {
            begin = i + 1;
        } else if (!number) {
            last = i;
        }
    }
    return lines;
}

std::string spaced(std::string_view name) {
    std::string text(name);
    std::replace(text.begin(), text.end(), '_', ' ');
    return text;
}

std::size_t first_character(std::string_view text) {
    if (text.empty()) return 0;
    utf8proc_int32_t character = 0;
    const auto bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
    return static_cast<std::size_t>(std::max<utf8proc_ssize_t>(
        1, utf8proc_iterate(bytes, static_cast<utf8proc_ssize_t>(text.size()), &character)));
}

std::size_t last_character(std::string_view text) {
    for (std::size_t length = std::min<std::size_t>(4, text.size()); length > 1; --length)
        if (first_character(text.substr(text.size() - length)) == length) return length;
    return text.empty() ? 0 : 1;
}

bool inside_character(std::string_view text, std::size_t at) {
    return at < text.size() && utf8proc_utf8class[static_cast<unsigned char>(text[at])] == 0;
}

std::string shorten_middle(const std::string& text, std::size_t limit) {
    static constexpr std::string_view kDots = "...";
    if (text.size() <= limit) return text;
    const bool dots = limit > kDots.size();
    const std::size_t keep = dots ? limit - kDots.size() : limit;
    std::size_t head = dots ? keep / 2 : keep, tail = text.size() - (keep - head);
    while (head > 0 && inside_character(text, head)) --head;
    while (inside_character(text, tail)) ++tail;
    return text.substr(0, head) + std::string(dots ? kDots : "") + text.substr(tail);
}

}  // namespace shardscope::viewer::draw
