// Values as text and back.
#include "trainer/job/value.h"

#include <array>

#include <fmt/core.h>

#include "traces/schema/joined.h"
#include "traces/schema/text.h"

namespace shardscope::trainer::job {

namespace {

template <class Number>
std::optional<Number> whole_number(std::string_view text) {
    if (text.starts_with('+')) text.remove_prefix(1);
    return traces::schema::number_of<Number>(text);
}

std::string_view trim(std::string_view text) {
    constexpr std::string_view kBlanks = " \t";
    const auto first = text.find_first_not_of(kBlanks);
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

// "0.9,0.999", with or without brackets.
std::optional<std::vector<double>> parse_numbers(std::string_view text) {
    if (text.starts_with('[') && text.ends_with(']') && text.size() >= 2)
        text = text.substr(1, text.size() - 2);
    std::vector<double> numbers;
    if (trim(text).empty()) return numbers;
    for (;;) {
        const auto comma = text.find(',');
        const auto number = whole_number<double>(trim(text.substr(0, comma)));
        if (!number) return std::nullopt;
        numbers.push_back(*number);
        if (comma == std::string_view::npos) return numbers;
        text.remove_prefix(comma + 1);
    }
}

}  // namespace

std::string_view name(ValueType type) {
    constexpr std::array<std::string_view, 5> kNames = {"true or false", "an integer", "a number", "a text",
                                                        "a list of numbers"};
    return kNames[static_cast<std::size_t>(type)];
}

std::optional<Value> parse_value(ValueType type, std::string_view text) {
    const std::string_view bare = trim(text);
    switch (type) {
        case ValueType::boolean:
            if (bare == "true" || bare == "1" || bare == "yes" || bare == "on") return true;
            if (bare == "false" || bare == "0" || bare == "no" || bare == "off") return false;
            return std::nullopt;
        case ValueType::integer:
            if (const auto number = whole_number<std::int64_t>(bare)) return *number;
            return std::nullopt;
        case ValueType::number:
            if (const auto number = whole_number<double>(bare)) return *number;
            return std::nullopt;
        case ValueType::text:
            return std::string(text);
        case ValueType::numbers:
            if (auto numbers = parse_numbers(bare)) return std::move(*numbers);
            return std::nullopt;
    }
    return std::nullopt;
}

std::string to_text(const Value& value) {
    switch (type_of(value)) {
        case ValueType::boolean:
            return std::get<bool>(value) ? "true" : "false";
        case ValueType::integer:
            return fmt::format("{}", std::get<std::int64_t>(value));
        case ValueType::number:
            return fmt::format("{}", std::get<double>(value));
        case ValueType::text:
            return std::get<std::string>(value);
        case ValueType::numbers:
            return fmt::format("[{}]", traces::schema::joined(std::get<std::vector<double>>(value), ", "));
    }
    return {};
}

std::string toml_text(std::string_view text) {
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') out += '\\';
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
            out += fmt::format("\\u{:04X}", static_cast<unsigned>(static_cast<unsigned char>(c)));
        } else {
            out += c;
        }
    }
    return out + "\"";
}

}  // namespace shardscope::trainer::job
