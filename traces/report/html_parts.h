// What the HTML report is made of: escaped text, tables, bars, and the sections, each from the result of one
// analysis. Internal to traces/report.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "traces/analysis/base/result_table.h"
#include "traces/report/html_report.h"

namespace shardscope::traces {

// Text of a trace as HTML: valid UTF-8, without control characters, nothing in it markup.
std::string html_escaped(std::string_view text);

// What a report must not tell.
class Redactor {
  public:
    Redactor(bool on, std::vector<std::string> hosts) : on_(on), hosts_(std::move(hosts)) {}

    bool on() const { return on_; }
    // The text, escaped; redacted also without names of machines and paths.
    std::string text(std::string_view text) const;
    // Whether a value of the configuration may be shown.
    bool shows(std::string_view key, std::string_view value) const;

  private:
    bool on_;
    std::vector<std::string> hosts_;
};

// A table whose first column is text and whose others are numbers, in a frame that scrolls sideways.
class HtmlTable {
  public:
    // Cells are HTML. `text_columns`: so many columns, from the first, are text.
    HtmlTable(std::vector<std::string> header, std::size_t text_columns = 1);
    // The columns of a result table; of its first ones, those that are texts.
    explicit HtmlTable(const ResultTable& table);
    void row(const std::vector<std::string>& cells, std::string_view row_class = {});
    void rows(const ResultTable& table, const Redactor& redact);
    std::string html() const;
    bool empty() const { return rows_.empty(); }

  private:
    std::vector<std::string> header_;
    std::size_t text_columns_;
    std::string rows_;
};

std::string html_of(const ResultTable& table, const Redactor& redact);

struct BarPart {
    std::string label;  // HTML
    double share = 0;   // 0 to 1 of the bar
    int colour = 0;     // 0 to 7
};
// A bar of coloured parts; each tells its label when it is pointed at.
std::string stacked_bar(const std::vector<BarPart>& parts, std::string_view label);
// The colours' names, as a list.
std::string legend(const std::vector<std::pair<std::string, int>>& entries);
// A bar within a table's cell, `share` of it filled.
std::string cell_bar(double share, int colour);

std::string section(std::string_view id, std::string_view title, std::string_view content);
// `content` that is shown on demand.
std::string folded(std::string_view title, std::string_view content);

std::string html_cards(const ReportedRun& run);
std::string html_advice(const ReportedRun& run, const Redactor& redact);
std::string html_summary(const ReportedRun& run);
std::string html_memory(const ReportedRun& run, const Redactor& redact);
std::string html_collectives(const ReportedRun& run, const Redactor& redact);
std::string html_units(const ReportedRun& run, const Redactor& redact);
std::string html_modules(const ReportedRun& run, const Redactor& redact);
std::string html_configuration(const ReportedRun& run, const Redactor& redact);
std::string html_comparison(const Comparison& comparison, const std::vector<ReportedRun>& runs,
                            const Redactor& redact);
// A table for each kind of part that any run has: those that differ most, each run's figure and its
// difference from the first's.
std::string html_compared_parts(const std::vector<PartsComparison>& comparisons,
                                const std::vector<ReportedRun>& runs, const Redactor& redact);

// The memory curve of one rank, folded to the picture's pixels: each column stands at the state with the
// largest total in its time, and a line shows the smallest.
std::string memory_curve_svg(const std::vector<MemoryPoint>& curve, const RankMemory& rank, int width,
                             int height);

}  // namespace shardscope::traces
