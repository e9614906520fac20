// Utilization in HTML: the section of the report, and a page of its own. Lanes first, then the figures.
#include "traces/report/html_use.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "traces/report/print.h"
#include "traces/report/use_lanes.h"
#include "traces/report/use_text.h"
#include "traces/store/grouped.h"

namespace shardscope::traces::report {

namespace {

constexpr std::size_t kRowsShown = 16, kMostRows = 2000;  // the rows between these are folded

// The columns that a table for people has: without those that no row knows.
analysis::ResultTable shown_columns(const analysis::ResultTable& table,
                                    std::initializer_list<std::string_view> left_out) {
    analysis::ResultTable shown{{}, std::vector<std::vector<store::Cell>>(table.rows.size()), {}};
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
        const analysis::ResultColumn& column = table.columns[c];
        if (!shown_in_table(table, c) ||
            std::find(left_out.begin(), left_out.end(), column.key) != left_out.end())
            continue;
        const bool any = std::any_of(table.rows.begin(), table.rows.end(), [c](const auto& row) {
            return !std::holds_alternative<std::monostate>(row[c]);
        });
        if (!any) continue;
        shown.columns.push_back(column);
        for (std::size_t r = 0; r < table.rows.size(); ++r) shown.rows[r].push_back(table.rows[r][c]);
    }
    return shown;
}

std::string table_html(std::string_view title, const analysis::ResultTable& table, const Redactor& redact) {
    if (table.rows.empty() || table.columns.empty()) return {};
    const auto part = [&](std::size_t first, std::size_t last) {
        analysis::ResultTable rows{table.columns, {}, {}};
        rows.rows.assign(table.rows.begin() + static_cast<std::ptrdiff_t>(first),
                         table.rows.begin() + static_cast<std::ptrdiff_t>(last));
        return html_of(rows, redact);
    };
    const std::size_t rows = table.rows.size(), first = std::min(rows, kRowsShown),
                      last = std::min(rows, kMostRows);
    std::string html = fmt::format("<h3>{}</h3>\n", title) + part(0, first);
    if (last > first)
        html += folded(fmt::format("{} more", store::grouped(static_cast<std::int64_t>(last - first))),
                       part(first, last));
    if (rows > last)
        html +=
            fmt::format("<p class=\"dim small\">{} more are not shown; the verb utilization lists all.</p>\n",
                        store::grouped(static_cast<std::int64_t>(rows - last)));
    return html;
}

}  // namespace

std::string html_use_tables(const analysis::UtilizationReport& report, const Redactor& redact) {
    const auto tables = [&](std::string_view title, const analysis::ResultTable& table) {
        return table_html(title,
                          report.hosts.size() > 1 ? shown_columns(table, {}) : shown_columns(table, {"host"}),
                          redact);
    };
    std::string html = "<div class=\"use\">\n";
    const bool one_name = std::all_of(report.devices.begin(), report.devices.end(), [&](const auto& device) {
        return device.name == report.devices.front().name;
    });
    analysis::ResultTable devices = result_table(analysis::device_use_fields(), report.devices);
    html += tables(one_name && !report.devices.empty() && !report.devices.front().name.empty()
                       ? "Devices: " + redact.text(report.devices.front().name)
                       : "Devices",
                   one_name ? without(std::move(devices), {"name"}) : devices);
    html += table_html("Hosts", shown_columns(result_table(analysis::host_use_fields(), report.hosts), {}),
                       redact);
    html += tables("Ranks", result_table(analysis::rank_use_fields(), report.ranks));
    html += tables("Network adapters", result_table(analysis::adapter_use_fields(), report.adapters));
    html += "</div>\n";
    for (const std::string& note : report.notes)
        html += fmt::format("<p class=\"small dim\">{}</p>\n", redact.text(note));
    return html;
}

std::string html_utilization(const ReportedRun& run, const Redactor& redact) {
    if (!run.utilization.any_sample()) return {};
    return fmt::format("<p>{}</p>\n", html_escaped(job_sentence(run.utilization))) +
           html_use_lanes(run.utilization, redact) + html_use_tables(run.utilization, redact);
}

static std::vector<std::string> machines_of(const analysis::UtilizationReport& report) {
    std::vector<std::string> hosts;
    for (const analysis::HostUse& host : report.hosts)
        if (!host.host.empty()) hosts.push_back(host.host);
    // A short name may be part of a long one.
    std::sort(hosts.begin(), hosts.end(), [](const auto& a, const auto& b) { return a.size() > b.size(); });
    return hosts;
}

std::string utilization_page(const analysis::UtilizationReport& report, const std::string& title,
                             bool redacted) {
    const Redactor redact(redacted, machines_of(report));
    return html_page(redact.text(title),
                     fmt::format("<p class=\"dim\">{}</p>\n", html_escaped(job_sentence(report))) +
                         html_use_lanes(report, redact) + html_use_tables(report, redact),
                     redacted);
}

std::string utilization_picture(const analysis::UtilizationReport& report, const std::string& title,
                                bool redacted) {
    return svg_use_lanes(report, title, Redactor(redacted, machines_of(report)));
}

}  // namespace shardscope::traces::report
