// The building blocks of the HTML report: escaped text, tables, bars. Internal to traces/report.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardscope::traces {

// Text of a trace as HTML: valid UTF-8, without control characters and without markup.
std::string html_escaped(std::string_view text);

// Removes what a report must not disclose.
class Redactor {
  public:
    Redactor(bool on, std::vector<std::string> hosts) : on_(on), hosts_(std::move(hosts)) {}

    bool on() const { return on_; }
    // The text, escaped; if redacted, also without names of machines and paths.
    std::string text(std::string_view text) const;
    // Whether a value of the configuration may be shown.
    bool shows(std::string_view key, std::string_view value) const;

  private:
    bool on_;
    std::vector<std::string> hosts_;
};

// A table whose first column is text and whose other columns are numbers, in a frame that scrolls
// horizontally.
class HtmlTable {
  public:
    // Cells are HTML. `text_columns`: the number of text columns, from the left.
    HtmlTable(std::vector<std::string> header, std::size_t text_columns = 1);
    void row(const std::vector<std::string>& cells, std::string_view row_class = {});
    std::string html() const;
    bool empty() const { return rows_.empty(); }

  private:
    std::vector<std::string> header_;
    std::size_t text_columns_;
    std::string rows_;
};

struct BarPart {
    std::string label;  // HTML
    double share = 0;   // fraction of the bar, 0 to 1
    int colour = 0;     // 0 to 7
};
// A bar of coloured parts; each shows its label as a tooltip.
std::string stacked_bar(const std::vector<BarPart>& parts, std::string_view label);
// The names of the colours, as a list.
std::string legend(const std::vector<std::pair<std::string, int>>& entries);
// A bar in a table's cell, of which `share` is filled.
std::string cell_bar(double share, int colour);

std::string section(std::string_view id, std::string_view title, std::string_view content);
// `content` that is shown on demand.
std::string folded(std::string_view title, std::string_view content);

}  // namespace shardscope::traces
