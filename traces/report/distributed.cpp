// All ranks together; see rank_traffic_fields(), traffic_fields(), axis_traffic_fields() and
// slow_collective_fields().
#include "traces/analysis/communication/distributed.h"

#include <algorithm>
#include <span>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "traces/report/hosts.h"
#include "traces/report/print.h"

namespace shardscope::traces::report {
namespace {

constexpr std::size_t kShownSlow = 10, kShownTraffic = 40;

// Shows groups as small numbers, in the order of the table: NCCL's ids are hashes.
class GroupNames {
  public:
    std::int64_t operator[](std::int64_t group) {
        const auto it = std::find(groups_.begin(), groups_.end(), group);
        if (it != groups_.end()) return it - groups_.begin();
        groups_.push_back(group);
        return static_cast<std::int64_t>(groups_.size()) - 1;
    }
    void apply_to(analysis::ResultTable& table) {
        for (std::size_t c = 0; c < table.columns.size(); ++c) {
            if (table.columns[c].key != "group") continue;
            for (std::vector<store::Cell>& row : table.rows) {
                if (const auto* group = std::get_if<std::int64_t>(&row[c])) row[c] = (*this)[*group];
            }
        }
    }

  private:
    std::vector<std::int64_t> groups_;
};

template <class Row>
analysis::ResultTable first_rows(analysis::Fields<Row> fields, const std::vector<Row>& rows,
                                 std::size_t most) {
    return analysis::result_table(fields, std::span(rows).first(std::min(most, rows.size())));
}

// Why figures are missing if host threads communicated.
std::string host_sentence(const analysis::DistributedReport& report, std::size_t width) {
    if (report.host_libraries.empty()) return {};
    const bool devices = std::any_of(report.ranks.begin(), report.ranks.end(),
                                     [](const analysis::RankTraffic& r) { return r.device_known; });
    return "\n" + paragraph(fmt::format("{} executed these collectives on host threads, whose times are "
                                        "shown; how much compute hides is unknown"
                                        "{}.",
                                        report.host_libraries,
                                        devices ? "" : ", because nothing is recorded on a device"),
                            width);
}

std::string ranks_table(const analysis::DistributedReport& report, std::size_t width) {
    const std::string of = report.stepped ? "Mean per step" : "The whole trace, which has no steps,";
    return of + " by rank; MiB of the full buffers\n" +
           text_of(result_table(analysis::rank_traffic_fields(), report.ranks), width);
}

std::string traffic_table(const analysis::DistributedReport& report, GroupNames& groups, std::size_t width) {
    analysis::ResultTable table = first_rows(analysis::traffic_fields(), report.traffic, kShownTraffic);
    groups.apply_to(table);
    std::string text = "\nTraffic: each collective once; wait of one rank's part; GB/s = 10^9 bytes/s\n" +
                       text_of(table, width, 2);
    if (report.traffic.size() > kShownTraffic) {
        text +=
            fmt::format("... and {} more; --format json has all.\n", report.traffic.size() - kShownTraffic);
    }
    return text;
}

// One row per axis of the mesh, if that is known.
std::string axes_table(const analysis::DistributedReport& report, std::size_t width) {
    if (report.axes.empty()) return {};
    return fmt::format("\nBy axis of the mesh: {}; bandwidths of all collectives together\n",
                       report.stepped ? "a rank's mean per step" : "a rank's mean over the whole trace") +
           text_of(result_table(analysis::axis_traffic_fields(), report.axes), width);
}

std::string slow_table(const analysis::DistributedReport& report, GroupNames& groups, std::size_t width) {
    analysis::ResultTable table = first_rows(analysis::slow_collective_fields(), report.slowest, kShownSlow);
    groups.apply_to(table);
    return "\nLongest waits: summed over ranks, with the rank that arrived last\n" + text_of(table, width, 3);
}

std::string table_text(const analysis::DistributedReport& report, std::size_t width) {
    if (report.ranks.empty()) return std::string(kNothingSelected);
    if (report.by_axis) {
        return report.axes.empty() ? std::string(analysis::kNoKnownAxis) + "\n"
                                   : axes_table(report, width).substr(1);
    }
    GroupNames groups;
    std::string text = ranks_table(report, width);
    text += stopped_text(report.stopped, width);
    if (report.traffic.empty()) return text + "\nNo collectives.\n";
    text += hosts_text(report.hosts, width);
    text += axes_table(report, width);
    text += traffic_table(report, groups, width);
    text += groups_text(
        report.hosts,
        [&](std::int64_t group) { return group == -1 ? std::string("-") : std::to_string(groups[group]); },
        width);
    if (!report.slowest.empty()) text += slow_table(report, groups, width);
    text += host_sentence(report, width);
    if (report.without_metadata > 0) {
        text +=
            fmt::format("\n{} known only from {}: matched by order within the operation; sizes unknown.\n",
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

std::string json_text(const analysis::DistributedReport& report) {
    if (report.by_axis)
        return json_line({{"axes", json_of(result_table(analysis::axis_traffic_fields(), report.axes))}});
    return json_line({{"ranks", json_of(result_table(analysis::rank_traffic_fields(), report.ranks))},
                      {"traffic", json_of(result_table(analysis::traffic_fields(), report.traffic))},
                      {"axes", json_of(result_table(analysis::axis_traffic_fields(), report.axes))},
                      {"slowest", json_of(result_table(analysis::slow_collective_fields(), report.slowest))},
                      {"collectives", report.collectives},
                      {"unmatched", report.unmatched},
                      {"without_metadata", report.without_metadata},
                      {"hosts", hosts_json(report.hosts)},
                      {"stopped", stopped_json(report.stopped)}});
}

std::string csv_text(const analysis::DistributedReport& report) {
    return csv_of(report.by_axis ? result_table(analysis::axis_traffic_fields(), report.axes)
                                 : result_table(analysis::traffic_fields(), report.traffic));
}

}  // namespace

std::string render(const analysis::DistributedReport& result, Format format, std::size_t width) {
    return render_as(result, format, width, table_text, json_text, csv_text);
}

}  // namespace shardscope::traces::report
