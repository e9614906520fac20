// Fits a table into a given width: headers in several lines, then shorter texts, then columns that continue
// below. Widths in terminal columns. Internal to traces/report.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace shardscope::traces {

inline constexpr std::size_t kColumnGap = 2;   // between two columns
inline constexpr std::size_t kLeastText = 20;  // a shortened text keeps at least this much

struct ColumnNeeds {
    std::size_t cells = 0;   // the widest cell below the header
    std::size_t header = 0;  // the header in one line
    std::size_t word = 0;    // its longest word: the minimum width of a folded header
    bool text = false;       // cells may be shortened; numbers may not
};

struct TableLayout {
    std::vector<std::size_t> widths;  // width of each column
    // The columns of each block; blocks are printed one below the other.
    std::vector<std::vector<std::size_t>> blocks;
};

// Headers stay in one line if that fits. The first `keys` columns identify a row and begin every block. A
// table that cannot be made that narrow (a key or one number alone is wider) is as narrow as possible.
TableLayout lay_out(const std::vector<ColumnNeeds>& columns, std::size_t keys, std::size_t width);

// `text` in lines of at most `width`, broken at blanks; a longer word gets a line of its own.
std::vector<std::string> broken_at_blanks(std::string_view text, std::size_t width);

}  // namespace shardscope::traces
