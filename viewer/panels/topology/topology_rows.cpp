// See topology_rows.h.
#include "viewer/panels/topology/topology_rows.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <utility>

#include <fmt/core.h>

#include "traces/schema/joined.h"
#include "traces/store/grouped.h"
#include "viewer/draw/format.h"
#include "viewer/tables/result_model.h"

namespace shardscope::viewer::panels {
namespace {

using traces::analysis::HostTopology;
using traces::analysis::PairTraffic;
using traces::analysis::TopologyLink;
using traces::analysis::TopologyNode;
using traces::analysis::TopologyReport;

constexpr double kTurn = 2 * std::numbers::pi;
// Radii within a box.
constexpr double kGpus = 0.29, kAdapters = 0.42;

class Picture {
  public:
    explicit Picture(std::shared_ptr<const TopologyReport> report) {
        made_.report = std::move(report);
        for (std::size_t h = 0; h < made_.report->hosts.size(); ++h) add_host(made_.report->hosts[h]);
        add_ranks();
        for (std::size_t h = 0; h < made_.report->hosts.size(); ++h) add_links(h);
        for (const PairTraffic& pair : made_.report->pairs) add_traffic(pair);
    }

    TopologyPicture take() {
        for (auto& [ends, edge] : edges_) {
            made_.most_bytes = std::max(made_.most_bytes, edge.bytes);
            made_.edges.push_back(std::move(edge));
        }
        return std::move(made_);
    }

  private:
    void place(std::size_t point, double angle, double radius) {
        made_.points[point].x = static_cast<float>(0.5 + radius * std::sin(angle));
        made_.points[point].y = static_cast<float>(0.5 - radius * std::cos(angle));
    }

    // GPUs by NUMA node, so that those of one are neighbours on the circle.
    void add_host(const HostTopology& host) {
        TopologyBox box{
            .host = host.host, .numas = {}, .first = made_.points.size(), .points = host.nodes.size()};
        std::vector<std::size_t> gpus;
        for (std::size_t n = 0; n < host.nodes.size(); ++n) {
            const TopologyNode& node = host.nodes[n];
            const std::size_t point = made_.points.size();
            made_.points.push_back(
                {.kind = node.gpu ? TopologyPoint::Kind::gpu : TopologyPoint::Kind::adapter,
                 .box = made_.boxes.size(),
                 .label = node.label,
                 .name = node.name,
                 .numa = node.numa,
                 .visible = node.visible,
                 .ranks = node.ranks});
            for (const int rank : node.ranks) point_of_rank_.try_emplace(rank, point);
            if (node.gpu) gpus.push_back(n);
        }
        std::stable_sort(gpus.begin(), gpus.end(), [&](std::size_t a, std::size_t b) {
            return host.nodes[a].numa < host.nodes[b].numa;
        });
        std::map<std::size_t, double> angles;
        for (std::size_t i = 0; i < gpus.size(); ++i) {
            const double angle = kTurn * (static_cast<double>(i) + 0.5) / static_cast<double>(gpus.size());
            angles[gpus[i]] = angle;
            place(box.first + gpus[i], angle, gpus.size() == 1 ? 0.0 : kGpus);
            const int numa = host.nodes[gpus[i]].numa;
            if (numa < 0) continue;
            if (box.numas.empty() || box.numas.back().number != numa)
                box.numas.push_back({numa, angle, angle});
            box.numas.back().to = angle;
        }
        place_adapters(host, box, angles);
        made_.boxes.push_back(std::move(box));
    }

    // Beyond the nearest GPU; several of one GPU side by side, those of none around the circle.
    void place_adapters(const HostTopology& host, const TopologyBox& box,
                        const std::map<std::size_t, double>& gpus) {
        std::map<std::size_t, std::vector<std::size_t>> of_gpu;
        std::vector<std::size_t> of_none;
        for (std::size_t n = 0; n < host.nodes.size(); ++n) {
            if (host.nodes[n].gpu) continue;
            std::optional<std::size_t> nearest;
            int distance = traces::analysis::kUnknownDistance;
            for (const auto& [gpu, angle] : gpus) {
                const TopologyLink* link = host.link(gpu, n);
                const int found = link == nullptr ? traces::analysis::kUnknownDistance
                                                  : traces::analysis::link_distance(link->link);
                // Of equals the one with fewer adapters so far: eight adapters of eight GPUs get one each.
                if (found > distance || found == traces::analysis::kUnknownDistance) continue;
                if (found < distance || of_gpu[gpu].size() < of_gpu[*nearest].size()) nearest = gpu;
                distance = found;
            }
            nearest ? of_gpu[*nearest].push_back(n) : of_none.push_back(n);
        }
        const double room = kTurn / static_cast<double>(std::max<std::size_t>(gpus.size(), 4));
        for (const auto& [gpu, adapters] : of_gpu) {
            const double count = static_cast<double>(adapters.size());
            for (std::size_t i = 0; i < adapters.size(); ++i)
                place(box.first + adapters[i],
                      gpus.at(gpu) + room * ((static_cast<double>(i) + 0.5) / count - 0.5), kAdapters);
        }
        for (std::size_t i = 0; i < of_none.size(); ++i)
            place(box.first + of_none[i],
                  kTurn * static_cast<double>(i) / static_cast<double>(of_none.size()), kAdapters);
    }

    // Those of the traffic that no device of the topology stands for, by host.
    void add_ranks() {
        std::map<std::string, std::vector<int>> missing;
        const auto miss = [&](int rank, const std::string& host) {
            if (!point_of_rank_.contains(rank)) {
                point_of_rank_[rank] = 0;
                missing[host].push_back(rank);
            }
        };
        for (const PairTraffic& pair : made_.report->pairs) {
            miss(pair.from_rank, pair.from_host);
            miss(pair.to_rank, pair.to_host);
        }
        for (auto& [host, ranks] : missing) {
            std::sort(ranks.begin(), ranks.end());
            const TopologyBox box{
                .host = host, .numas = {}, .first = made_.points.size(), .points = ranks.size()};
            for (std::size_t i = 0; i < ranks.size(); ++i) {
                point_of_rank_[ranks[i]] = made_.points.size();
                made_.points.push_back({.kind = TopologyPoint::Kind::rank,
                                        .box = made_.boxes.size(),
                                        .label = fmt::format("rank {}", ranks[i]),
                                        .name = {},
                                        .ranks = {ranks[i]}});
                place(made_.points.size() - 1,
                      kTurn * static_cast<double>(i) / static_cast<double>(ranks.size()),
                      ranks.size() == 1 ? 0.0 : kAdapters * 0.9);
            }
            made_.boxes.push_back(box);
        }
    }

    TopologyEdge& edge(std::size_t a, std::size_t b) {
        const auto [it, is_new] = edges_.try_emplace({std::min(a, b), std::max(a, b)});
        if (is_new) {
            it->second.a = std::min(a, b);
            it->second.b = std::max(a, b);
            it->second.distance = traces::analysis::kUnknownDistance;
        }
        return it->second;
    }

    void add_links(std::size_t h) {
        const HostTopology& host = made_.report->hosts[h];
        const std::size_t first = made_.boxes[h].first;
        for (std::size_t a = 0; a < host.nodes.size(); ++a) {
            for (std::size_t b = a + 1; b < host.nodes.size(); ++b) {
                const TopologyLink *there = host.link(a, b), *back = host.link(b, a);
                if (there == nullptr && back == nullptr) continue;
                TopologyEdge& made = edge(first + a, first + b);
                made.there = there;
                made.back = back;
                made.distance = traces::analysis::link_distance(made.link());
                for (const TopologyLink* link : {there, back}) {
                    if (link != nullptr && link->bytes_per_second > 0)
                        made.nominal_gbps = std::max(made.nominal_gbps, link->bytes_per_second * 1e-9);
                }
            }
            if (!host.nodes[a].gpu) continue;
            if (const auto adapter = traces::analysis::nearest_adapter(host, a))
                edge(first + a, first + *adapter).nearest = true;
        }
    }

    void add_traffic(const PairTraffic& pair) {
        const std::size_t from = point_of_rank_.at(pair.from_rank), to = point_of_rank_.at(pair.to_rank);
        if (from == to) return;  // two ranks of one device
        TopologyEdge& made = edge(from, to);
        made.traffic.push_back(&pair);
        made.bytes += pair.bytes;
        made.bus_gbps = std::max(made.bus_gbps, pair.bus_gbps);
        made.nominal_gbps = std::max(made.nominal_gbps, pair.nominal_gbps);
    }

    TopologyPicture made_;
    std::map<int, std::size_t> point_of_rank_;
    std::map<std::pair<std::size_t, std::size_t>, TopologyEdge> edges_;
};

std::string gbps_text(double gbps) {
    return draw::format_decimal(gbps, gbps < 10 ? 2 : 1) + " GB/s";
}

// "OK", or "CNS: not supported by the chipset".
std::string access_text(const std::string& status) {
    const std::string_view meaning = traces::analysis::access_meaning(status);
    return meaning.empty() || status == "OK" ? status : fmt::format("{}: {}", status, meaning);
}

void add_access(std::vector<TopologyFact>& facts, std::string_view what, std::string TopologyLink::*status,
                const TopologyLink* from_there, const TopologyLink* from_back) {
    const std::string there = from_there != nullptr ? from_there->*status : std::string();
    const std::string back = from_back != nullptr ? from_back->*status : std::string();
    if (there.empty() && back.empty()) return;
    std::string text = access_text(there.empty() ? back : there);
    if (!there.empty() && !back.empty() && there != back)
        text = fmt::format("there {}, back {}", access_text(there), access_text(back));
    facts.push_back({std::string(what), std::move(text)});
}

}  // namespace

const TopologyEdge* TopologyPicture::edge(std::size_t a, std::size_t b) const {
    const std::pair ends{std::min(a, b), std::max(a, b)};
    const auto found = std::partition_point(edges.begin(), edges.end(), [&](const TopologyEdge& edge) {
        return std::pair{edge.a, edge.b} < ends;
    });
    return found != edges.end() && std::pair{found->a, found->b} == ends ? &*found : nullptr;
}

std::string TopologyPicture::name(std::size_t point) const {
    const TopologyPoint& of = points[point];
    const std::string& host = boxes[of.box].host;
    return boxes.size() < 2 || host.empty() ? of.label : host + " " + of.label;
}

TopologyPicture topology_picture(std::shared_ptr<const TopologyReport> report) {
    return Picture(std::move(report)).take();
}

std::optional<double> edge_share(const TopologyPicture& picture, const TopologyEdge& edge, EdgeColor by) {
    const TopologyReport& report = *picture.report;
    switch (by) {
        case EdgeColor::link:
            if (edge.distance >= traces::analysis::kUnknownDistance) return {};
            return 1 - static_cast<double>(edge.distance) / (traces::analysis::kUnknownDistance - 1);
        case EdgeColor::bandwidth:
            if (edge.bus_gbps <= 0 || report.fastest_gbps <= 0) return {};
            return edge.bus_gbps / report.fastest_gbps;
        case EdgeColor::bytes:
            break;
    }
    if (edge.bytes <= 0) return {};
    return static_cast<double>(edge.bytes) / static_cast<double>(picture.most_bytes);
}

std::string edge_text(const TopologyEdge& edge, EdgeColor by) {
    switch (by) {
        case EdgeColor::link:
            return std::string(edge.link());
        case EdgeColor::bandwidth:
            return edge.bus_gbps > 0 ? gbps_text(edge.bus_gbps) : "";
        case EdgeColor::bytes:
            break;
    }
    return edge.bytes > 0 ? draw::format_size(edge.bytes) : "";
}

std::vector<TopologyFact> pair_facts(const TopologyPicture& picture, std::size_t a, std::size_t b) {
    std::vector<TopologyFact> facts;
    const TopologyEdge* found = picture.edge(a, b);
    if (found == nullptr) {
        facts.push_back({"Link", "unknown, and the trace sent nothing between them"});
        return facts;
    }
    const TopologyEdge& edge = *found;
    if (const std::string_view link = edge.link(); !link.empty()) {
        const std::string meaning = traces::analysis::link_meaning(link);
        facts.push_back({"Link", meaning.empty() ? std::string(link) : fmt::format("{}: {}", link, meaning)});
    } else {
        const bool told = !edge.traffic.empty() && !edge.traffic.front()->link.empty();
        facts.push_back({"Link", told ? edge.traffic.front()->link : std::string("unknown")});
    }
    const int lanes = std::max(edge.there != nullptr ? edge.there->lanes : -1,
                               edge.back != nullptr ? edge.back->lanes : -1);
    if (lanes > 0) facts.push_back({"Lanes", std::to_string(lanes)});
    if (edge.nominal_gbps > 0)
        facts.push_back({"Nominal", gbps_text(edge.nominal_gbps) + " in one direction"});
    // From the first of the two, whichever is the edge's.
    const TopologyLink *there = a <= b ? edge.there : edge.back, *back = a <= b ? edge.back : edge.there;
    add_access(facts, "Peer read", &TopologyLink::read, there, back);
    add_access(facts, "Peer write", &TopologyLink::write, there, back);
    add_access(facts, "NVLink", &TopologyLink::nvlink, there, back);
    add_access(facts, "Atomics", &TopologyLink::atomics, there, back);
    const TopologyPoint &first = picture.points[a], &second = picture.points[b];
    if (first.numa >= 0 && second.numa >= 0) {
        facts.push_back({"NUMA nodes", first.numa == second.numa
                                           ? fmt::format("both {}", first.numa)
                                           : fmt::format("{} and {}", first.numa, second.numa)});
    }
    if (edge.bytes == 0) facts.push_back({"Traffic", "none in the trace"});
    for (const PairTraffic* pair : edge.traffic) {
        std::string text = draw::format_size(pair->bytes);
        if (pair->collectives > 0)
            text += ", " + traces::store::counted(pair->collectives, "collective", "collectives");
        if (pair->messages > 0) text += ", " + traces::store::counted(pair->messages, "message", "messages");
        if (pair->bus_gbps > 0) text += fmt::format(", bus bandwidth {}", gbps_text(pair->bus_gbps));
        facts.push_back({fmt::format("Rank {} to {}", pair->from_rank, pair->to_rank), std::move(text)});
        if (!pair->path.empty()) facts.push_back({"Path", pair->path});
    }
    const TopologyLink* source = edge.there != nullptr ? edge.there : edge.back;
    if (source != nullptr && !source->source.empty()) facts.push_back({"Told by", source->source});
    return facts;
}

std::vector<TopologyFact> point_facts(const TopologyPicture& picture, std::size_t point) {
    const TopologyPoint& of = picture.points[point];
    std::vector<TopologyFact> facts;
    if (!picture.boxes[of.box].host.empty()) facts.push_back({"Host", picture.boxes[of.box].host});
    if (!of.name.empty()) facts.push_back({"Device", of.name});
    if (of.numa >= 0) facts.push_back({"NUMA node", std::to_string(of.numa)});
    if (!of.ranks.empty()) facts.push_back({"Ranks", traces::schema::joined(of.ranks, ", ")});
    if (!of.visible) facts.push_back({"Visible", "not to the job"});
    return facts;
}

std::shared_ptr<const tables::CellTable> pair_table(const TopologyReport& report) {
    return tables::whole_model(
        traces::analysis::result_table(traces::analysis::pair_traffic_fields(), report.pairs),
        {"bytes", "bus_gbps"});
}

}  // namespace shardscope::viewer::panels
