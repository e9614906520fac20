// Idleness, launch delays and queues as table, JSON and CSV.
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "traces/report/formats.h"
#include "traces/report/json_parts.h"
#include "traces/report/text_table.h"
#include "traces/report/units.h"

namespace shardscope::traces {
namespace {

using Json = nlohmann::ordered_json;

std::string stream_name(const StreamIdle& idle) {
    if (idle.name.empty()) return std::to_string(idle.stream);
    return shortened(fmt::format("{} {}", idle.stream, idle.name), 20);
}

void add_gaps(TextTable& table, std::string rank, std::string stream, const StreamIdle& idle) {
    std::vector<std::string> cells = {std::move(rank), std::move(stream), grouped(idle.events),
                                      us(to_us(idle.span)), percent(idle.busy, idle.span)};
    for (const GapStats& gap : idle.gaps) {
        cells.push_back(us(to_us(gap.ns)));
        cells.push_back(percent(gap.ns, idle.span));
    }
    table.row(std::move(cells));
}

void add_launches(TextTable& table, std::string rank, std::string stream, const StreamIdle& idle) {
    const LaunchDelay& launch = idle.launch;
    if (launch.count == 0) return;
    table.row({std::move(rank), std::move(stream), grouped(launch.count), us(to_us(launch.mean)),
               us(to_us(launch.median)), us(to_us(launch.p95)), us(to_us(launch.longest)),
               grouped(idle.queue.mean, 2), grouped(idle.queue.longest)});
}

template <typename Add>
void add_all(TextTable& table, const IdleReport& report, Add add) {
    for (const RankIdle& rank : report.ranks) {
        const std::string number = std::to_string(rank.rank);
        for (const StreamIdle& stream : rank.streams) add(table, number, stream_name(stream), stream);
        if (rank.streams.size() != 1) add(table, number, "all as one", rank.device);
    }
}

Json stream_json(const StreamIdle& idle) {
    Json json = {{"events", idle.events},
                 {"span_us", to_us(idle.span)},
                 {"busy_us", to_us(idle.busy)},
                 {"idle_us", to_us(idle.idle())}};
    for (std::size_t k = 0; k < idle.gaps.size(); ++k) {
        json[std::string(kGapKindNames[k])] = {{"count", idle.gaps[k].count},
                                               {"us", to_us(idle.gaps[k].ns)},
                                               {"longest_us", to_us(idle.gaps[k].longest)}};
    }
    json["launch_delay"] = {{"count", idle.launch.count},
                            {"mean_us", to_us(idle.launch.mean)},
                            {"median_us", to_us(idle.launch.median)},
                            {"p95_us", to_us(idle.launch.p95)},
                            {"min_us", to_us(idle.launch.shortest)},
                            {"max_us", to_us(idle.launch.longest)}};
    json["queue_length"] = {{"mean", idle.queue.mean}, {"max", idle.queue.longest}};
    return json;
}

}  // namespace

std::string table_text(const IdleReport& report, std::size_t width) {
    if (report.ranks.empty()) return std::string(kNothingSelected);
    const Align l = Align::left, r = Align::right;
    TextTable gaps({r, l, r, r, r, r, r, r, r, r, r}, 2);
    gaps.header({"Rank", "Stream", "Events", "Span (us)", "Busy (%)", "Host wait (us)", "%",
                 "Kernel wait (us)", "%", "Other (us)", "%"});
    add_all(gaps, report, add_gaps);
    TextTable launches({r, l, r, r, r, r, r, r, r}, 2);
    launches.header({"Rank", "Stream", "Launches", "Mean delay (us)", "Median (us)", "p95 (us)", "Max (us)",
                     "Mean queue", "Max queue"});
    add_all(launches, report, add_launches);
    const std::string longest =
        grouped(to_us(report.kernel_wait_ns), report.kernel_wait_ns % 1000 == 0 ? 0 : 3);
    return paragraph(fmt::format(
                         "Gaps before device events. Host wait: launched after the work before it had ended; "
                         "kernel wait: launched earlier, and at most {} us long; other: the rest, as waiting "
                         "for other streams.",
                         longest),
                     width) +
           gaps.text(width) + "\n" +
           paragraph(
               "From the end of the launching call to the start on the device, and what was launched but had "
               "not started.",
               width) +
           launches.text(width);
}

std::string json_text(const IdleReport& report) {
    Json ranks = Json::array();
    for (const RankIdle& rank : report.ranks) {
        Json streams = Json::array();
        for (const StreamIdle& stream : rank.streams) {
            Json one = {{"stream", stream.stream}, {"name", std::string(stream.name)}};
            one.update(stream_json(stream));
            streams.push_back(std::move(one));
        }
        ranks.push_back(
            {{"rank", rank.rank}, {"device", stream_json(rank.device)}, {"streams", std::move(streams)}});
    }
    return json_line(
        {{"kernel_wait_threshold_us", to_us(report.kernel_wait_ns)}, {"ranks", std::move(ranks)}});
}

// The stream is empty in the row of all streams as one.
std::string csv_text(const IdleReport& report) {
    std::vector<std::vector<Cell>> rows;
    const auto add = [&](int rank, Cell stream, const StreamIdle& i) {
        std::vector<Cell> cells = {std::int64_t(rank), std::move(stream), std::string(i.name),
                                   i.events,           to_us(i.span),     to_us(i.busy)};
        for (const GapStats& gap : i.gaps) cells.emplace_back(to_us(gap.ns));
        cells.insert(cells.end(),
                     {i.launch.count, to_us(i.launch.mean), to_us(i.launch.median), to_us(i.launch.p95),
                      to_us(i.launch.longest), i.queue.mean, i.queue.longest});
        rows.push_back(std::move(cells));
    };
    for (const RankIdle& rank : report.ranks) {
        add(rank.rank, std::monostate(), rank.device);
        for (const StreamIdle& stream : rank.streams) add(rank.rank, std::int64_t(stream.stream), stream);
    }
    return csv_text({{"rank"},
                     {"stream"},
                     {"name"},
                     {"events"},
                     {"span_us"},
                     {"busy_us"},
                     {"host_wait_us"},
                     {"kernel_wait_us"},
                     {"other_us"},
                     {"launches"},
                     {"launch_delay_mean_us"},
                     {"launch_delay_median_us"},
                     {"launch_delay_p95_us"},
                     {"launch_delay_max_us"},
                     {"queue_mean"},
                     {"queue_max"}},
                    rows);
}

}  // namespace shardscope::traces
