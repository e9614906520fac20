// The largest differences between several runs, part by part, in the HTML report.
#include <algorithm>

#include <fmt/core.h>

#include "traces/report/html_parts.h"
#include "traces/report/units.h"

namespace shardscope::traces {
namespace {

constexpr std::size_t kPartsOnPage = 15;  // parts of each kind

std::string_view title_of(CompareBy by, bool on_host) {
    switch (by) {
        case CompareBy::module:
            return on_host ? "Modules (host time of the module itself)"
                           : "Modules (device time launched in the module itself)";
        case CompareBy::kernel:
            return "Kernels";
        case CompareBy::collective:
            return "Collectives, by operation and unit";
        case CompareBy::unit:
            return "FSDP units, by phase";
        case CompareBy::operation:
            return on_host ? "Operators (host time of the operator itself)"
                           : "Operators (device time launched in the operator itself)";
    }
    return "";
}

std::string part_table(const PartsComparison& comparison, const std::vector<std::string>& names,
                       const Redactor& redact) {
    std::vector<std::string> header = {"Name"};
    for (std::size_t r = 0; r < names.size(); ++r) {
        header.push_back(names[r] + (comparison.whole.runs[r].stepped ? " (us/step)" : " (us)"));
        if (r > 0) header.emplace_back("against the first");
    }
    HtmlTable table(header);
    for (std::size_t p = 0; p < std::min(kPartsOnPage, comparison.parts.size()); ++p) {
        const ComparedPart& part = comparison.parts[p];
        const PartFigures& first = part.runs.front();
        std::vector<std::string> cells = {redact.text(part.name)};
        for (std::size_t r = 0; r < part.runs.size(); ++r) {
            const PartFigures& run = part.runs[r];
            cells.push_back(run.present ? us(run.us) : "-");
            if (r == 0) continue;
            cells.push_back(!run.present ? first.present ? "gone" : ""
                            : !first.present
                                ? "new"
                                : html_difference(run.us, run.spread.spread, first.us, first.spread.spread));
        }
        table.row(cells);
    }
    std::string html =
        fmt::format("<h3>{}</h3>\n", title_of(comparison.by, comparison.on_host)) + table.html();
    if (comparison.parts.size() > kPartsOnPage)
        html += fmt::format("<p class=\"dim small\">The {} that differ most, of {}.</p>\n", kPartsOnPage,
                            grouped(static_cast<std::int64_t>(comparison.parts.size())));
    return html;
}

}  // namespace

std::string html_compared_parts(const std::vector<PartsComparison>& comparisons,
                                const std::vector<ReportedRun>& runs, const Redactor& redact) {
    std::vector<std::string> names;
    names.reserve(runs.size());
    for (const ReportedRun& run : runs) names.push_back(redact.text(run.name));
    std::string html;
    for (const PartsComparison& comparison : comparisons) {
        if (!comparison.parts.empty()) html += part_table(comparison, names, redact);
    }
    return html;
}

}  // namespace shardscope::traces
