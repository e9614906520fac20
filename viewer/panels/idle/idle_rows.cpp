// See idle_rows.h.
#include "viewer/panels/idle/idle_rows.h"

#include <algorithm>
#include <optional>

#include <fmt/core.h>

#include "viewer/draw/format.h"
#include "viewer/theme/theme.h"

namespace shardscope::viewer::panels {
namespace {

using traces::analysis::GapKind;
using traces::analysis::StreamIdle;
using Kind = tables::TableColumn::Kind;

double percent(std::int64_t part, std::int64_t whole) {
    return whole > 0 ? 100 * static_cast<double>(part) / static_cast<double>(whole) : tables::kNoNumber;
}

// "Collective 40 %, Queue 22 %": the kinds with the most idle time, of the stream's idle time.
std::string mostly(const traces::analysis::RankIdle& rank, std::optional<int> stream) {
    constexpr int kMost = 2;
    std::int64_t all = 0;
    for (const traces::analysis::IdleWait& wait : rank.waits) {
        if (wait.stream == stream) all += wait.ns;
    }
    std::string text;
    int shown = 0;
    for (const traces::analysis::IdleWait& wait : rank.waits) {
        if (wait.stream != stream || wait.ns * 20 < all || shown == kMost) continue;
        text += fmt::format("{}{} {}", shown++ > 0 ? ", " : "", wait.title,
                            draw::format_percent(percent(wait.ns, all)));
    }
    return text;
}

void add_stream(tables::CellTable& table, const traces::analysis::RankIdle& rank, const StreamIdle& stream,
                bool device) {
    std::vector<tables::CellTable::Cell> cells = {
        tables::text_cell(idle_stream_title(stream, device)), tables::count_cell(stream.events),
        tables::us_cell(tables::us(stream.span)), tables::percent_cell(percent(stream.busy, stream.span))};
    for (int k = 0; k < traces::analysis::kGapKinds; ++k) {
        const traces::analysis::GapStats& gap = stream.gap(static_cast<GapKind>(k));
        cells.push_back(tables::us_cell(tables::us(gap.ns)));
        cells.push_back(tables::percent_cell(percent(gap.ns, stream.span)));
    }
    const bool launched = stream.launch.count > 0;
    const auto known = [&](double ns) { return launched ? tables::us_cell(ns * 1e-3) : tables::no_cell(); };
    cells.push_back(known(stream.launch.mean));
    cells.push_back(known(stream.launch.median));
    cells.push_back(known(stream.launch.p95));
    cells.push_back(known(static_cast<double>(stream.launch.longest)));
    cells.push_back(launched ? tables::decimal_cell(stream.queue.mean, 2) : tables::no_cell());
    cells.push_back(launched ? tables::count_cell(stream.queue.longest) : tables::no_cell());
    cells.push_back(tables::text_cell(mostly(rank, device ? std::nullopt : std::optional(stream.stream))));
    table.add(std::move(cells));
}

// Only the bins from the first to the last that are not empty.
template <std::size_t N, class Make>
std::vector<HistogramBin> bins(const std::array<std::int64_t, N>& counts, const Make& make) {
    const auto some = [](std::int64_t n) { return n > 0; };
    const auto first = std::find_if(counts.begin(), counts.end(), some);
    const auto last = std::find_if(counts.rbegin(), counts.rend(), some).base();
    std::vector<HistogramBin> result;
    for (auto at = first; at < last; ++at) {
        HistogramBin bin = make(static_cast<std::size_t>(at - counts.begin()));
        bin.value = static_cast<double>(*at);
        result.push_back(std::move(bin));
    }
    return result;
}

}  // namespace

std::string_view gap_title(GapKind kind) {
    static constexpr std::array<std::string_view, traces::analysis::kGapKinds> kTitles = {
        "Host wait", "Kernel wait", "Other"};
    return kTitles[static_cast<std::size_t>(kind)];
}

std::string_view gap_help(GapKind kind) {
    static constexpr std::array<std::string_view, traces::analysis::kGapKinds> kHelp = {
        "Gaps before work that was launched only after the work before it had ended: the host was late.",
        "Short gaps before work that was launched in time: what the device needs between two kernels.",
        "The rest: dependencies on other streams, limiters."};
    return kHelp[static_cast<std::size_t>(kind)];
}

theme::Color gap_color(GapKind kind) {
    // In the order of GapKind: late calls of the host, the device between two kernels, unknown.
    const std::array<theme::Color, traces::analysis::kGapKinds> kColors = {
        theme::runtime_color(), theme::rgb(0x9AD1F5), theme::no_hue_color()};
    return kColors[static_cast<std::size_t>(kind)];
}

std::string idle_stream_title(const StreamIdle& stream, bool device) {
    if (device) return "all as one";
    return stream.name.empty() ? fmt::format("{}", stream.stream)
                               : fmt::format("{} {}", stream.stream, stream.name);
}

std::shared_ptr<const tables::TableModel> idle_stream_table(const traces::analysis::RankIdle& rank) {
    std::vector<tables::TableColumn> columns = {
        {"stream", "Stream", "", Kind::text, 10, 20, 0,
         "A stream of the device; \"all as one\": idle where no stream runs anything."},
        {"events", "Events", "", Kind::number, 5, 9, 0, {}},
        {"span_us", "Span", "\u00b5s", Kind::number, 8, 12, 0, "From the first start to the last end."},
        {"busy_percent", "Busy", "%", Kind::number, 5, 18, 0, "The union of its events, of the span."},
    };
    static constexpr std::array<int, traces::analysis::kGapKinds> kPriority = {17, 15, 16};
    for (int k = 0; k < traces::analysis::kGapKinds; ++k) {
        const auto kind = static_cast<GapKind>(k);
        const std::string id(traces::analysis::kGapKindNames[static_cast<std::size_t>(k)]),
            title(gap_title(kind)), help(gap_help(kind));
        columns.push_back({id + "_us", title, "\u00b5s", Kind::number, 7.5F,
                           kPriority[static_cast<std::size_t>(k)], gap_color(kind), help});
        columns.push_back({id + "_percent", title, "% of span", Kind::number, 5.5F, 6, 0, help});
    }
    const std::string delay = "From the end of the launching call to the start on the device.";
    columns.push_back({"delay_mean_us", "Delay mean", "\u00b5s", Kind::number, 6.5F, 11, 0, delay});
    columns.push_back({"delay_median_us", "Delay median", "\u00b5s", Kind::number, 7, 8, 0, delay});
    columns.push_back({"delay_p95_us", "Delay p95", "\u00b5s", Kind::number, 6.5F, 7, 0, delay});
    columns.push_back({"delay_max_us", "Delay max", "\u00b5s", Kind::number, 6.5F, 5, 0, delay});
    const std::string queue = "Launched but not started; the mean is weighted by time.";
    columns.push_back({"queue_mean", "Queue mean", "launches", Kind::number, 6.5F, 10, 0, queue});
    columns.push_back({"queue_max", "Queue max", "launches", Kind::number, 6, 4, 0, queue});
    columns.push_back({"waits_for", "Waits mostly for", "of idle", Kind::text, 20, 18, 0,
                       "What the work after its gaps waited for, by the share of the idle time."});
    auto table = std::make_shared<tables::CellTable>(std::move(columns));
    add_stream(*table, rank, rank.device, true);
    for (const StreamIdle& stream : rank.streams) add_stream(*table, rank, stream, false);
    return table;
}

const traces::analysis::IdleWait* device_wait(const traces::analysis::RankIdle& rank,
                                              traces::analysis::WaitFor what) {
    const std::string_view name = traces::analysis::kWaitForNames[static_cast<std::size_t>(what)];
    const auto at = std::find_if(rank.waits.begin(), rank.waits.end(),
                                 [&](const auto& wait) { return !wait.stream && wait.what == name; });
    return at != rank.waits.end() ? &*at : nullptr;
}

std::shared_ptr<const tables::TableModel> idle_gap_table(const traces::store::Trace& trace,
                                                         const traces::analysis::TraceWaits& waits,
                                                         const traces::analysis::StreamIdleDetails& stream) {
    auto table = std::make_shared<tables::CellTable>(std::vector<tables::TableColumn>{
        {"gap", "Gap", "", Kind::number, 3.5F, 20, 0, "1 is the longest."},
        {"us", "Length", "\u00b5s", Kind::number, 7, 19, theme::no_hue_color(), {}},
        {"cause", "Cause", "", Kind::text, 6, 16, 0, "What the most of it waits for."},
        {"waits_for", "Waits for", "", Kind::text, 0, 17, 0, "What the most of it waits for, by name.", 0,
         14},
        {"from_ms", "From", "ms", Kind::number, 7.5F, 15, 0, "Since the start of the capture."},
        {"to_ms", "To", "ms", Kind::number, 7.5F, 10, 0, {}},
        {"next", "Ended by", "", Kind::text, 0, 14, 0, "The event that the gap is before.", 0, 6},
        {"stream", "Its stream", "", Kind::text, 8, 12, 0, {}},
        {"kind", "Kind", "", Kind::text, 7, 9, 0, "Host wait, kernel wait or other, as in the table above."},
    });
    std::int64_t number = 0;
    for (const traces::analysis::IdleGap& gap : stream.gaps) {
        const auto event = static_cast<std::size_t>(gap.event);
        const traces::store::DeviceStream& on = trace.streams[trace.device.stream[event]];
        const std::vector<traces::analysis::Wait> parts = waits.finder.before(event, gap.from);
        const auto most = std::max_element(
            parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.length() < b.length(); });
        const traces::analysis::Wait wait = most != parts.end() ? *most : traces::analysis::Wait{};
        table->add({tables::count_cell(++number), tables::us_cell(tables::us(gap.length())),
                    tables::text_cell(title(wait.what)),
                    tables::text_cell(wait.event >= 0 ? waits.names.wait(wait) : std::string()),
                    tables::decimal_cell(static_cast<double>(gap.from) * 1e-6, 3),
                    tables::decimal_cell(static_cast<double>(gap.to) * 1e-6, 3),
                    tables::text_cell(trace.strings[trace.device.name[event]]),
                    tables::text_cell(on.name.empty() ? fmt::format("{}", on.id)
                                                      : fmt::format("{} {}", on.id, on.name)),
                    tables::text_cell(gap_title(gap.kind))},
                   theme::wait_color(wait.what));
    }
    return table;
}

std::vector<HistogramBin> delay_histogram(const traces::analysis::StreamIdleDetails& stream) {
    return bins(stream.delays, [](std::size_t b) {
        const auto from = static_cast<double>(traces::analysis::bin_start(b)),
                   to = static_cast<double>(traces::analysis::bin_start(b + 1));
        return HistogramBin{0, draw::format_duration(from),
                            fmt::format("{} to {}", draw::format_duration(from), draw::format_duration(to))};
    });
}

std::vector<HistogramBin> queue_histogram(const traces::analysis::StreamIdleDetails& stream) {
    return bins(stream.queue_ns, [](std::size_t b) {
        const std::int64_t from = traces::analysis::queue_bin_start(b),
                           to = traces::analysis::queue_bin_start(b + 1) - 1;
        const std::string first = draw::format_count(from);
        return HistogramBin{0, first,
                            to > from ? fmt::format("{} to {} in the queue", first, draw::format_count(to))
                                      : first + " in the queue"};
    });
}

}  // namespace shardscope::viewer::panels
