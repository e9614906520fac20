// A value of a result or a query.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

namespace shardscope::traces {

// A value as it is computed or read, not yet formatted: nothing (unknown, NULL), a yes or no, a whole number,
// a real number or text. Text need not be valid UTF-8.
using Cell = std::variant<std::monostate, bool, std::int64_t, double, std::string>;

}  // namespace shardscope::traces
