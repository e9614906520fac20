// Functions that SQL on a trace may call besides SQLite's own. NULL as an argument gives NULL.
//
//   demangle(text)           a C++ symbol as its source spells it; other text unchanged
//   pretty_time(ns)          "1.234 ms"
//   pretty_bytes(n)          "1.50 MiB" (2^20 bytes)
//   overlap(start,end,a,b)   length of the intersection of [start, end) and [a, b), at least 0
//   percentile(value, p)     aggregate: the value below which p percent (0 to 100) lie, interpolated
//                            between the two nearest (as numpy's default, "linear"); NULLs are ignored
#pragma once

#include <string>

namespace shardscope::traces::store {

class Database;

void add_sql_functions(Database& database);

// Two of these functions for other callers.
std::string pretty_time(double ns);
std::string pretty_bytes(double bytes);

}  // namespace shardscope::traces::store
