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

namespace shardscope::traces::report {

// Text of a trace as HTML: valid UTF-8, without control characters and without markup.
std::string html_escaped(std::string_view text);

// The name of a run: the file without its folder, or the folder if the run is one.
std::string run_name(const std::string& path);
// "rank 0, steps 1 to 2, 10.000 to 20.000 ms"; empty: all of it.
std::string part_text(const store::Trace& trace, const analysis::Selection& selection);

// Removes what a report must not disclose.
class Redactor {
  public:
    Redactor(bool on, std::vector<std::string> hosts) : on_(on), hosts_(std::move(hosts)) {}

    bool on() const { return on_; }
    // The text, escaped; if redacted, also without names of machines and paths.
    std::string text(std::string_view text) const;
    // The same as text that is not HTML.
    std::string plain(std::string_view text) const;
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
    // Takes the columns of a result table; its leading text columns become the text columns.
    explicit HtmlTable(const analysis::ResultTable& table);
    void row(const std::vector<std::string>& cells, std::string_view row_class = {});
    void rows(const analysis::ResultTable& table, const Redactor& redact);
    std::string html() const;
    bool empty() const { return rows_.empty(); }

  private:
    std::vector<std::string> header_;
    std::size_t text_columns_;
    std::string rows_;
};

std::string html_of(const analysis::ResultTable& table, const Redactor& redact);

struct BarPart {
    std::string label;  // HTML
    double share = 0;   // fraction of the bar, 0 to 1
    int colour = 0;     // 0 to 7
};
// A bar of coloured parts; each shows its label as a tooltip.
std::string stacked_bar(const std::vector<BarPart>& parts, std::string_view label);
// A list of names, each with its colour.
std::string legend(const std::vector<std::pair<std::string, int>>& entries);
// A bar in a table's cell, of which `share` is filled.
std::string cell_bar(double share, int colour);

// A whole page. `title`, `body` and `style`: HTML and CSS; `redacted`: says so at its end.
std::string html_page(std::string_view title, std::string_view body, bool redacted,
                      std::string_view style = {});
std::string section(std::string_view id, std::string_view title, std::string_view content);
// `content` that opens on a click.
std::string folded(std::string_view title, std::string_view content);

// A list of questions, each a link to the section of its evidence if that is one of `sections`.
std::string html_answers(const std::vector<analysis::Answer>& answers, const Redactor& redact,
                         const std::string& prefix, const std::vector<std::string>& sections);
// A figure in a frame; `value` and `what` are HTML.
std::string html_card(const std::string& value, std::string_view what);
std::string html_cards(const ReportedRun& run);
std::string html_findings(const std::vector<analysis::Finding>& findings, const Redactor& redact);
std::string html_advice(const ReportedRun& run, const Redactor& redact);
std::string html_summary(const ReportedRun& run);
std::string html_memory(const ReportedRun& run, const Redactor& redact);
std::string html_utilization(const ReportedRun& run, const Redactor& redact);
std::string html_training(const ReportedRun& run, const Redactor& redact);
std::string html_collectives(const ReportedRun& run, const Redactor& redact);
// The curves of the bus bandwidth over size; empty if no collective's is known.
std::string html_bus_bandwidth(const ReportedRun& run, const Redactor& redact);
std::string html_units(const ReportedRun& run, const Redactor& redact);
std::string html_pipeline(const ReportedRun& run, const Redactor& redact);
std::string html_topology(const ReportedRun& run, const Redactor& redact);
std::string html_modules(const ReportedRun& run, const Redactor& redact);
std::string html_configuration(const ReportedRun& run, const Redactor& redact);
std::string html_comparison(const analysis::Comparison& comparison, const std::vector<ReportedRun>& runs,
                            const Redactor& redact);
// A table for each kind of part that occurs in any run: the parts that differ most, with each run's figure
// and its difference from the first's.
std::string html_compared_parts(const std::vector<analysis::PartsComparison>& comparisons,
                                const std::vector<ReportedRun>& runs, const Redactor& redact);

// The memory curve of one rank, folded to the picture's pixels: each column shows the state with the largest
// total in its time, and a line shows the smallest.
std::string memory_curve_svg(const std::vector<analysis::MemoryPoint>& curve,
                             const analysis::RankMemory& rank, int width, int height);

// Bus bandwidth over size; empty without a curve.
std::string bus_bandwidth_svg(const analysis::BusBandwidthReport& report, int width, int height);

}  // namespace shardscope::traces::report
