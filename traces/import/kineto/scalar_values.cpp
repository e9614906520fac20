#include "traces/import/kineto/scalar_values.h"

#include <charconv>
#include <cmath>
#include <limits>

#include "traces/schema/text.h"

namespace shardscope::traces::importer {

namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

// The decimal number `text` times 10^shift, to the nearest whole number, ties away from zero.
std::optional<std::int64_t> scaled(std::string_view text, int shift) {
    std::size_t i = 0;
    bool negative = false;
    if (i < text.size() && (text[i] == '-' || text[i] == '+')) negative = text[i++] == '-';
    // All significant digits as one number, and its power of ten.
    std::uint64_t digits = 0;
    int power = 0;
    bool any = false, round_up = false, dropping = false, point = false;
    for (; i < text.size() && (is_digit(text[i]) || (text[i] == '.' && !point)); ++i) {
        if (text[i] == '.') {
            point = true;
            continue;
        }
        any = true;
        const auto digit = static_cast<unsigned>(text[i] - '0');
        if (!dropping && digits > (std::numeric_limits<std::uint64_t>::max() - digit) / 10) {
            dropping = true;
            round_up = digit >= 5;
        }
        if (!dropping) digits = digits * 10 + digit;
        // The digit was kept after the point, or dropped before it.
        if (point && !dropping) --power;
        if (!point && dropping) ++power;
    }
    if (!any) return std::nullopt;
    if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
        int exponent = 0;
        const std::size_t from = i + 1 < text.size() && text[i + 1] == '+' ? i + 2 : i + 1;
        const auto [end, error] = std::from_chars(text.data() + from, text.data() + text.size(), exponent);
        if (error != std::errc() || exponent < -400 || exponent > 400) return std::nullopt;
        i = static_cast<std::size_t>(end - text.data());
        power += exponent;
    }
    if (i != text.size()) return std::nullopt;
    if (dropping && round_up && digits < std::numeric_limits<std::uint64_t>::max()) ++digits;
    power += shift;
    for (; power > 0 && digits != 0; --power) {
        if (digits > static_cast<std::uint64_t>(kMost) / 10) return std::nullopt;
        digits *= 10;
    }
    if (power < 0) {
        unsigned last = 0;
        for (; power < 0 && (digits != 0 || last != 0); ++power) {
            last = static_cast<unsigned>(digits % 10);
            digits /= 10;
        }
        if (power == 0 && last >= 5) ++digits;
    }
    if (digits > static_cast<std::uint64_t>(kMost)) return std::nullopt;
    const auto value = static_cast<std::int64_t>(digits);
    return negative ? -value : value;
}

}  // namespace

std::optional<std::int64_t> parse_us(std::string_view text, Fraction fraction) {
    // The usual form: at most 18 digits, with a point and three digits, or without.
    std::int64_t whole = 0;
    std::size_t i = 0;
    while (i < text.size() && i < 18 && is_digit(text[i])) whole = whole * 10 + (text[i++] - '0');
    const bool fits = i > 0 && whole < kMost / 1000;
    if (fits && i == text.size()) return whole * 1000;
    if (fits && text[i] == '.' && text.size() == i + 4 && is_digit(text[i + 1]) && is_digit(text[i + 2]) &&
        is_digit(text[i + 3])) {
        return whole * 1000 + (text[i + 1] - '0') * 100 + (text[i + 2] - '0') * 10 + (text[i + 3] - '0');
    }
    const auto point = text.find('.');
    if (fraction == Fraction::nanoseconds && point != std::string_view::npos &&
        text.size() - point - 1 <= 3) {
        const auto us = scaled(text.substr(0, point), 3);
        const auto ns = scaled(text.substr(point + 1), 0);
        if (!us || !ns) return std::nullopt;
        const std::int64_t magnitude = std::abs(*us);
        if (magnitude > kMost - *ns) return std::nullopt;
        return text.front() == '-' ? -(magnitude + *ns) : magnitude + *ns;
    }
    return scaled(text, 3);
}

std::optional<std::int64_t> parse_integer(std::string_view text) {
    if (const auto value = schema::number_of<std::int64_t>(text)) return value;
    const auto rounded = scaled(text, 0);
    if (!rounded || *rounded > kMost / 10 || *rounded < -kMost / 10) return rounded;
    // Not a fraction: 7.0 and 7e3 are whole, 7.5 is not.
    return scaled(text, 1) == *rounded * 10 ? rounded : std::nullopt;
}

int int_or(JsonScalar value, int otherwise) {
    const std::int64_t number = integer_or(value, otherwise);
    return number >= std::numeric_limits<int>::min() && number <= std::numeric_limits<int>::max()
               ? static_cast<int>(number)
               : otherwise;
}

std::uint64_t address_of(JsonScalar value) {
    std::string_view text = value.text;
    std::uint64_t number = 0;
    int base = 10;
    if (text.starts_with("0x")) {
        text.remove_prefix(2);
        base = 16;
    }
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
    if (error == std::errc() && end == text.data() + text.size()) return number;
    return static_cast<std::uint64_t>(integer_or(value, 0));
}

std::optional<double> parse_double(std::string_view text) {
    const auto value = schema::number_of<double>(text);
    return value && std::isfinite(*value) ? value : std::nullopt;
}

std::int64_t plain_id(JsonScalar value) {
    if (value.kind != JsonKind::number && value.kind != JsonKind::string) return 0;
    const auto number = parse_integer(value.text);
    if (number && *number >= 0 && *number < std::int64_t{1} << 32) return *number;
    if (value.text.empty()) return 0;
    std::uint64_t hash =
        schema::hash_of(value.text);  // mixed below, so that similar texts differ in all bits
    hash ^= hash >> 32;
    hash *= 0x9E3779B97F4A7C15;
    return static_cast<std::int64_t>(hash >> 3 | std::uint64_t{1} << 61) & 0x3FFFFFFFFFFFFFFF;
}

}  // namespace shardscope::traces::importer
