// See hosts.h.
#include "traces/report/hosts.h"

#include <algorithm>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "traces/report/print.h"
#include "traces/schema/joined.h"
#include "traces/store/grouped.h"
#include "traces/store/number_list.h"

namespace shardscope::traces::report {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kShownGroups = 40;

std::string ranks_of(const analysis::HostPlace& host) {
    std::vector<std::int64_t> numbers;
    for (const auto& member : host.ranks) numbers.push_back(member.rank);
    return store::number_list(numbers);
}

std::string ranks_of(const analysis::RankGroup& group) {
    const std::vector<std::int64_t> numbers(group.ranks.begin(), group.ranks.end());
    const bool whole = static_cast<int>(numbers.size()) >= group.size;
    return store::number_list(numbers) + (whole ? "" : fmt::format(" of {} ranks", group.size));
}

// Each distinct set of processors once, in the order of the ranks.
std::string cpus_of(const analysis::HostPlace& host) {
    std::vector<std::string> sets;
    for (const auto& member : host.ranks) {
        if (!member.cpus.empty() && std::find(sets.begin(), sets.end(), member.cpus) == sets.end())
            sets.push_back(member.cpus);
    }
    return sets.empty() ? "-" : schema::joined(sets, " | ");
}

std::string places_table(const analysis::HostsReport& report, std::size_t width) {
    TextTable table({Align::left, Align::right, Align::left, Align::right, Align::right, Align::right});
    table.header({"Host", "Ranks", "Processors", "Collectives", "Came last", "Late (µs)"});
    for (const analysis::HostPlace& host : report.hosts) {
        table.row({host.name.empty() ? "unknown" : host.name, ranks_of(host), cpus_of(host),
                   report.known ? store::grouped(host.collectives) : "-",
                   report.known ? store::grouped(host.last) : "-",
                   host.collectives > 0 ? us(to_us(host.median_late_ns)) : "-"});
    }
    return "\nHosts: collectives between them, and how much later all ranks of a host arrived than those of "
           "the first (median)\n" +
           table.text(width);
}

std::string traffic_table(const analysis::HostsReport& report, std::size_t width) {
    if (report.traffic.empty()) return {};
    return "\nTraffic of groups within a host and between hosts: each collective once, full buffers\n" +
           text_of(result_table(analysis::host_traffic_fields(), report.traffic), width, 2);
}

std::string clock_lines(const analysis::HostsReport& report) {
    std::string text;
    if (report.skewed > 0) {
        text += fmt::format(
            "\nSkew between hosts: all ranks of the last one arrived {} µs after those of the first (median "
            "of {}; "
            "{} µs at worst).\n",
            us(to_us(report.median_skew_ns)), store::counted(report.skewed, "collective", "collectives"),
            us(to_us(report.worst_skew_ns)));
    }
    if (!report.clocks) return text;
    const analysis::ClockAgreement& clocks = *report.clocks;
    text += text.empty() ? "\nClocks: " : "Clocks: ";
    if (clocks.uncertainty_ns)
        text += fmt::format("measured to within {} µs; ", us(to_us(*clocks.uncertainty_ns)));
    if (clocks.collectives == 0) return text + "no collective is in several parts.\n";
    return text + fmt::format("{} within {} µs on all parts (median; {} µs at worst).\n",
                              store::counted(clocks.collectives, "collective ends", "collectives end"),
                              us(to_us(clocks.residual_ns)), us(to_us(clocks.worst_ns)));
}

}  // namespace

std::string ranks_by_host(const std::vector<analysis::HostPlace>& hosts) {
    std::vector<std::string> parts;
    for (const analysis::HostPlace& host : hosts) {
        if (!host.name.empty()) parts.push_back(fmt::format("{} on {}", ranks_of(host), host.name));
    }
    return schema::joined(parts, "; ");
}

std::string hosts_text(const analysis::HostsReport& report, std::size_t width) {
    if (report.hosts.size() < 2) return {};
    return places_table(report, width) + traffic_table(report, width) + clock_lines(report);
}

std::string groups_text(const analysis::HostsReport& report, const GroupText& group, std::size_t width) {
    if (report.hosts.size() < 2 || report.groups.empty()) return {};
    TextTable table({Align::right, Align::left, Align::right, Align::right, Align::right});
    table.header({"Group", "Ranks", "Hosts", "Collectives", "MiB"});
    for (std::size_t i = 0; i < std::min(kShownGroups, report.groups.size()); ++i) {
        const analysis::RankGroup& g = report.groups[i];
        table.row({group(g.group), ranks_of(g), g.hosts > 0 ? std::to_string(g.hosts) : "-",
                   store::grouped(g.collectives),
                   analysis::cell_text({.unit = analysis::Unit::bytes}, analysis::known_cell(g.bytes))});
    }
    std::string text = "\nGroups, with the ranks that recorded their collectives\n" + table.text(width);
    if (report.groups.size() > kShownGroups) {
        text += fmt::format("... and {} more; --format json has all.\n", report.groups.size() - kShownGroups);
    }
    return text;
}

std::string stopped_text(const analysis::StopReport& report, std::size_t width) {
    if (!report.stopped) return {};
    TextTable table(
        {Align::right, Align::left, Align::left, Align::right, Align::right, Align::left, Align::left});
    table.header({"Rank", "Host", "Trace", "Ends (ms)", "Last step", "Last collective", "Waited in"});
    for (const analysis::RankAtEnd& rank : report.ranks) {
        table.row({std::to_string(rank.rank), rank.host.empty() ? "-" : rank.host,
                   rank.ended ? "whole" : "cut off", milliseconds(rank.last_ns),
                   rank.last_step >= 0 ? store::grouped(rank.last_step) : "-",
                   rank.last_collective.empty() ? "-" : rank.last_collective,
                   rank.rank == report.first_rank ? "(the first to stop)"
                   : rank.waiting.empty()         ? "-"
                                                  : rank.waiting});
    }
    return "\n" + stop_sentence(report) + "\n" + table.text(width);
}

Json places_json(const std::vector<analysis::HostPlace>& all) {
    Json hosts = Json::array();
    for (const analysis::HostPlace& host : all) {
        Json ranks = Json::array();
        for (const auto& member : host.ranks) {
            ranks.push_back({{"rank", member.rank},
                             {"local_rank", member.local_rank >= 0 ? Json(member.local_rank) : Json(nullptr)},
                             {"cpus", member.cpus.empty() ? Json(nullptr) : Json(member.cpus)}});
        }
        hosts.push_back(
            {{"host", host.name.empty() ? Json(nullptr) : Json(host.name)}, {"ranks", std::move(ranks)}});
    }
    return hosts;
}

Json hosts_json(const analysis::HostsReport& report) {
    Json hosts = places_json(report.hosts), groups = Json::array();
    for (std::size_t h = 0; h < report.hosts.size(); ++h) {
        const analysis::HostPlace& host = report.hosts[h];
        hosts[h]["collectives"] = report.known ? Json(host.collectives) : Json(nullptr);
        hosts[h]["last"] = report.known ? Json(host.last) : Json(nullptr);
        hosts[h]["late_us"] = host.collectives > 0 ? Json(to_us(host.median_late_ns)) : Json(nullptr);
    }
    for (const analysis::RankGroup& g : report.groups) {
        groups.push_back({{"group", g.group},
                          {"size", g.size},
                          {"ranks", g.ranks},
                          {"hosts", g.hosts > 0 ? Json(g.hosts) : Json(nullptr)},
                          {"collectives", g.collectives},
                          {"bytes", known_or_null(g.bytes)}});
    }
    Json clocks = nullptr;
    if (report.clocks) {
        const analysis::ClockAgreement& c = *report.clocks;
        clocks = {{"collectives", c.collectives},
                  {"residual_us", to_us(c.residual_ns)},
                  {"worst_us", to_us(c.worst_ns)},
                  {"uncertainty_us", c.uncertainty_ns ? Json(to_us(*c.uncertainty_ns)) : Json(nullptr)}};
    }
    return {{"hosts", std::move(hosts)},
            {"groups", std::move(groups)},
            {"traffic", json_of(result_table(analysis::host_traffic_fields(), report.traffic))},
            {"skew",
             {{"collectives", report.known ? Json(report.skewed) : Json(nullptr)},
              {"median_us", report.skewed > 0 ? Json(to_us(report.median_skew_ns)) : Json(nullptr)},
              {"worst_us", report.skewed > 0 ? Json(to_us(report.worst_skew_ns)) : Json(nullptr)}}},
            {"clocks", std::move(clocks)}};
}

Json stopped_json(const analysis::StopReport& report) {
    if (!report.stopped) return nullptr;
    const auto text = [](const std::string& value) { return value.empty() ? Json(nullptr) : Json(value); };
    Json ranks = Json::array();
    for (const analysis::RankAtEnd& rank : report.ranks) {
        ranks.push_back({{"rank", rank.rank},
                         {"host", text(rank.host)},
                         {"ended", rank.ended},
                         {"last_ns", rank.last_ns},
                         {"last_step", rank.last_step >= 0 ? Json(rank.last_step) : Json(nullptr)},
                         {"last_collective", text(rank.last_collective)},
                         {"waiting", text(rank.waiting)},
                         {"said", rank.said}});
    }
    return {{"rank", report.first_rank >= 0 ? Json(report.first_rank) : Json(nullptr)},
            {"host", text(report.host)},
            {"told", report.told},
            {"lost", report.lost},
            {"reason", text(report.reason)},
            {"at_ns", report.at_ns},
            {"sentence", stop_sentence(report)},
            {"ranks", std::move(ranks)}};
}

}  // namespace shardscope::traces::report
