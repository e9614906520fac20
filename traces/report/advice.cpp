// Advice as paragraphs for a terminal, JSON and CSV.
#include "traces/analysis/advice/advice.h"

#include <algorithm>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "traces/report/print.h"
#include "traces/report/text_table.h"

namespace shardscope::traces::report {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostWidth = 100, kIndent = 12;

// "  label     text", with the text wrapped at words and indented.
std::string labelled(std::string_view label, const std::string& text, std::size_t width) {
    if (text.empty()) return {};
    const std::size_t room = std::max(std::min(width, kMostWidth), 2 * kIndent) - kIndent;
    std::string result;
    for (const std::string& line : broken_at_blanks(printable(text), room)) {
        result += fmt::format("  {:<{}}{}\n", result.empty() ? label : std::string_view(), kIndent - 2, line);
    }
    return result;
}

std::string table_text(const analysis::AdviceReport& report, std::size_t width) {
    std::string notes;
    for (const std::string& note : report.notes) {
        for (const std::string& line : broken_at_blanks(note, std::min(width, kMostWidth)))
            notes += line + "\n";
    }
    if (report.findings.empty()) {
        return fmt::format("No advice: none of {} rules found its evidence in this trace.\n{}", report.rules,
                           notes);
    }
    std::string text;
    std::size_t number = 0;
    for (const analysis::Finding& finding : report.findings) {
        text += fmt::format("{}. {} [{}]\n", ++number, finding.title, finding.id);
        text += labelled("Found", finding.what, width);
        text += labelled("Change", finding.change, width);
        text += labelled("Job file", finding.job_setting, width);
        text += labelled("PyTorch", finding.pytorch, width);
        text += labelled("Expected", finding.expected, width);
        text += "\n";
    }
    return text + notes +
           fmt::format("{} of {} rules found evidence; largest gain first.\n", report.findings.size(),
                       report.rules);
}

std::string json_text(const analysis::AdviceReport& report) {
    Json findings = Json::array();
    for (const analysis::Finding& finding : report.findings) {
        Json json = json_row(analysis::finding_fields(), finding);
        json["figures"] = json_figures(finding.figures);
        findings.push_back(std::move(json));
    }
    return json_line({{"rules", report.rules}, {"findings", std::move(findings)}, {"notes", report.notes}});
}

std::string csv_text(const analysis::AdviceReport& report) {
    return csv_of(result_table(analysis::finding_fields(), report.findings));
}

}  // namespace

Json json_figures(const std::vector<analysis::AdviceFigure>& figures) {
    Json all = Json::array();
    for (const analysis::AdviceFigure& figure : figures)
        all.push_back({{"name", figure.name}, {"value", figure.value}, {"unit", figure.unit}});
    return all;
}

std::string render(const analysis::AdviceReport& result, Format format, std::size_t width) {
    return render_as(result, format, width, table_text, json_text, csv_text);
}

}  // namespace shardscope::traces::report
