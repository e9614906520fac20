// The topology of a trace as one SVG file: matrices, since any number of devices stays readable in them.
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include "traces/analysis/topology/pair_traffic.h"
#include "traces/report/print.h"
#include "traces/report/topology.h"
#include "traces/schema/text.h"

namespace shardscope::traces::report {
namespace {

using analysis::HostTopology;
using analysis::PairTraffic;
using analysis::TopologyLink;

constexpr std::size_t kMostDrawn = 64;  // devices of a matrix
constexpr int kMargin = 24, kLabel = 64, kCell = 66, kRow = 40, kTitle = 30, kSmallCell = 46, kSmallRow = 28,
              kLegendRow = 22, kLegendWidth = 380, kLeastWidth = 460;

std::string escaped(std::string_view raw) {
    std::string text;
    for (const char c : printable(raw)) {
        switch (c) {
            case '<':
                text += "&lt;";
                break;
            case '>':
                text += "&gt;";
                break;
            case '&':
                text += "&amp;";
                break;
            case '"':
                text += "&quot;";
                break;
            default:
                text += c;
        }
    }
    return text;
}

// The style's class of a link and of a status.
std::string link_class(std::string_view link) {
    return fmt::format("d{}", analysis::link_distance(link));
}
std::string status_class(std::string_view status) {
    return status == "OK" ? "ok" : status.empty() || status == "U" ? "d6" : "no";
}

std::string bytes_of(std::int64_t bytes) {
    return mb(bytes) + " MiB";
}

// Draws downwards from y(); width() grows with what is drawn.
class Picture {
  public:
    int y() const { return y_; }

    void heading(const std::string& text) {
        y_ += kTitle;
        label(kMargin, y_ - 10, "heading", "start", text);
    }
    void line(const std::string& text) {
        y_ += kLegendRow;
        label(kMargin, y_ - 6, "small", "start", text);
        widen(kMargin * 2 + static_cast<int>(display_width(text)) * 7);
    }

    struct Cell {
        std::string style, text, below, tip;
    };
    // Returns where the matrix ends to the right.
    template <typename CellOf>
    int matrix(int left, const std::string& title, const std::vector<std::string>& labels, int cell, int row,
               CellOf cell_of) {
        const int n = static_cast<int>(labels.size());
        int top = y_ + kTitle;
        label(left, top - 10, "title", "start", title);
        for (int i = 0; i < n; ++i) {
            const std::string& name = labels[static_cast<std::size_t>(i)];
            label(left + kLabel + i * cell + cell / 2, top + 14, "small", "middle", name);
            label(left + kLabel - 8, top + 20 + i * row + row / 2 + 5, "small", "end", name);
        }
        top += 20;
        for (int a = 0; a < n; ++a) {
            for (int b = 0; b < n; ++b)
                draw(left + kLabel + b * cell, top + a * row, cell, row,
                     cell_of(static_cast<std::size_t>(a), static_cast<std::size_t>(b)));
        }
        const int right = left + kLabel + n * cell;
        widen(right + kMargin);
        bottom_ = std::max(bottom_, top + n * row + 12);
        return right;
    }
    // Goes on below all that was drawn.
    void below() { y_ = std::max(y_, bottom_); }

    void legend(std::string_view style, const std::string& word, const std::string& meaning) {
        y_ += kLegendRow;
        body_ += fmt::format("<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"44\" height=\"18\" rx=\"3\"/>\n",
                             style, kMargin, y_ - 18);
        label(kMargin + 22, y_ - 5, "small in", "middle", word);
        label(kMargin + 54, y_ - 5, "small", "start", meaning);
        widen(kMargin + kLegendWidth);
    }

    std::string take() const {
        const int height = std::max(y_, bottom_) + kMargin;
        return fmt::format(
                   "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"topology\" viewBox=\"0 0 {0} {1}\" "
                   "width=\"{0}\" "
                   "height=\"{1}\" "
                   "role=\"img\" aria-label=\"Topology\">\n",
                   width_, height) +
               std::string(kStyle) +
               fmt::format("<rect class=\"page\" width=\"{}\" height=\"{}\"/>\n", width_, height) + body_ +
               "</svg>\n";
    }

  private:
    static constexpr std::string_view kStyle =
        "<style>\n"
        ".topology text{font:13px system-ui,sans-serif;fill:#1d2733}.topology .heading{font-size:17px;"
        "font-weight:600}\n"
        ".topology .title{font-weight:600}.topology .small{font-size:12px}.topology "
        ".below{font-size:10.5px}\n"
        ".topology .page{fill:#fff}.topology .self{fill:#eceff2}\n"
        ".topology .d0{fill:#8fd3b6}.topology .d1{fill:#bfe3c4}.topology .d2{fill:#e2ecb9}\n"
        ".topology .d3{fill:#fbe3a1}.topology .d4{fill:#f9c58a}.topology .d5{fill:#f2a58e}\n"
        ".topology .d6{fill:#dfe3e8}.topology .ok{fill:#a6dcb7}.topology .no{fill:#f2b5a7}\n"
        "@media(prefers-color-scheme:dark){.topology text{fill:#e4e9ee}.topology .page{fill:#161b21}\n"
        ".topology .self{fill:#2a3038}.topology .d0{fill:#1c6b50}.topology .d1{fill:#2f6640}\n"
        ".topology .d2{fill:#5a6427}.topology .d3{fill:#735a16}.topology .d4{fill:#7d4c18}\n"
        ".topology .d5{fill:#82392a}.topology .d6{fill:#39414b}.topology .ok{fill:#22653c}\n"
        ".topology .no{fill:#803528}}\n"
        "</style>\n";

    void label(int x, int y, std::string_view style, std::string_view anchor, const std::string& text) {
        body_ += fmt::format("<text class=\"{}\" x=\"{}\" y=\"{}\" text-anchor=\"{}\">{}</text>\n", style, x,
                             y, anchor, escaped(text));
    }
    void draw(int x, int y, int cell, int row, const Cell& c) {
        body_ += fmt::format("<g><rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"3\"/>",
                             c.style, x + 1, y + 1, cell - 2, row - 2);
        if (!c.tip.empty()) body_ += fmt::format("<title>{}</title>", escaped(c.tip));
        body_ += '\n';
        const int middle = y + row / 2 + 5;
        label(x + cell / 2, c.below.empty() ? middle : middle - 7, "small", "middle", c.text);
        if (!c.below.empty()) label(x + cell / 2, middle + 8, "below", "middle", c.below);
        body_ += "</g>\n";
    }
    void widen(int width) { width_ = std::max(width_, width); }

    int width_ = kLeastWidth, y_ = kMargin - 10, bottom_ = 0;
    std::string body_;
};

// The traffic of two nodes: of their first ranks that have any.
const PairTraffic* traffic_of(const analysis::TopologyReport& report, const HostTopology& host, std::size_t a,
                              std::size_t b) {
    for (const int from : host.nodes[a].ranks)
        for (const int to : host.nodes[b].ranks)
            if (const PairTraffic* pair = report.pair(from, to)) return pair;
    return nullptr;
}

Picture::Cell link_cell(const analysis::TopologyReport& report, const HostTopology& host, std::size_t a,
                        std::size_t b) {
    const analysis::TopologyNode &from = host.nodes[a], &to = host.nodes[b];
    if (a == b) return {"self", "", "", from.name.empty() ? from.label : from.label + ": " + from.name};
    const TopologyLink* link = host.link(a, b);
    const std::string word = link == nullptr ? "" : link->link;
    Picture::Cell cell{link_class(word), word.empty() ? "?" : word, "",
                       fmt::format("{} to {}: {}", from.label, to.label,
                                   word.empty() ? "the link is not known" : analysis::link_meaning(word))};
    if (link != nullptr && link->bytes_per_second > 0)
        cell.tip += fmt::format("; {:.4g} GB/s in one direction", link->bytes_per_second * 1e-9);
    if (const PairTraffic* pair = traffic_of(report, host, a, b)) {
        cell.below = pair->bus_gbps > 0 ? fmt::format("{:.3g} GB/s", pair->bus_gbps) : bytes_of(pair->bytes);
        cell.tip += fmt::format("; rank {} sent {} to rank {}", pair->from_rank, bytes_of(pair->bytes),
                                pair->to_rank);
        if (pair->bus_gbps > 0) cell.tip += fmt::format(" at {:.3g} GB/s (bus bandwidth)", pair->bus_gbps);
    }
    return cell;
}

void draw_host(Picture& picture, const analysis::TopologyReport& report, const HostTopology& host,
               std::map<int, std::string>& links, std::map<std::string, std::string>& statuses) {
    std::vector<std::size_t> all, gpus;
    std::vector<std::string> all_labels, gpu_labels;
    for (std::size_t n = 0; n < host.nodes.size() && n < kMostDrawn; ++n) {
        all.push_back(n);
        all_labels.push_back(host.nodes[n].label);
        if (!host.nodes[n].gpu) continue;
        gpus.push_back(n);
        gpu_labels.push_back(host.nodes[n].label);
    }
    for (const auto& [ends, link] : host.links)
        if (!link.link.empty()) links.try_emplace(analysis::link_distance(link.link), link.link);
    picture.heading(host.host.empty() ? "Host unknown" : "Host " + host.host);
    picture.matrix(kMargin, "Links", all_labels, kCell, kRow,
                   [&](std::size_t a, std::size_t b) { return link_cell(report, host, all[a], all[b]); });
    picture.below();
    static constexpr std::pair<std::string_view, std::string TopologyLink::*> kStatuses[] = {
        {"Reads", &TopologyLink::read},
        {"Writes", &TopologyLink::write},
        {"NVLink", &TopologyLink::nvlink},
        {"Atomics", &TopologyLink::atomics}};
    int left = kMargin;
    for (const auto& each : kStatuses) {
        const std::string_view title = each.first;
        const auto status = each.second;
        bool any = false;
        for (const auto& [ends, link] : host.links) {
            const std::string& word = link.*status;
            any = any || !word.empty();
            if (!word.empty()) statuses.try_emplace(word, analysis::access_meaning(word));
        }
        if (!any) continue;
        const int width = kLabel + static_cast<int>(gpus.size()) * kSmallCell;
        if (left > kMargin && left + width > 1100) {
            picture.below();
            left = kMargin;
        }
        const std::string name = fmt::format("Peer access: {}", schema::lower_case(title));
        left = picture.matrix(left, title == "NVLink" ? "Peer access: NVLink" : name, gpu_labels, kSmallCell,
                              kSmallRow,
                              [&](std::size_t a, std::size_t b) -> Picture::Cell {
                                  if (a == b) return {"self", "", "", ""};
                                  const TopologyLink* link = host.link(gpus[a], gpus[b]);
                                  const std::string word = link == nullptr ? "" : link->*status;
                                  const std::string_view meaning = analysis::access_meaning(word);
                                  return {status_class(word), word.empty() ? "?" : word, "",
                                          fmt::format("{} to {}: {}", gpu_labels[a], gpu_labels[b],
                                                      meaning.empty() ? "unknown" : meaning)};
                              }) +
               kMargin;
    }
    picture.below();
    if (host.nodes.size() > kMostDrawn)
        picture.line(fmt::format("{} of its {} devices are drawn.", kMostDrawn, host.nodes.size()));
}

}  // namespace

std::string topology_svg(const analysis::TopologyReport& report) {
    Picture picture;
    std::map<int, std::string> links;
    std::map<std::string, std::string> statuses;
    if (report.hosts.empty()) picture.line("This trace has no topology.");
    for (const HostTopology& host : report.hosts) draw_host(picture, report, host, links, statuses);
    if (!links.empty() || !statuses.empty()) picture.heading("Legend");
    for (const auto& [distance, link] : links) {
        picture.legend(link_class(link), distance == 0 ? "NV#" : link,
                       distance == 0 ? "through # NVLinks" : analysis::link_meaning(link));
    }
    for (const auto& [word, meaning] : statuses) picture.legend(status_class(word), word, meaning);
    if (!report.pairs.empty() && !report.hosts.empty())
        picture.line("GB/s in a cell: bus bandwidth that ranks of the row measured to ranks of the column.");
    return picture.take();
}

}  // namespace shardscope::traces::report
