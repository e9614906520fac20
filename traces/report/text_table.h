// Aligned text for terminals: columns by display width (wide and combining characters count correctly),
// numbers right-aligned, no trailing blanks. Cells are made safe: invalid UTF-8 and control characters never
// reach the terminal. A table that is too wide gets headers of several lines, then shortened texts, then
// columns that continue below.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "traces/store/grouped.h"

namespace shardscope::traces::report {

inline constexpr std::size_t kAnyWidth = static_cast<std::size_t>(-1);

enum class Align { left, right };

// The number of terminal columns that a valid UTF-8 text takes.
std::size_t display_width(std::string_view text);

// Valid UTF-8 in one line: newline and tab as \n and \t, other control characters and invalid bytes as
// U+FFFD.
std::string printable(std::string_view text);

// Printable and at most `width` columns: a longer text loses its middle, which is replaced by "…".
std::string shortened(std::string_view text, std::size_t width);

// `text` in lines of at most `width`, broken at blanks; a longer word has a line of its own.
std::vector<std::string> broken_at_blanks(std::string_view text, std::size_t width);
// A paragraph in lines of at most `width`, broken at blanks, each ending with a newline.
std::string paragraph(std::string_view text, std::size_t width);

class TextTable {
  public:
    // `keys`: how many columns, from the left, identify a row. They are repeated if the table is too wide and
    // continues below.
    explicit TextTable(std::vector<Align> columns, std::size_t keys = 1)
        : columns_(std::move(columns)), keys_(keys) {}

    void header(std::vector<std::string> cells);  // underlined when printed
    void row(std::vector<std::string> cells);     // missing cells at the end are empty
    void rule();                                  // a line across the table
    // Ends with a newline; "" without any row or header. Wider than `width` only if it cannot be narrower:
    // texts (left-aligned columns) are shortened to fit, numbers never.
    std::string text(std::size_t width = kAnyWidth) const;

  private:
    enum class Kind { header, row, rule };
    struct Line {
        std::vector<std::string> cells;
        Kind kind = Kind::row;
    };
    void print(const Line& line, const std::vector<std::size_t>& columns,
               const std::vector<std::size_t>& widths, std::string& out) const;

    std::vector<Align> columns_;
    std::size_t keys_;
    std::vector<Line> lines_;
};

}  // namespace shardscope::traces::report
