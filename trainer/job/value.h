// A key's value before it is stored in the job: the few types that TOML and the command line share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace shardscope::trainer::job {

enum class ValueType : std::uint8_t { boolean, integer, number, text, numbers };

// In the order of ValueType.
using Value = std::variant<bool, std::int64_t, double, std::string, std::vector<double>>;

inline ValueType type_of(const Value& value) {
    return static_cast<ValueType>(value.index());
}

// The type's name in a sentence: "an integer".
std::string_view name(ValueType type);

// Parses a value from a command line as `type`; nothing if it is not of that type.
std::optional<Value> parse_value(ValueType type, std::string_view text);

// The value as a job file writes it, but text without quotes.
std::string to_text(const Value& value);

// The text in quotes, as a TOML basic string.
std::string toml_text(std::string_view text);

}  // namespace shardscope::trainer::job
