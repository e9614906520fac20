// See pickle_values.h.
#include "traces/import/pickle/pickle_values.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <system_error>

#include "traces/schema/text.h"

namespace shardscope::traces::importer {
namespace {

void append_utf8(std::string& text, std::uint32_t c) {
    if (c < 0x80) {
        text += static_cast<char>(c);
    } else if (c < 0x800) {
        text += static_cast<char>(0xC0 | c >> 6);
        text += static_cast<char>(0x80 | (c & 0x3F));
    } else if (c < 0x10000) {
        text += static_cast<char>(0xE0 | c >> 12);
        text += static_cast<char>(0x80 | (c >> 6 & 0x3F));
        text += static_cast<char>(0x80 | (c & 0x3F));
    } else {
        text += static_cast<char>(0xF0 | (c >> 18 & 0x07));
        text += static_cast<char>(0x80 | (c >> 12 & 0x3F));
        text += static_cast<char>(0x80 | (c >> 6 & 0x3F));
        text += static_cast<char>(0x80 | (c & 0x3F));
    }
}

// The number of `digits` hexadecimal digits at `at`, empty if there are fewer.
std::optional<std::uint32_t> hexadecimal(std::string_view text, std::size_t at, std::size_t digits) {
    if (at + digits > text.size()) return std::nullopt;
    std::uint32_t value = 0;
    const char* end = text.data() + at + digits;
    const auto [stop, fault] = std::from_chars(text.data() + at, end, value, 16);
    return fault == std::errc() && stop == end ? std::optional(value) : std::nullopt;
}

}  // namespace

std::string unicode_line(std::string_view line) {
    std::string text;
    for (std::size_t i = 0; i < line.size(); ++i) {
        if (line[i] == '\\' && i + 1 < line.size() && (line[i + 1] == 'u' || line[i + 1] == 'U')) {
            const std::size_t digits = line[i + 1] == 'u' ? 4 : 8;
            if (const auto c = hexadecimal(line, i + 2, digits)) {
                append_utf8(text, *c);
                i += 1 + digits;
                continue;
            }
        }
        append_utf8(text, static_cast<unsigned char>(line[i]));
    }
    return text;
}

std::optional<std::string> string_line(std::string_view line) {
    if (line.size() < 2 || (line.front() != '\'' && line.front() != '"') || line.back() != line.front()) {
        return std::nullopt;
    }
    line = line.substr(1, line.size() - 2);
    constexpr std::string_view kEscapes = "abtnvfr\\'\"", kMeanings = "\a\b\t\n\v\f\r\\'\"";
    std::string text;
    for (std::size_t i = 0; i < line.size(); ++i) {
        if (line[i] != '\\' || i + 1 == line.size()) {
            text += line[i];
            continue;
        }
        ++i;
        if (const std::size_t which = kEscapes.find(line[i]); which != std::string_view::npos) {
            text += kMeanings[which];
        } else if (const auto c = line[i] == 'x' ? hexadecimal(line, i + 1, 2) : std::nullopt) {
            text += static_cast<char>(*c);
            i += 2;
        } else {
            text += '\\';
            text += line[i];
        }
    }
    return text;
}

ValueRef add_long_integer(ValueTree& tree, std::string_view digits) {
    if (digits.empty()) return tree.add_integer(0);
    const bool negative = (digits.back() & 0x80) != 0;
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(digits[i]); };
    std::size_t used = digits.size();
    while (used > 1 && byte(used - 1) == (negative ? 0xFF : 0x00)) --used;
    std::uint64_t low = negative ? ~std::uint64_t{0} : 0;
    for (std::size_t i = std::min<std::size_t>(used, 8); i-- > 0;) low = low << 8 | byte(i);
    const bool sign = (low >> 63) != 0;
    if (used <= 8 && sign == negative) return tree.add_integer(static_cast<std::int64_t>(low));
    if (used <= 8 && !negative) return tree.add_unsigned(low);
    double value = 0;
    for (std::size_t i = used; i-- > 0;) value = value * 256.0 + byte(i);
    if (negative) value -= std::pow(256.0, static_cast<double>(used));
    return tree.add_huge_integer(value);
}

std::optional<ValueRef> add_integer_line(ValueTree& tree, std::string_view line) {
    if (line.ends_with('L')) line.remove_suffix(1);
    if (line == "00") return tree.add_boolean(false);
    if (line == "01") return tree.add_boolean(true);
    if (const auto value = schema::number_of<std::int64_t>(line)) return tree.add_integer(*value);
    if (const auto large = schema::number_of<std::uint64_t>(line)) return tree.add_unsigned(*large);
    // A number that is too large for a double counts as 0.
    double nearly = 0;
    const char* end = line.data() + line.size();
    const auto [stop, fault] = std::from_chars(line.data(), end, nearly, std::chars_format::fixed);
    if (stop != end || line.empty()) return std::nullopt;
    return tree.add_huge_integer(nearly);
}

std::optional<double> real_line(std::string_view line) {
    double value = 0;
    const char* end = line.data() + line.size();
    const auto [stop, fault] = std::from_chars(line.data(), end, value);
    if (fault == std::errc::invalid_argument || stop != end) return std::nullopt;
    return value;
}

}  // namespace shardscope::traces::importer
