// See match.h.
#include "viewer/script/match.h"

#include <cctype>
#include <cmath>
#include <regex>

#include <fmt/core.h>

#include "traces/schema/text.h"

namespace shardscope::viewer::script {
namespace {

std::optional<double> parse_signed(std::string_view text) {
    return parse_number(text.starts_with('+') ? text.substr(1) : text);
}

std::string about(const Expect& expected, const std::string& shown) {
    const auto want = parse_figure(expected.text), have = parse_figure(shown);
    if (!have) return fmt::format("expected about {}, \"{}\" is not a number", expected.text, shown);
    if (!want->unit.empty() && want->unit != have->unit) {
        return fmt::format("expected {} in {}, it shows \"{}\"", expected.text, want->unit, shown);
    }
    const double off = std::abs(have->value - want->value);
    const double allowed = parse_tolerance(expected.tolerance, want->value).value_or(0);
    // A tolerance of one unit in the last place must not fail because of rounding in the subtraction.
    if (off <= allowed * (1 + 1e-9) + 1e-12 * std::abs(want->value)) return "";
    return fmt::format("expected {} within {}, it shows \"{}\"", expected.text, expected.tolerance, shown);
}

}  // namespace

std::optional<double> parse_number(std::string_view text) {
    const auto value = traces::schema::number_of<double>(text);
    return value && std::isfinite(*value) ? value : std::nullopt;
}

std::optional<Figure> parse_figure(const std::string& text) {
    std::string digits;
    std::size_t at = 0;
    for (; at < text.size(); ++at) {
        const char c = text[at];
        if (c == ',' && !digits.empty()) continue;  // separates thousands
        const bool exponent =
            (c == 'e' || c == 'E') && !digits.empty() && at + 1 < text.size() &&
            (std::isdigit(static_cast<unsigned char>(text[at + 1])) != 0 || text[at + 1] == '-');
        const bool sign =
            (c == '-' || c == '+') && (digits.empty() || digits.back() == 'e' || digits.back() == 'E');
        if (std::isdigit(static_cast<unsigned char>(c)) == 0 && c != '.' && !exponent && !sign) break;
        digits += c;
    }
    const auto value = parse_signed(digits);
    if (!value) return std::nullopt;
    while (at < text.size() && text[at] == ' ') ++at;
    return Figure{*value, text.substr(at)};
}

std::optional<double> parse_tolerance(const std::string& text, double expected) {
    const bool share = text.ends_with('%');
    const auto value = parse_signed(std::string_view(text).substr(0, text.size() - (share ? 1 : 0)));
    if (!value || *value < 0) return std::nullopt;
    return share ? std::abs(expected) * *value / 100 : *value;
}

std::string mismatch(const Expect& expected, const std::optional<std::string>& shown) {
    if (expected.test == Test::absent)
        return shown ? fmt::format("expected that it is not shown, it shows \"{}\"", *shown) : "";
    if (!shown) return "there is no such item";
    switch (expected.test) {
        case Test::is:
            return *shown == expected.text
                       ? ""
                       : fmt::format("expected \"{}\", it shows \"{}\"", expected.text, *shown);
        case Test::contains:
            return shown->find(expected.text) != std::string::npos
                       ? ""
                       : fmt::format("expected a text that contains \"{}\", it shows \"{}\"", expected.text,
                                     *shown);
        case Test::matches:
            return std::regex_match(*shown, std::regex(expected.text))
                       ? ""
                       : fmt::format("expected a text like {}, it shows \"{}\"", expected.text, *shown);
        case Test::about:
            return about(expected, *shown);
        case Test::shown:
        case Test::absent:
            break;
    }
    return "";
}

}  // namespace shardscope::viewer::script
