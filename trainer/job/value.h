// A key's value before it is stored in the job: the few types that TOML and the command line share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace shardscope::trainer {

enum class ValueType : std::uint8_t { boolean, integer, number, text, numbers };

// In the order of ValueType.
using Value = std::variant<bool, std::int64_t, double, std::string, std::vector<double>>;

inline ValueType type_of(const Value& value) {
    return static_cast<ValueType>(value.index());
}

// The type's name in a sentence: "an integer".
std::string_view name(ValueType type);

// What was typed on a command line, read as `type`; nothing if it is not one.
std::optional<Value> parse_value(ValueType type, std::string_view text);

// The value as written in a job file; texts without quotes.
std::string to_text(const Value& value);

// A text with quotes, as TOML requires (a basic string).
std::string toml_text(std::string_view text);

}  // namespace shardscope::trainer
