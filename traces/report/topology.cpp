#include "traces/report/topology.h"

#include <algorithm>
#include <functional>
#include <set>
#include <string_view>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "traces/analysis/topology/pair_traffic.h"
#include "traces/report/print.h"

namespace shardscope::traces::report {
namespace {

using Json = nlohmann::ordered_json;
using analysis::HostTopology;
using analysis::TopologyLink;
using analysis::TopologyNode;

constexpr std::size_t kMostPrinted = 256;  // devices of a matrix

struct Access {
    std::string_view title, option;
    std::string TopologyLink::*status;
};
constexpr Access kAccess[] = {{"Peer access: reads", "r", &TopologyLink::read},
                              {"Peer access: writes", "w", &TopologyLink::write},
                              {"Peer access: NVLink", "n", &TopologyLink::nvlink},
                              {"Peer access: atomics", "a", &TopologyLink::atomics}};

using CellText = std::function<std::string(std::size_t row, std::size_t column)>;

// Rows and columns `nodes`; columns of two blanks between them, without an end.
std::string matrix(const HostTopology& host, const std::vector<std::size_t>& nodes, bool affinity,
                   const CellText& cell) {
    TextTable table(std::vector<Align>(nodes.size() + 3, Align::left));
    std::vector<std::string> head = {""};
    for (const std::size_t n : nodes) head.push_back(host.nodes[n].label);
    if (affinity) head.insert(head.end(), {"CPU Affinity", "NUMA Affinity"});
    table.row(head);
    for (const std::size_t a : nodes) {
        std::vector<std::string> row = {host.nodes[a].label};
        for (const std::size_t b : nodes) row.push_back(a == b ? "X" : cell(a, b));
        const TopologyNode& node = host.nodes[a];
        if (affinity && node.gpu) {
            row.push_back(node.cpus.empty() ? "N/A" : node.cpus);
            row.push_back(node.numa < 0 ? "N/A" : std::to_string(node.numa));
        }
        table.row(row);
    }
    return table.text();
}

std::string legend_text(const std::vector<std::pair<std::string, std::string>>& legend) {
    if (legend.empty()) return {};
    TextTable table({Align::left, Align::left, Align::left});
    for (const auto& [word, meaning] : legend) table.row({"  " + word, "= " + meaning});
    return table.text();
}

// The words of a matrix, nearest first, with their meaning; those of any number of NVLinks are one.
void add_link(std::map<int, std::pair<std::string, std::string>>& legend, const std::string& link) {
    const int distance = analysis::link_distance(link);
    if (distance == analysis::kUnknownDistance) return;
    legend[distance] = distance == 0 ? std::pair<std::string, std::string>("NV#", "through # NVLinks")
                                     : std::pair(link, analysis::link_meaning(link));
}

// An empty line before what follows.
void begin_section(std::string& text) {
    if (!text.empty() && !text.ends_with("\n\n")) text += '\n';
}

std::string host_text(const HostTopology& host) {
    std::vector<std::size_t> all, gpus;
    for (std::size_t n = 0; n < host.nodes.size() && n < kMostPrinted; ++n) {
        all.push_back(n);
        if (host.nodes[n].gpu) gpus.push_back(n);
    }
    std::map<int, std::pair<std::string, std::string>> links;
    std::set<std::string> statuses;
    const bool has_links = std::any_of(host.links.begin(), host.links.end(),
                                       [](const auto& link) { return !link.second.link.empty(); });
    std::string text = host.host.empty() ? "" : fmt::format("Host {}\n\n", printable(host.host));
    if (has_links) {
        text += "Links (nvidia-smi topo -m)\n";
        text += matrix(host, all, true, [&](std::size_t a, std::size_t b) -> std::string {
            const TopologyLink* link = host.link(a, b);
            if (link == nullptr || link->link.empty()) return "-";
            add_link(links, link->link);
            return link->link;
        });
    }
    for (const Access& access : kAccess) {
        if (std::none_of(host.links.begin(), host.links.end(),
                         [&](const auto& link) { return !(link.second.*access.status).empty(); }))
            continue;
        begin_section(text);
        text += fmt::format("{} (nvidia-smi topo -p2p {})\n", access.title, access.option);
        text += matrix(host, gpus, false, [&](std::size_t a, std::size_t b) -> std::string {
            const TopologyLink* link = host.link(a, b);
            if (link == nullptr || (link->*access.status).empty()) return "U";
            statuses.insert(link->*access.status);
            return link->*access.status;
        });
    }
    std::vector<std::pair<std::string, std::string>> legend;
    if (has_links || !statuses.empty()) legend.emplace_back("X", "the device itself");
    for (const auto& [distance, word] : links) legend.push_back(word);
    for (const std::string& status : statuses)
        if (const auto meaning = analysis::access_meaning(status); !meaning.empty())
            legend.emplace_back(status, meaning);
    const auto add = [&text](const char* title, const std::string& content) {
        if (content.empty()) return;
        begin_section(text);
        text += title + content;
    };
    add("Legend\n", legend_text(legend));
    std::string adapters, names;
    for (const TopologyNode& node : host.nodes) {
        if (node.name.empty()) continue;
        (node.gpu ? names : adapters) += fmt::format("  {}: {}\n", node.label, printable(node.name));
    }
    add("Network adapters\n", adapters);
    add("GPUs\n", names);
    if (host.nodes.size() > kMostPrinted)
        text += fmt::format("\n{} of its {} devices are shown; --format json has all.\n", kMostPrinted,
                            host.nodes.size());
    return text;
}

std::string table_text(const analysis::TopologyReport& report, std::size_t width) {
    std::string text;
    for (const HostTopology& host : report.hosts) text += (text.empty() ? "" : "\n") + host_text(host);
    if (report.hosts.empty()) {
        text = paragraph(
            "This trace has no topology: record it with shardscope-record on a host with GPUs, or add what "
            "nvidia-smi "
            "topo -m printed there (shardscope-trace topology FILE --from TEXT -o OUT.sqlite).",
            width);
    }
    if (!report.pairs.empty()) {
        text += "\nTraffic from rank to rank\n" +
                text_of(analysis::result_table(analysis::pair_traffic_fields(), report.pairs), width, 2);
    }
    for (const std::string& note : report.notes) text += "\n" + paragraph(note, width);
    return text;
}

Json known(const std::string& text) {
    return text.empty() ? Json() : Json(text);
}
template <typename Number>
Json known(Number value, Number least = 0) {
    return value < least ? Json() : Json(value);
}

Json host_json(const HostTopology& host) {
    Json devices = Json::array(), links = Json::array();
    for (const TopologyNode& node : host.nodes) {
        devices.push_back({{"device", node.label},
                           {"kind", node.gpu ? "gpu" : "infiniband"},
                           {"number", node.number},
                           {"name", known(node.name)},
                           {"bus", known(node.bus)},
                           {"numa", known(node.numa)},
                           {"cpus", known(node.cpus)},
                           {"bytes_per_second", known(node.bytes_per_second)},
                           {"visible", node.visible},
                           {"ranks", node.ranks}});
    }
    for (const auto& [ends, link] : host.links) {
        links.push_back({{"from", host.nodes[ends.first].label},
                         {"to", host.nodes[ends.second].label},
                         {"link", known(link.link)},
                         {"lanes", known(link.lanes)},
                         {"bytes_per_second", known(link.bytes_per_second)},
                         {"read", known(link.read)},
                         {"write", known(link.write)},
                         {"nvlink", known(link.nvlink)},
                         {"atomics", known(link.atomics)},
                         {"source", known(link.source)}});
    }
    return {{"host", host.host}, {"devices", std::move(devices)}, {"links", std::move(links)}};
}

std::string json_text(const analysis::TopologyReport& report) {
    Json hosts = Json::array();
    for (const HostTopology& host : report.hosts) hosts.push_back(host_json(host));
    return json_line(
        {{"hosts", std::move(hosts)},
         {"pairs", json_of(analysis::result_table(analysis::pair_traffic_fields(), report.pairs))},
         {"notes", report.notes}});
}

std::string csv_text(const analysis::TopologyReport& report) {
    std::vector<std::vector<store::Cell>> rows;
    const auto number = [](auto value) { return value < 0 ? store::Cell() : analysis::to_cell(value); };
    for (const HostTopology& host : report.hosts) {
        for (const auto& [ends, link] : host.links) {
            rows.push_back({host.host, host.nodes[ends.first].label, host.nodes[ends.second].label, link.link,
                            number(link.lanes), number(link.bytes_per_second), link.read, link.write,
                            link.nvlink, link.atomics, link.source});
        }
    }
    return rows_csv({{"host"},
                     {"from"},
                     {"to"},
                     {"link"},
                     {"lanes"},
                     {"bytes_per_second"},
                     {"read"},
                     {"write"},
                     {"nvlink"},
                     {"atomics"},
                     {"source"}},
                    rows);
}

}  // namespace

std::string render(const analysis::TopologyReport& report, Format format, std::size_t width) {
    return render_as(report, format, width, table_text, json_text, csv_text);
}

}  // namespace shardscope::traces::report
