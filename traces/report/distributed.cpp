// The ranks' work together as a table, JSON and CSV; see distributed_report.
#include "traces/analysis/communication/distributed.h"

#include <algorithm>
#include <iterator>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "traces/report/formats.h"
#include "traces/report/hosts.h"
#include "traces/report/json_parts.h"
#include "traces/report/units.h"
#include "traces/schema/json_text.h"

namespace shardscope::traces {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kShownSlow = 10, kShownTraffic = 40;

std::string size_name(std::int64_t bytes) {
    return bytes >= (1 << 20) ? fmt::format("{} MB", bytes >> 20) : fmt::format("{} KB", bytes >> 10);
}
// "64 KB - 1 MB".
std::string class_name(int size_class) {
    constexpr int kClasses = static_cast<int>(std::size(kSizeClasses));
    if (size_class < 0) return "unknown";
    if (size_class == 0) return "< " + size_name(kSizeClasses[0]);
    if (size_class >= kClasses) return ">= " + size_name(kSizeClasses[kClasses - 1]);
    return size_name(kSizeClasses[size_class - 1]) + " - " + size_name(kSizeClasses[size_class]);
}

std::string where(int nodes) {
    if (nodes == 0) return "-";
    return nodes == 1 ? "one node" : fmt::format("{} nodes", nodes);
}

// Groups as small numbers, in the order of the table: ids are hashes where NCCL tells them.
class GroupNames {
  public:
    std::string operator[](std::int64_t group) {
        if (group == -1) return "-";
        const auto it = std::find(groups_.begin(), groups_.end(), group);
        if (it != groups_.end()) return std::to_string(it - groups_.begin());
        groups_.push_back(group);
        return std::to_string(groups_.size() - 1);
    }

  private:
    std::vector<std::int64_t> groups_;
};

// What compute hides of host threads' collectives is not known.
bool knows_overlap(const RankTraffic& rank) {
    return rank.device_known && !rank.on_host;
}

bool knows_collectives(const RankTraffic& rank) {
    return rank.device_known || rank.on_host;
}

// Why figures are missing, where host threads communicated.
std::string host_sentence(const DistributedReport& report, std::size_t width) {
    if (report.host_libraries.empty()) return {};
    const bool devices = std::any_of(report.ranks.begin(), report.ranks.end(),
                                     [](const RankTraffic& r) { return r.device_known; });
    return "\n" + paragraph(fmt::format("{} carried these collectives out on host threads, whose times are "
                                        "shown; what compute hides of them cannot be said{}.",
                                        report.host_libraries,
                                        devices ? "" : ", because nothing is recorded on a device"),
                            width);
}

std::string ranks_table(const DistributedReport& report, std::size_t width) {
    TextTable table({Align::right, Align::left, Align::right, Align::right, Align::right, Align::right,
                     Align::right, Align::right, Align::right, Align::right});
    table.header({"Rank", "Host", "Computation", "Overlapped", "Exposed", "Other", "Collectives", "MB",
                  "Transfer", "Waiting"});
    for (const RankTraffic& r : report.ranks) {
        const auto mean = [&](std::int64_t value) {
            return r.steps > 0 ? static_cast<double>(value) / static_cast<double>(r.steps) : 0.0;
        };
        const auto known = [&](std::int64_t value, bool is_known) {
            return is_known ? mean_us(value, r.steps) : std::string("-");
        };
        const bool whole = r.collectives % std::max<std::int64_t>(r.steps, 1) == 0;
        table.row({std::to_string(r.rank), r.host.empty() ? "-" : r.host,
                   known(r.parts.computation, r.device_known), known(r.parts.overlapped, knows_overlap(r)),
                   known(r.parts.exposed_communication, knows_overlap(r)),
                   known(r.parts.other, knows_overlap(r)),
                   knows_collectives(r) ? grouped(mean(r.collectives), whole ? 0 : 2) : "-",
                   known_mb(mean(r.bytes)), known(r.transfer_ns, knows_collectives(r)),
                   known(r.ns - r.transfer_ns, knows_collectives(r))});
    }
    const std::string of = report.stepped ? "Mean of a step" : "The whole trace, which names no steps,";
    return of + " by rank; times in us, MB = 2^20 bytes of the full buffers\n" + table.text(width);
}

std::string traffic_table(const DistributedReport& report, GroupNames& groups, std::size_t width) {
    TextTable table({Align::left, Align::right, Align::right, Align::left, Align::left, Align::right,
                     Align::right, Align::right, Align::right, Align::right, Align::right},
                    2);
    table.header({"Operation", "Group", "Ranks", "Within", "Size", "Count", "MB", "Transfer (us)",
                  "Wait/part", "algbw", "busbw"});
    std::size_t shown = 0;
    for (const Traffic& t : report.traffic) {
        if (shown++ >= kShownTraffic) continue;
        table.row({std::string(name(t.operation)), groups[t.group],
                   t.group_size > 0 ? std::to_string(t.group_size) : "-", where(t.nodes),
                   class_name(t.size_class), grouped(t.count), known_mb(t.bytes), us(micro(t.transfer_ns)),
                   mean_us(t.waiting_ns, t.parts), known_rate(t.algbw_gbps, 2), known_rate(t.busbw_gbps, 2)});
    }
    std::string text =
        "\nTraffic: each collective once; wait of one rank's part in us; GB/s = 10^9 bytes/s\n" +
        table.text(width);
    if (shown > kShownTraffic)
        text += fmt::format("... and {} more; --format json has all.\n", shown - kShownTraffic);
    return text;
}

std::string slow_table(const DistributedReport& report, GroupNames& groups, std::size_t width) {
    TextTable table({Align::left, Align::right, Align::right, Align::right, Align::right, Align::right,
                     Align::right, Align::right, Align::right, Align::right},
                    3);
    table.header({"Operation", "Group", "Number", "Start (ms)", "MB", "Ranks", "Transfer (us)",
                  "Longest (us)", "Waiting (us)", "Last rank"});
    for (std::size_t i = 0; i < std::min(kShownSlow, report.slowest.size()); ++i) {
        const SlowCollective& s = report.slowest[i];
        table.row({std::string(name(s.operation)), groups[s.group],
                   s.sequence >= 0 ? grouped(s.sequence) : "-", milliseconds(s.start_ns), known_mb(s.bytes),
                   std::to_string(s.ranks), us(micro(s.transfer_ns)), us(micro(s.longest_ns)),
                   us(micro(s.waiting_ns)), std::to_string(s.last_rank)});
    }
    return "\nWhere ranks waited most: the sum over ranks, and who came last\n" + table.text(width);
}

}  // namespace

std::string table_text(const DistributedReport& report, std::size_t width) {
    if (report.ranks.empty()) return std::string(kNothingSelected);
    GroupNames groups;
    std::string text = ranks_table(report, width);
    text += stopped_text(report.stopped, width);
    if (report.traffic.empty()) return text + "\nNo collectives.\n";
    text += hosts_text(report.hosts, width);
    text += traffic_table(report, groups, width);
    text += groups_text(
        report.hosts, [&](std::int64_t group) { return groups[group]; }, width);
    if (!report.slowest.empty()) text += slow_table(report, groups, width);
    text += host_sentence(report, width);
    if (report.without_metadata > 0) {
        text += fmt::format("\n{} known by {} alone: counterparts by order within the operation, no sizes.\n",
                            collectives_are(report.without_metadata),
                            report.without_metadata == 1 ? "its kernel" : "their kernels");
    }
    if (report.unmatched > 0) {
        text +=
            fmt::format("\n{} without a counterpart on another rank: the whole time counts as transfer.\n",
                        collectives_are(report.unmatched));
    }
    return text;
}

std::string json_text(const DistributedReport& report) {
    Json ranks = Json::array(), traffic = Json::array(), slowest = Json::array();
    for (const RankTraffic& r : report.ranks) {
        const double steps = r.steps > 0 ? static_cast<double>(r.steps) : 1;
        const auto mean = [&](std::int64_t ns, bool is_known) {
            return is_known ? Json(micro(ns) / steps) : Json(nullptr);
        };
        const auto sum = [&](std::int64_t ns) {
            return knows_collectives(r) ? Json(micro(ns)) : Json(nullptr);
        };
        ranks.push_back({{"rank", r.rank},
                         {"host", r.host},
                         {"steps", r.steps},
                         {"on", r.on_host ? "host" : "device"},
                         {"computation_us", mean(r.parts.computation, r.device_known)},
                         {"overlapped_us", mean(r.parts.overlapped, knows_overlap(r))},
                         {"exposed_communication_us", mean(r.parts.exposed_communication, knows_overlap(r))},
                         {"other_us", mean(r.parts.other, knows_overlap(r))},
                         {"overlap_percent",
                          r.parts.communication() > 0 ? Json(r.parts.overlap_percent()) : Json(nullptr)},
                         {"collectives", knows_collectives(r) ? Json(r.collectives) : Json(nullptr)},
                         {"bytes", known_or_null(r.bytes)},
                         {"us", sum(r.ns)},
                         {"transfer_us", sum(r.transfer_ns)},
                         {"waiting_us", sum(r.ns - r.transfer_ns)}});
    }
    for (const Traffic& t : report.traffic) {
        traffic.push_back({{"name", name(t.operation)},
                           {"on", t.on_host ? "host" : "device"},
                           {"group", t.group == -1 ? Json(nullptr) : Json(t.group)},
                           {"group_size", t.group_size > 0 ? Json(t.group_size) : Json(nullptr)},
                           {"nodes", t.nodes > 0 ? Json(t.nodes) : Json(nullptr)},
                           {"size", class_name(t.size_class)},
                           {"count", t.count},
                           {"bytes", known_or_null(t.bytes)},
                           {"transfer_us", micro(t.transfer_ns)},
                           {"waiting_us", micro(t.waiting_ns)},
                           {"parts", t.parts},
                           {"unmatched", t.unmatched},
                           {"algbw_gbps", known_or_null(t.algbw_gbps)},
                           {"busbw_gbps", known_or_null(t.busbw_gbps)}});
    }
    for (const SlowCollective& s : report.slowest) {
        slowest.push_back({{"name", name(s.operation)},
                           {"on", s.on_host ? "host" : "device"},
                           {"group", s.group == -1 ? Json(nullptr) : Json(s.group)},
                           {"sequence", s.sequence >= 0 ? Json(s.sequence) : Json(nullptr)},
                           {"bytes", known_or_null(s.bytes)},
                           {"ranks", s.ranks},
                           {"start_ns", s.start_ns},
                           {"transfer_us", micro(s.transfer_ns)},
                           {"longest_us", micro(s.longest_ns)},
                           {"waiting_us", micro(s.waiting_ns)},
                           {"last_rank", s.last_rank}});
    }
    const Json json = {{"ranks", std::move(ranks)},         {"traffic", std::move(traffic)},
                       {"slowest", std::move(slowest)},     {"collectives", report.collectives},
                       {"unmatched", report.unmatched},     {"without_metadata", report.without_metadata},
                       {"hosts", hosts_json(report.hosts)}, {"stopped", stopped_json(report.stopped)}};
    return dump_json(json) + "\n";
}

std::string csv_text(const DistributedReport& report) {
    std::vector<Column> columns;
    for (const char* column : {"name", "group", "group_size", "nodes", "size", "count", "bytes",
                               "transfer_us", "waiting_us", "parts", "unmatched", "algbw_gbps", "busbw_gbps"})
        columns.push_back({column});
    std::vector<std::vector<Cell>> rows;
    for (const Traffic& t : report.traffic) {
        rows.push_back({std::string(name(t.operation)), t.group == -1 ? Cell{} : Cell{t.group},
                        known(std::int64_t{t.group_size}), t.nodes > 0 ? Cell{std::int64_t{t.nodes}} : Cell{},
                        class_name(t.size_class), t.count, known(t.bytes), micro(t.transfer_ns),
                        micro(t.waiting_ns), t.parts, t.unmatched, known(t.algbw_gbps), known(t.busbw_gbps)});
    }
    return csv_text(columns, rows);
}

}  // namespace shardscope::traces
