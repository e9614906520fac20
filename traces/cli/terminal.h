// The width of the tables on standard output.
#pragma once

#include <cstddef>

namespace shardscope::traces {

// The number of columns: from COLUMNS in the environment, else of the terminal that standard output is, else
// kTableWidth (a file, a pipe). From 40 to 1000.
std::size_t table_width();

}  // namespace shardscope::traces
