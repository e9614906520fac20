// A value of a result or a query.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

namespace shardscope::traces::store {

// An unformatted value: nothing (unknown, NULL), a boolean, an integer, a real number or text. Text need not
// be valid UTF-8.
using Cell = std::variant<std::monostate, bool, std::int64_t, double, std::string>;

}  // namespace shardscope::traces::store
