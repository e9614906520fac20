// How pickles write texts and numbers where they are not just bytes: the lines of protocol 0 and whole
// numbers of any length. Internal to the library. Source: Python's documentation of pickletools.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "traces/import/json/value_tree.h"

namespace shardscope::traces::importer {

// A line of UNICODE: Latin-1 with \uXXXX and \UXXXXXXXX.
std::string unicode_line(std::string_view line);

// A line of STRING: a quoted text with Python's escapes. Empty if it is not quoted.
std::optional<std::string> string_line(std::string_view line);

// The number of LONG1 and LONG4: two's complement, little-endian.
ValueRef add_long_integer(ValueTree& tree, std::string_view digits);

// Lines of INT, LONG ("12L"; "00" and "01" are booleans) and FLOAT. Empty if it is not a number.
std::optional<ValueRef> add_integer_line(ValueTree& tree, std::string_view line);
std::optional<double> real_line(std::string_view line);

}  // namespace shardscope::traces::importer
