// Sections of the HTML report that are tables: where the time went, collectives, FSDP units, pipeline,
// configuration.
#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "traces/report/html_parts.h"
#include "traces/report/print.h"
#include "traces/store/grouped.h"

namespace shardscope::traces::report {

namespace {

constexpr std::size_t kRanksShown = 8;  // the others are folded

std::string milliseconds_of(double us_value) {
    return store::grouped(us_value * 1e-3, 3);
}

double share_of(double part, double whole) {
    return whole > 0 ? part / whole : 0;
}

// The first ranks, then the others folded. `format(first, last)` prints the ranks of that range.
template <typename Format>
std::string by_rank(std::size_t ranks, Format format) {
    std::string html = format(std::size_t{0}, std::min(ranks, kRanksShown));
    if (ranks > kRanksShown)
        html +=
            folded(store::counted(static_cast<std::int64_t>(ranks - kRanksShown), "more rank", "more ranks"),
                   format(kRanksShown, ranks));
    return html;
}

}  // namespace

std::string html_card(const std::string& value, std::string_view what) {
    return fmt::format("<div class=\"card\"><b>{}</b><span>{}</span></div>\n", value, what);
}

std::string html_cards(const ReportedRun& run) {
    std::string html = "<div class=\"cards\">\n";
    const auto& summaries = run.summary.ranks;
    const double step = run.summary.mean_step_us();
    html += html_card(milliseconds_of(step) + " ms", run.summary.stepped ? "average step" : "whole trace");
    std::int64_t peak = 0;
    for (const analysis::RankMemory& rank : run.memory.ranks) peak = std::max(peak, rank.peak_bytes);
    if (peak > 0) html += html_card(mb(peak) + " MiB", "highest peak memory of a rank");
    if (run.overlap.any_communication()) {
        html += html_card(store::grouped(100 * share_of(run.overlap.mean_exposed_us(), step), 1) + " %",
                          run.summary.stepped ? "of the step: exposed communication"
                                              : "of the whole trace: exposed communication");
        html += html_card(store::grouped(run.overlap.mean_overlap_percent(), 1) + " %",
                          "of the communication hidden by compute");
    }
    std::size_t steps = 0;
    for (const analysis::RankSummary& rank : summaries) steps = std::max(steps, rank.steps.size());
    html += run.summary.stepped
                ? html_card(fmt::format("{} × {}", summaries.size(), steps), "ranks × steps")
                : html_card(fmt::format("{}", summaries.size()), summaries.size() == 1 ? "rank" : "ranks");
    return html + "</div>\n";
}

std::string html_findings(const std::vector<analysis::Finding>& findings, const Redactor& redact) {
    std::string html;
    for (const analysis::Finding& finding : findings) {
        html += fmt::format("<div class=\"finding\"><h3>{}</h3>\n<p>{}</p>\n", html_escaped(finding.title),
                            redact.text(finding.what));
        if (!finding.change.empty()) html += fmt::format("<p>{}</p>\n", redact.text(finding.change));
        if (!finding.job_setting.empty())
            html += fmt::format("<p class=\"small\">Job file: <code>{}</code></p>\n",
                                redact.text(finding.job_setting));
        if (!finding.pytorch.empty())
            html += fmt::format("<p class=\"small\">PyTorch: <code>{}</code></p>\n",
                                redact.text(finding.pytorch));
        if (!finding.expected.empty())
            html += fmt::format("<p class=\"good\">Expected: {}</p>\n", redact.text(finding.expected));
        html += "</div>\n";
    }
    return html;
}

std::string html_advice(const ReportedRun& run, const Redactor& redact) {
    std::string html = html_findings(run.advice.findings, redact);
    if (html.empty())
        html = fmt::format("<p>None of the {} rules found anything to change.</p>\n", run.advice.rules);
    for (const std::string& note : run.advice.notes)
        html += fmt::format("<p class=\"small\">{}</p>\n", redact.text(note));
    return html;
}

std::string html_summary(const ReportedRun& run) {
    const auto& ranks = run.summary.ranks;
    if (ranks.empty()) return {};
    std::vector<std::pair<std::string, int>> names;
    for (std::size_t c = 0; c < analysis::kTimeCategoryNames.size(); ++c) {
        const bool any = std::any_of(ranks.begin(), ranks.end(),
                                     [c](const analysis::RankSummary& r) { return r.average_us[c] > 0; });
        if (any) names.emplace_back(std::string(analysis::kTimeCategoryNames[c]), static_cast<int>(c));
    }
    std::string html =
        legend(names) + by_rank(ranks.size(), [&](std::size_t first, std::size_t last) {
            std::string bars;
            for (std::size_t r = first; r < last; ++r) {
                const analysis::RankSummary& rank = ranks[r];
                std::vector<BarPart> parts;
                for (std::size_t c = 0; c < analysis::kTimeCategoryNames.size(); ++c) {
                    parts.push_back({fmt::format("{}: {} µs, {} %", analysis::kTimeCategoryNames[c],
                                                 us(rank.average_us[c]),
                                                 percent(rank.average_us[c], rank.average_step_us)),
                                     share_of(rank.average_us[c], rank.average_step_us),
                                     static_cast<int>(c)});
                }
                bars += fmt::format(
                    "<div class=\"small dim\">Rank {}: {} ms {}{}</div>\n", rank.rank,
                    milliseconds_of(rank.average_step_us),
                    run.summary.stepped
                        ? "per step, mean of " +
                              store::counted(static_cast<std::int64_t>(rank.steps.size()), "step", "steps")
                        : "in the whole trace",
                    rank.cut_steps > 0 ? ", one at the end cut off" : "");
                bars += stacked_bar(parts, fmt::format("Where the time of rank {} went", rank.rank));
            }
            return bars;
        });
    html += by_rank(ranks.size(), [&](std::size_t first, std::size_t last) {
        std::vector<std::string> header = {run.summary.stepped ? "Mean per step" : "Whole trace"};
        for (std::size_t r = first; r < last; ++r) {
            header.push_back(fmt::format("Rank {} (µs)", ranks[r].rank));
            header.push_back(fmt::format("Rank {} (%)", ranks[r].rank));
        }
        HtmlTable table(header);
        for (std::size_t c = 0; c < analysis::kTimeCategoryNames.size(); ++c) {
            std::vector<std::string> cells = {std::string(analysis::kTimeCategoryNames[c])};
            for (std::size_t r = first; r < last; ++r) {
                const bool known = ranks[r].knows(static_cast<analysis::TimeCategory>(c));
                cells.push_back(known ? us(ranks[r].average_us[c]) : "-");
                cells.push_back(known ? percent(ranks[r].average_us[c], ranks[r].average_step_us) : "-");
            }
            table.row(cells);
        }
        std::vector<std::string> cells = {run.summary.stepped ? "Step" : "Sum"};
        for (std::size_t r = first; r < last; ++r) {
            cells.push_back(us(ranks[r].average_step_us));
            cells.push_back(percent(ranks[r].average_step_us, ranks[r].average_step_us));
        }
        table.row(cells, "sum");
        return table.html();
    });
    return html +
           "<p class=\"dim small\">Each instant of a step goes to the first category that covers it, in this "
           "order; "
           "Communication is its exposed part.</p>\n";
}

// Why communication and copies are exposed; empty if nothing is.
static std::string html_exposed(const ReportedRun& run, const Redactor& redact) {
    const auto& ranks = run.exposed.ranks;
    const bool any = std::any_of(ranks.begin(), ranks.end(),
                                 [](const analysis::RankExposed& r) { return !r.shares.empty(); });
    if (!any) return {};
    const auto shown = [](const analysis::ResultTable& table) {
        return chosen(table, {{"operation"},
                              {"cause"},
                              {"events"},
                              {"exposed_us"},
                              {"exposed_per_step_us"},
                              {"percent"},
                              {"longest_us"},
                              {"longest_of"},
                              {"about"}});
    };
    return "<p class=\"dim small\">Why communication and copies are exposed: the part of each in which no "
           "kernel of its rank runs.</p>\n" +
           by_rank(ranks.size(), [&](std::size_t first, std::size_t last) {
               HtmlTable table(shown(empty_table(analysis::exposed_fields())));
               for (std::size_t r = first; r < last; ++r) {
                   if (ranks.size() > 1) table.row({fmt::format("Rank {}", ranks[r].rank)}, "group");
                   table.rows(shown(result_table(analysis::exposed_fields(), ranks[r].shares)), redact);
               }
               return table.html();
           });
}

std::string html_collectives(const ReportedRun& run, const Redactor& redact) {
    const auto& ranks = run.collectives.ranks;
    const bool any = std::any_of(ranks.begin(), ranks.end(),
                                 [](const analysis::RankCollectives& r) { return !r.operations.empty(); });
    if (!any) return {};
    const auto shown = [](const analysis::ResultTable& table) {
        return chosen(table, {{"name"},
                              {"count"},
                              {"bytes"},
                              {"us"},
                              {"waiting_us"},
                              {"exposed_us"},
                              {"algbw_gbps"},
                              {"busbw_gbps"}});
    };
    return by_rank(ranks.size(),
                   [&](std::size_t first, std::size_t last) {
                       HtmlTable table(shown(empty_table(analysis::collective_fields())));
                       for (std::size_t r = first; r < last; ++r) {
                           if (ranks.size() > 1) table.row({fmt::format("Rank {}", ranks[r].rank)}, "group");
                           table.rows(shown(result_table(analysis::collective_fields(), ranks[r].operations)),
                                      redact);
                       }
                       return table.html();
                   }) +
           html_bus_bandwidth(run, redact) + html_exposed(run, redact);
}

std::string html_units(const ReportedRun& run, const Redactor& redact) {
    if (!run.units.any_unit || run.units.all_ranks.empty()) return {};
    const std::vector<analysis::UnitMeans> rows = unit_means(run.units.all_ranks, run.units.rank_steps);
    return html_of(chosen(result_table(analysis::unit_fields(), rows), {{"name"},
                                                                        {"phase"},
                                                                        {"gathers_per_step"},
                                                                        {"bytes_per_step"},
                                                                        {"gather_per_step_us"},
                                                                        {"wait_per_step_us"},
                                                                        {"exposed_per_step_us"},
                                                                        {"reduce_per_step_us"},
                                                                        {"hidden_by"}}),
                   redact) +
           fmt::format(
               "<p class=\"dim small\">Per rank{}. Wait: compute was ready and the gather was not. "
               "Exposed: "
               "gathers and reductions outside compute.</p>\n",
               run.units.stepped ? " in one step, mean over ranks and kept steps"
                                 : " in the whole trace, mean over ranks");
}

std::string html_pipeline(const ReportedRun& run, const Redactor& redact) {
    if (run.pipeline.ranks.empty()) return {};
    return html_of(result_table(analysis::pipeline_rank_fields(), run.pipeline.ranks), redact) +
           fmt::format(
               "<p class=\"dim small\">Times {}; the bubble is {} % of ranks x makespan: idle = warm-up + "
               "peer + "
               "transfer + host + imbalance + drain.</p>\n",
               run.pipeline.stepped ? "per step, mean over kept steps" : "of the whole trace",
               store::grouped(run.pipeline.bubble_percent(), 2));
}

std::string html_configuration(const ReportedRun& run, const Redactor& redact) {
    HtmlTable table({"Key", "Value"}, 2);
    const auto add = [&](std::string_view key, std::string_view value) {
        if (!value.empty() && redact.shows(key, value)) table.row({redact.text(key), redact.text(value)});
    };
    add("started (UTC)", run.info.started_utc);
    add("device", run.info.device);
    add("device note", run.info.device_note);
    std::size_t left_out = 0;
    for (const auto& [key, value] : run.info.config) {
        add(key, value);
        left_out += redact.shows(key, value) ? 0 : 1;
    }
    if (!redact.on()) {
        for (const std::string& host : run.hosts) add("machine", host);
    }
    for (const auto& [kind, rows] : run.info.counts) add(kind, store::grouped(rows));
    std::string html = folded(store::counted(static_cast<std::int64_t>(run.info.config.size() - left_out),
                                             "setting or fact", "settings and facts"),
                              table.html());
    if (left_out > 0) {
        html += fmt::format(
            "<p class=\"dim small\">{} names of machines, paths or command lines and {} omitted.</p>\n",
            store::counted(static_cast<std::int64_t>(left_out), "setting holds", "settings hold"),
            left_out == 1 ? "is" : "are");
    }
    if (run.info.noted.empty() || redact.on()) return html;
    std::string list = "<ul>";
    for (const analysis::TraceInfo::Noted& noted : run.info.noted)
        list += fmt::format("<li>{} ms: {}</li>", store::grouped(noted.time_ms, 3), redact.text(noted.text));
    return html + folded(store::counted(static_cast<std::int64_t>(run.info.noted.size()),
                                        "note of the recording", "notes of the recording"),
                         list + "</ul>");
}

}  // namespace shardscope::traces::report
