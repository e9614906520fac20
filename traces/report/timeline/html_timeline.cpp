// See html_timeline.h.
#include "traces/report/timeline/html_timeline.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "shardscope/version.h"
#include "traces/analysis/base/shown_ranks.h"
#include "traces/report/html_parts.h"
#include "traces/report/print.h"
#include "traces/report/timeline/data.h"
#include "traces/report/timeline/folds.h"
#include "traces/report/timeline/packing.h"
#include "traces/report/timeline/page_text.h"
#include "traces/report/timeline/rows.h"
#include "traces/store/grouped.h"

namespace shardscope::traces::report {
namespace {

// The most bars that a browser draws quickly, whatever the size of the page.
constexpr std::size_t kMostItems = 4'000'000;

std::string duration(std::int64_t ns) {
    if (ns < 1000) return fmt::format("{} ns", ns);
    const double value = static_cast<double>(ns);
    if (ns < 1'000'000) return fmt::format("{:g} µs", value / 1e3);
    if (ns < 1'000'000'000) return fmt::format("{:g} ms", value / 1e6);
    return fmt::format("{:g} s", value / 1e9);
}

// Lengths below which events may be folded: none, then 10 ns, 12 ns, 15 ns, ... to more than `longest`.
std::vector<std::int64_t> fold_lengths(std::int64_t longest) {
    std::vector<std::int64_t> lengths = {0};
    constexpr std::int64_t kMost = 10'000'000'000'000'000;  // products of it with kWidestFold stay in range
    for (std::int64_t power = 1; lengths.back() <= std::min(longest, kMost); power *= 10) {
        for (const std::int64_t step : {10, 12, 15, 20, 25, 30, 40, 50, 60, 80})
            lengths.push_back(step * power);
    }
    return lengths;
}

struct Fitted {
    TimelineData data;
    std::string packed;
    std::int64_t shorter = 0;
};

std::optional<Fitted> fit(const TimelineEncoder& encoder, std::int64_t shorter, std::size_t most) {
    if (encoder.items(shorter, kMostItems) > kMostItems) return std::nullopt;
    Fitted fitted{.data = encoder.encode(shorter), .packed = {}, .shorter = shorter};
    std::optional<std::string> packed = compressed(fitted.data.bytes, most);
    if (!packed) return std::nullopt;
    fitted.packed = std::move(*packed);
    return fitted;
}

// Folds as little as possible. nullopt: even folding every event is not enough.
std::optional<Fitted> best_fit(const TimelineEncoder& encoder, std::int64_t longest, std::size_t most) {
    if (auto whole = fit(encoder, 0, most)) return whole;
    const std::vector<std::int64_t> lengths = fold_lengths(longest);
    std::optional<Fitted> best;
    std::size_t too_short = 0, enough = lengths.size();
    while (too_short + 1 < enough) {
        const std::size_t middle = (too_short + enough) / 2;
        if (auto fitted = fit(encoder, lengths[middle], most)) {
            best = std::move(fitted);
            enough = middle;
        } else {
            too_short = middle;
        }
    }
    return best;
}

std::string folding(const TimelinePage& page, bool has_curves) {
    std::string text = "Every event is shown: nothing is folded.";
    if (page.folds > 0) {
        text = fmt::format(
            "{} of {} events, each shorter than {}, are folded into {}, which say how many events they are "
            "and "
            "how long these take; longer events and longer gaps are exact.",
            store::grouped(page.folded), store::grouped(page.events), duration(page.shorter),
            store::counted(page.folds, "bin", "bins"));
    }
    if (page.shorter > 0 && has_curves) {
        text += fmt::format(
            " Values of memory and counters less than {} apart are merged into the lowest and the highest.",
            duration(page.shorter));
    }
    return text;
}

// What the reader should know about the trace.
std::vector<std::string> notes(const store::Trace& trace, const analysis::Selection& selection,
                               const TimelinePage& page) {
    std::vector<std::string> sentences = {page.sentence};
    const std::string part = part_text(trace, selection);
    if (!part.empty()) sentences.push_back(fmt::format("Of this run only {}.", part));
    if (!trace.ended) sentences.emplace_back("The run did not end.");
    if (trace.dropped > 0)
        sentences.push_back(fmt::format("{} lost while recording.",
                                        store::counted(trace.dropped, "event was", "events were")));
    const std::string ranks = analysis::shown_ranks_sentence(trace);
    if (!ranks.empty()) sentences.push_back(ranks + ".");
    return sentences;
}

std::string facts(const TimelineRows& rows, const TimelinePage& page, const Redactor& redact) {
    std::set<std::string> devices;
    std::int64_t ranks = 0;
    for (const TimelineGroup& group : rows.groups) {
        if (!group.rank.known()) continue;
        ++ranks;
        if (!group.note.empty()) devices.insert(redact.text(group.note));
    }
    std::string text = ranks > 0 ? store::counted(ranks, "rank", "ranks") : std::string("no rank");
    if (devices.size() == 1) text += " · " + *devices.begin();
    const auto counters = std::count_if(rows.curves.begin(), rows.curves.end(),
                                        [](const TimelineCurve& curve) { return curve.is_counter; });
    if (page.events == 0 && counters > 0) text += " · " + store::counted(counters, "counter", "counters");
    return text + fmt::format(" · {} in {} ms", store::counted(page.events, "event", "events"),
                              milliseconds(rows.time.length()));
}

// The page before its data; `nonce` is the only script that the browser may run.
std::string page_head(const std::string& title, const std::string& line,
                      const std::vector<std::string>& said) {
    std::string sentences;
    for (const std::string& sentence : said) sentences += fmt::format("<p>{}</p>\n", html_escaped(sentence));
    return fmt::format(R"html(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'nonce-timeline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>{0}</title>
<style>{1}</style>
</head>
<body>
<header>
<h1>{0}</h1>
<p>{2}</p>
<form id="finder"><input id="find" type="search" placeholder="Find a name, module or unit ( / )" aria-label="Find"><output id="found"></output></form>
<button id="fit" title="F">Fit</button><button id="in" title="W">+</button><button id="out" title="S">−</button>
<details id="about"><summary>About</summary>
<div id="notes">
{3}<p>Wheel: zoom at the mouse; over the names, or with Shift: scroll. Drag: pan. W S zoom, A D ← → pan, ↑ ↓ scroll, Home End go to the start and the end, F fits. Click an event to keep its fields below, double-click to zoom to it, Z zooms to the one clicked. Find: Enter and Shift+Enter, or N and P, go to the next and the previous hit; Esc clears. Click a rank to fold its rows.</p>
<ul id="legend"></ul>
<p>Made by shardscope-trace {4}.</p>
</div></details>
<output id="span"></output>
</header>
<main><canvas id="rows" tabindex="0" role="img" aria-label="Timeline"></canvas></main>
<footer id="kept">{5}</footer>
<div id="tip" hidden></div>
<noscript>This timeline is drawn by a script in this file; allow scripts to see it.</noscript>
)html",
                       title, timeline_style(), line, sentences, kVersion, html_escaped(said.front()));
}

std::string page_end() {
    return fmt::format("<script nonce=\"timeline\">\n{}</script>\n</body>\n</html>\n", timeline_script());
}

}  // namespace

TimelinePage html_timeline(const store::Trace& trace, const std::string& path,
                           const analysis::Selection& selection, const TimelineOptions& options) {
    std::vector<std::string> hosts;
    for (const store::Rank& rank : trace.ranks) {
        if (!rank.host.empty()) hosts.push_back(rank.host);
    }
    const TimelineRows rows = timeline_rows(trace, selection);
    for (const lanes::CounterTrack& counter : rows.tracks.counters) {
        if (counter.host != schema::StringId::empty) hosts.emplace_back(trace.strings[counter.host]);
    }
    std::sort(hosts.begin(), hosts.end(),
              [](const std::string& a, const std::string& b) { return a.size() > b.size(); });
    const Redactor redact(options.redact, std::move(hosts));
    const TimelineEncoder encoder(trace, rows,
                                  [&](std::string_view text) { return printable(redact.plain(text)); });
    TimelinePage page{
        .html = {}, .events = encoder.events(), .folded = 0, .folds = 0, .shorter = 0, .sentence = {}};
    const bool outside = rows.time.end <= trace.first_ns || rows.time.start > trace.last_ns;
    if (page.events == 0 && (rows.curves.empty() || outside))
        throw NoTimeline(
            fmt::format("{}: the selected time contains no event, so there is no timeline.", path));

    const std::string title =
        options.title.empty() ? redact.text(run_name(path)) : html_escaped(options.title);
    const auto frame = [&] {
        page.sentence = folding(page, !rows.curves.empty());
        return page_head(title, facts(rows, page, redact), notes(trace, selection, page));
    };
    constexpr std::string_view kData = "<script id=\"data\" type=\"text/plain\">", kDataEnd = "</script>\n";
    constexpr std::size_t kRoom = 512;  // the numbers in the sentences are not known yet
    const std::string end = page_end();
    const std::size_t around = frame().size() + end.size() + kData.size() + kDataEnd.size() + kRoom;
    const std::size_t most =
        options.most_bytes > around ? static_cast<std::size_t>(options.most_bytes - around) / 4 * 3 : 0;
    std::optional<Fitted> fitted = best_fit(encoder, rows.time.length(), most);
    if (!fitted) {
        throw NoTimeline(fmt::format(
            "{}: {} too few for a timeline of {}; allow more, or select ranks, steps or a range.", path,
            store::counted(static_cast<std::int64_t>(options.most_bytes), "byte is", "bytes are"),
            store::counted(static_cast<std::int64_t>(rows.rows.size()), "row", "rows")));
    }
    page.folded = fitted->data.folded;
    page.folds = fitted->data.folds;
    page.shorter = fitted->shorter;
    page.html = frame();
    page.html += kData;
    page.html += base64(fitted->packed);
    page.html += kDataEnd;
    page.html += end;
    return page;
}

}  // namespace shardscope::traces::report
