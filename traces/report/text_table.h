// Aligned text for terminals: columns by display width (wide and combining characters counted right), numbers
// to the right, no trailing blanks. Cells are made safe: invalid UTF-8 and control characters never reach the
// terminal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shardscope::traces {

enum class Align { left, right };

// Terminal columns that a valid UTF-8 text takes.
std::size_t display_width(std::string_view text);

// Valid UTF-8 in one line: newline and tab as \n and \t, other control characters and invalid bytes as
// U+FFFD.
std::string printable(std::string_view text);

// Printable and at most `width` columns: what is too much goes from the middle, for "…".
std::string shortened(std::string_view text, std::size_t width);

// 1234567 -> "1,234,567".
std::string grouped(std::int64_t value);
// Rounded half away from zero to `decimals`: 1234.56 -> "1,234.6". Not a number: "-".
std::string grouped(double value, int decimals);

class TextTable {
  public:
    explicit TextTable(std::vector<Align> columns) : columns_(std::move(columns)) {}

    void header(std::vector<std::string> cells);  // underlined when printed
    void row(std::vector<std::string> cells);     // missing cells at the end are empty
    void rule();                                  // a line across the table
    std::string text() const;                     // ends with a newline; "" without any row or header

  private:
    struct Line {
        std::vector<std::string> cells;
        bool rule = false;
    };
    std::vector<Align> columns_;
    std::vector<Line> lines_;
};

}  // namespace shardscope::traces
