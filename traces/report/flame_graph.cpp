#include "traces/report/flame_graph.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include "traces/analysis/samples/flame.h"
#include "traces/report/html_parts.h"
#include "traces/report/text_table.h"
#include "traces/schema/text.h"
#include "traces/store/grouped.h"

namespace shardscope::traces::report {
namespace {

constexpr double kWidth = 1200, kSide = 10, kRow = 17, kHead = 54;
constexpr double kNarrowest = 0.25;  // px; a narrower box cannot be seen
constexpr double kCharacter = 6.7;   // px, of the 11 px monospaced font
constexpr std::size_t kFewest = 3;   // characters of a shortened name

// Reds and yellows by the name, so that a function has one colour everywhere.
std::string colour_of(std::string_view frame) {
    const std::uint64_t hash = schema::hash_of(frame);
    return fmt::format("hsl({},{}%,{}%)", 8 + hash % 42, 62 + hash / 64 % 20, 60 + hash / 4096 % 12);
}

std::string amount(const analysis::SamplesReport& report, std::int64_t weight) {
    if (!report.is_time) return store::grouped(weight);
    const double ms = static_cast<double>(weight) * 1e-6;
    return ms < 1000 ? fmt::format("{:.1f} ms", ms) : fmt::format("{:.2f} s", ms * 1e-3);
}

}  // namespace

std::string flame_graph_svg(const analysis::SamplesReport& report, const std::string& title) {
    const std::vector<analysis::FlameNode>& tree = report.tree;
    const double all = std::max<double>(static_cast<double>(tree.front().total), 1);
    const analysis::FlameBoxes shown = analysis::flame_boxes(tree, 0, kWidth - 2 * kSide, kNarrowest);
    const double height = kHead + kRow * (shown.deepest + 1) + kSide;
    std::string svg = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" "
        "font-family=\"monospace\" font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
        "<text x=\"{2}\" y=\"22\" font-size=\"15\" font-family=\"sans-serif\">{3}</text>\n"
        "<text x=\"{2}\" y=\"42\" font-family=\"sans-serif\" fill=\"#555\">{4} samples of {5}, "
        "{6}{7}</text>\n",
        kWidth, height, kSide, html_escaped(printable(title)), store::grouped(report.samples),
        html_escaped(printable(report.event)), amount(report, report.total),
        shown.hidden > 0 ? fmt::format("; {} too narrow to be drawn, with what they called",
                                       store::counted(shown.hidden, "frame is", "frames are"))
                         : "");
    const auto to = std::back_inserter(svg);
    for (const analysis::FlameBox& box : shown.boxes) {
        const analysis::FlameNode& node = tree[static_cast<std::size_t>(box.node)];
        const double y = height - kSide - kRow * (node.depth + 1);
        const std::string name = node.depth == 0      ? std::string("all threads")
                                 : node.frame.empty() ? std::string("[unnamed thread]")
                                                      : printable(node.frame);
        const std::string colour = node.depth < 2 ? std::string("#d5d5d5") : colour_of(node.frame);
        fmt::format_to(to,
                       "<g><title>{}: {}, {:.2f} %, {} itself</title><rect x=\"{:.2f}\" y=\"{:.0f}\" "
                       "width=\"{:.2f}\" height=\"{:.0f}\" fill=\"{}\" stroke=\"#fff\" stroke-width=\".5\"/>",
                       html_escaped(name), amount(report, node.total),
                       100 * static_cast<double>(node.total) / all, amount(report, node.self), kSide + box.x,
                       y, box.width, kRow - 1, colour);
        const auto fit = static_cast<std::size_t>(std::max(0.0, (box.width - 6) / kCharacter));
        if (fit >= kFewest) {
            fmt::format_to(to, "<text x=\"{:.2f}\" y=\"{:.0f}\">{}</text>", kSide + box.x + 3, y + 12,
                           html_escaped(shortened(name, fit)));
        }
        svg += "</g>\n";
    }
    svg += "</svg>\n";
    return svg;
}

}  // namespace shardscope::traces::report
