// Functions that SQL on a trace may call beside SQLite's own. NULL in gives NULL out.
//
//   demangle(text)           a C++ symbol as its source spells it; other text as it is
//   pretty_time(ns)          "1.234 ms"
//   pretty_bytes(n)          "1.50 MiB" (2^20 bytes)
//   overlap(start,end,a,b)   length of what [start, end) and [a, b) have in common, at least 0
//   percentile(value, p)     aggregate: the value below which p percent (0 to 100) lie, linear between the
//   two
//                            nearest (as numpy's default, "linear"); NULLs are left out
#pragma once

#include <string>

namespace shardscope::traces {

class Database;

void add_sql_functions(Database& database);

// What two of them give, for other callers.
std::string pretty_time(double ns);
std::string pretty_bytes(double bytes);

}  // namespace shardscope::traces
