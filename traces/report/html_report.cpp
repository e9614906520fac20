#include "traces/report/html_report.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "shardscope/version.h"
#include "traces/report/html_parts.h"
#include "traces/report/html_style.h"
#include "traces/report/print.h"
#include "traces/report/use_lanes.h"
#include "traces/store/grouped.h"

namespace shardscope::traces::report {

namespace {

struct Part {
    std::string id, title, html;
};

// The sections of one run; `prefix` keeps the anchors of several runs distinct.
std::vector<Part> parts_of(const ReportedRun& run, const Redactor& redact, const std::string& prefix) {
    std::vector<Part> parts = {
        {"summary", "Where the time went", html_summary(run)},
        {"advice", "Advice", html_advice(run, redact)},
        {"utilization", "Utilization", html_utilization(run, redact)},
        {"training", "Training", html_training(run, redact)},
        {"memory", "Memory", html_memory(run, redact)},
        {"collectives", "Collectives", html_collectives(run, redact)},
        {"topology", "Topology", html_topology(run, redact)},
        {"units", "FSDP units", html_units(run, redact)},
        {"pipeline", "Pipeline", html_pipeline(run, redact)},
        {"modules", "Modules", html_modules(run, redact)},
        {"configuration", "Configuration", html_configuration(run, redact)},
    };
    std::erase_if(parts, [](const Part& part) { return part.html.empty(); });
    for (Part& part : parts) part.id = prefix + part.id;
    return parts;
}

std::string run_line(const ReportedRun& run, const Redactor& redact) {
    std::string text = store::counted(run.info.ranks, "rank", "ranks");
    if (!run.info.device.empty()) text += " · " + redact.text(run.info.device);
    if (!run.info.started_utc.empty()) text += " · " + html_escaped(run.info.started_utc);
    text += fmt::format(" · {} ms recorded", store::grouped(run.info.duration_ms, 1));
    if (!run.info.ended) text += " · <span class=\"bad\">the run did not end</span>";
    if (run.info.dropped > 0)
        text += fmt::format(" · <span class=\"bad\">{} lost</span>",
                            store::counted(run.info.dropped, "event was", "events were"));
    if (!run.part.empty()) text += fmt::format("<br><b>Of this run only {}.</b>", html_escaped(run.part));
    return "<p class=\"dim\">" + text + "</p>\n";
}

std::string contents(const std::vector<Part>& parts) {
    std::string html = "<nav>";
    for (const Part& part : parts) html += fmt::format("<a href=\"#{}\">{}</a>", part.id, part.title);
    return html + "</nav>\n";
}

std::string answers_of(const std::vector<analysis::Answer>& answers, const std::vector<Part>& parts,
                       const Redactor& redact, const std::string& prefix) {
    std::vector<std::string> ids;
    ids.reserve(parts.size());
    for (const Part& part : parts) ids.push_back(part.id);
    return html_answers(answers, redact, prefix, ids);
}

std::string sections(const std::vector<Part>& parts) {
    std::string html;
    for (const Part& part : parts) html += section(part.id, part.title, part.html);
    return html;
}

std::string body_of_one(const ReportedRun& run, const Redactor& redact) {
    const std::vector<Part> parts = parts_of(run, redact, "");
    return run_line(run, redact) + answers_of(run.answers, parts, redact, "") + html_cards(run) +
           contents(parts) + sections(parts);
}

std::string body_of_several(const std::vector<ReportedRun>& runs, const ReportedComparison& comparison,
                            const Redactor& redact) {
    std::vector<Part> first = {
        {"comparison", "Side by side", html_comparison(comparison.whole, runs, redact)},
        {"parts", "Where they differ", html_compared_parts(comparison.parts, runs, redact)}};
    std::erase_if(first, [](const Part& part) { return part.html.empty(); });
    const std::string head = answers_of(comparison.answers, first, redact, "");
    const std::string sides = sections(first);
    std::string each;
    for (std::size_t r = 0; r < runs.size(); ++r) {
        const std::string prefix = fmt::format("run{}-", r + 1);
        const std::string title = redact.text(runs[r].name);
        const std::vector<Part> parts = parts_of(runs[r], redact, prefix);
        first.push_back({fmt::format("run{}", r + 1), title, ""});
        each += fmt::format(
            "<section "
            "id=\"run{}\">\n<details{}><summary><b>{}</b></summary>\n{}{}{}{}</details>\n</section>\n",
            r + 1, r == 0 ? " open" : "", title, run_line(runs[r], redact),
            answers_of(runs[r].answers, parts, redact, prefix), html_cards(runs[r]), sections(parts));
    }
    return head + contents(first) + sides + "<h2>Each run</h2>\n" + each;
}

std::string title_of(const std::vector<ReportedRun>& runs, const HtmlOptions& options,
                     const Redactor& redact) {
    if (!options.title.empty()) return html_escaped(options.title);
    std::string title;
    for (const ReportedRun& run : runs) title += (title.empty() ? "" : " · ") + redact.text(run.name);
    return title;
}

}  // namespace

std::string html_page(std::string_view title, std::string_view body, bool redacted, std::string_view style) {
    return fmt::format(R"html(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>{}</title>
<style>{}{}{}</style>
</head>
<body>
<header>
<h1>{}</h1>
</header>
{}<footer>Made by shardscope-trace {}. GB/s = 10<sup>9</sup> bytes a second.{}</footer>
</body>
</html>
)html",
                       title, kHtmlStyle, kLaneStyle, style, title, body, kVersion,
                       redacted ? " Names of machines, paths and command lines are omitted." : "");
}

std::string html_report(const std::vector<ReportedRun>& runs,
                        const std::optional<ReportedComparison>& comparison, const HtmlOptions& options) {
    std::vector<std::string> hosts;
    for (const ReportedRun& run : runs) hosts.insert(hosts.end(), run.hosts.begin(), run.hosts.end());
    // Longer names come first: a short name may be part of a long one.
    std::sort(hosts.begin(), hosts.end(),
              [](const std::string& a, const std::string& b) { return a.size() > b.size(); });
    const Redactor redact(options.redact, std::move(hosts));
    const std::string title = title_of(runs, options, redact);
    const std::string body = runs.size() > 1 && comparison ? body_of_several(runs, *comparison, redact)
                             : runs.empty()                ? std::string()
                                                           : body_of_one(runs.front(), redact);
    return html_page(title, body, options.redact);
}

}  // namespace shardscope::traces::report
