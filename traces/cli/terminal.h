// How wide the tables on standard output may be.
#pragma once

#include <cstddef>

namespace shardscope::traces {

// Columns: those that COLUMNS in the environment says, else those of the terminal that standard output is,
// else kTableWidth (a file, a pipe). From 40 to 1000.
std::size_t table_width();

}  // namespace shardscope::traces
