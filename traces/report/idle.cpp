// Idleness, launch delays and queues; see gap_fields() and launch_delay_fields().
#include "traces/analysis/time/idle.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "traces/report/print.h"

namespace shardscope::traces::report {
namespace {

using Json = nlohmann::ordered_json;

std::string stream_name(const analysis::StreamIdle& idle) {
    if (idle.name.empty()) return std::to_string(idle.stream);
    return shortened(fmt::format("{} {}", idle.stream, idle.name), 20);
}

// One row per stream of each rank and, if the rank has several, one for all of them together.
analysis::ResultTable streams_table(const analysis::IdleReport& report,
                                    analysis::Fields<analysis::StreamIdle> fields, bool launched_alone) {
    analysis::ResultTable table = empty_table(
        fields, {analysis::kRankColumn, {"stream", "Stream", analysis::Unit::text, "The stream."}});
    const auto add = [&](int rank, std::string stream, const analysis::StreamIdle& idle) {
        if (launched_alone && idle.launch.count == 0) return;
        table.rows.push_back({std::int64_t{rank}, std::move(stream)});
        add_cells(table.rows.back(), fields, idle);
    };
    for (const analysis::RankIdle& rank : report.ranks) {
        for (const analysis::StreamIdle& stream : rank.streams) add(rank.rank, stream_name(stream), stream);
        if (rank.streams.size() != 1) add(rank.rank, "all as one", rank.device);
    }
    return table;
}

Json stream_json(const analysis::StreamIdle& idle) {
    Json json = {{"events", idle.events},
                 {"span_us", to_us(idle.span)},
                 {"busy_us", to_us(idle.busy)},
                 {"idle_us", to_us(idle.idle())}};
    for (std::size_t k = 0; k < idle.gaps.size(); ++k) {
        json[std::string(analysis::kGapKindNames[k])] = {{"count", idle.gaps[k].count},
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

// Empty if the gaps were not named.
std::string waits_text(const analysis::IdleReport& report, std::size_t width) {
    const analysis::ResultTable table =
        by_rank(analysis::idle_wait_fields(), report.ranks, &analysis::RankIdle::waits);
    if (table.rows.empty()) return {};
    return paragraph("What the work after the gaps waited for, and the longest wait of each kind.", width) +
           text_of(table, width, 2) + "\n";
}

std::string table_text(const analysis::IdleReport& report, std::size_t width) {
    if (report.ranks.empty()) return std::string(kNothingSelected);
    const std::string longest =
        store::grouped(to_us(report.kernel_wait_ns), report.kernel_wait_ns % 1000 == 0 ? 0 : 3);
    return paragraph(fmt::format(
                         "Gaps before device events. Host wait: launched after the work before it had ended; "
                         "kernel wait: launched earlier, and at most {} µs long; other: the rest, such as "
                         "waiting for other streams.",
                         longest),
                     width) +
           text_of(streams_table(report, analysis::gap_fields(), false), width, 2) + "\n" +
           waits_text(report, width) +
           paragraph(
               "From the end of the launching call to the start on the device, and what was launched but had "
               "not started.",
               width) +
           text_of(streams_table(report, analysis::launch_delay_fields(), true), width, 2);
}

std::string json_text(const analysis::IdleReport& report) {
    Json ranks = Json::array();
    for (const analysis::RankIdle& rank : report.ranks) {
        Json streams = Json::array();
        for (const analysis::StreamIdle& stream : rank.streams) {
            Json one = {{"stream", stream.stream}, {"name", std::string(stream.name)}};
            one.update(stream_json(stream));
            streams.push_back(std::move(one));
        }
        ranks.push_back(
            {{"rank", rank.rank},
             {"device", stream_json(rank.device)},
             {"streams", std::move(streams)},
             {"waits", json_of(analysis::result_table(analysis::idle_wait_fields(), rank.waits))}});
    }
    return json_line(
        {{"kernel_wait_threshold_us", to_us(report.kernel_wait_ns)}, {"ranks", std::move(ranks)}});
}

// The stream is empty in the row that summarizes all streams.
std::string csv_text(const analysis::IdleReport& report) {
    analysis::ResultTable table =
        empty_table(analysis::gap_fields(),
                    {analysis::kRankColumn,
                     {"stream", "Stream", analysis::Unit::index, "The stream; none: all together."}});
    const analysis::Fields<analysis::StreamIdle> delays = analysis::launch_delay_fields();
    table.columns.insert(table.columns.end(), delays.begin(), delays.end());
    const auto add = [&](int rank, store::Cell stream, const analysis::StreamIdle& idle) {
        table.rows.push_back({std::int64_t{rank}, std::move(stream)});
        for (const analysis::Fields<analysis::StreamIdle> fields :
             {analysis::gap_fields(), analysis::launch_delay_fields()})
            add_cells(table.rows.back(), fields, idle);
    };
    for (const analysis::RankIdle& rank : report.ranks) {
        add(rank.rank, {}, rank.device);
        for (const analysis::StreamIdle& stream : rank.streams)
            add(rank.rank, std::int64_t{stream.stream}, stream);
    }
    return csv_of(table);
}

}  // namespace

std::string render(const analysis::IdleReport& result, Format format, std::size_t width) {
    return render_as(result, format, width, table_text, json_text, csv_text);
}

}  // namespace shardscope::traces::report
