// The module tree of the HTML report: branches that open and close.
#include <algorithm>

#include <fmt/core.h>

#include "traces/report/html_parts.h"
#include "traces/report/print.h"
#include "traces/store/grouped.h"

namespace shardscope::traces::report {

namespace {

constexpr int kOpenLevels = 2;             // levels that are open initially
constexpr std::size_t kNodesShown = 5000;  // nodes per rank; a browser would be too slow with more

std::string cells(std::string_view name, std::string_view calls, std::string_view host,
                  std::string_view device, std::string_view self) {
    return fmt::format(
        "<span class=\"row\"><b>{}</b><span>{}</span><span>{}</span><span>{}</span><span>{}</span></span>",
        name, calls, host, device, self);
}

class Tree {
  public:
    Tree(bool on_device, const Redactor& redact) : on_device_(on_device), redact_(redact) {}

    void add(const std::vector<analysis::ModuleNode>& nodes, int level) {
        for (const analysis::ModuleNode& node : nodes) {
            if (++shown_ > kNodesShown) return;
            const std::string row =
                cells(redact_.text(node.name), store::grouped(node.occurrences), us(node.host_us),
                      device(node.device_us), device(node.device_self_us));
            if (node.children.empty()) {
                html_ += "<div class=\"leaf\">" + row + "</div>\n";
                continue;
            }
            html_ +=
                fmt::format("<details{}><summary>{}</summary>\n", level < kOpenLevels ? " open" : "", row);
            add(node.children, level + 1);
            html_ += "</details>\n";
        }
    }

    std::string html() const {
        std::string text = "<div class=\"scroll\"><div class=\"tree\"><div class=\"head\">" +
                           cells("Module", "Calls", "Host (µs)", "Device (µs)", "Device self (µs)") +
                           "</div>\n" + html_ + "</div></div>\n";
        if (shown_ > kNodesShown)
            text += fmt::format("<p class=\"dim small\">Only the first {} are shown.</p>\n", kNodesShown);
        return text;
    }

  private:
    std::string device(double time) const { return on_device_ ? us(time) : "-"; }

    bool on_device_;
    const Redactor& redact_;
    std::size_t shown_ = 0;
    std::string html_;
};

std::string tree_of(const ReportedRun& run, const analysis::RankModules& rank, const Redactor& redact) {
    const auto own =
        std::find_if(run.summary.ranks.begin(), run.summary.ranks.end(),
                     [&](const analysis::RankSummary& other) { return other.rank == rank.rank; });
    Tree tree(own == run.summary.ranks.end() || own->on_device, redact);
    tree.add(rank.modules, 0);
    return tree.html();
}

}  // namespace

std::string html_modules(const ReportedRun& run, const Redactor& redact) {
    std::string html;
    std::string others;
    constexpr std::size_t kRanksWithTree = 8;
    std::size_t trees = 0, left_out = 0;
    for (const analysis::RankModules& rank : run.modules.ranks) {
        if (rank.modules.empty()) continue;
        if (++trees > kRanksWithTree) {
            ++left_out;
            continue;
        }
        if (html.empty()) {
            html =
                run.modules.ranks.size() > 1 ? fmt::format("<h3>Rank {}</h3>\n", rank.rank) : std::string();
            html += tree_of(run, rank, redact);
        } else {
            others += folded(fmt::format("Rank {}", rank.rank), tree_of(run, rank, redact));
        }
    }
    if (html.empty()) return {};
    if (left_out > 0)
        others += fmt::format(
            "<p class=\"dim small\">{} omitted.</p>\n",
            store::counted(static_cast<std::int64_t>(left_out), "more rank is", "more ranks are"));
    return html + others +
           "<p class=\"dim small\">Over the whole run; host time includes called modules; device time is of "
           "work launched inside, forward and backward.</p>\n";
}

}  // namespace shardscope::traces::report
