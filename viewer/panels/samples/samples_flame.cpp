// See samples_flame.h.
#include "viewer/panels/samples/samples_flame.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/core.h>

#include "traces/schema/text.h"
#include "traces/store/grouped.h"
#include "viewer/draw/chart.h"
#include "viewer/draw/format.h"
#include "viewer/draw/items.h"
#include "viewer/draw/text.h"
#include "viewer/theme/theme.h"

namespace shardscope::viewer::panels {
namespace {

using traces::analysis::FlameNode;
using traces::analysis::SamplesReport;

constexpr float kNarrowest = 0.15F;       // font sizes: about two pixels
constexpr std::size_t kMostCells = 8000;  // a software renderer draws no more in a sixtieth of a second
constexpr float kRoomForText = 2.2F;      // font sizes
constexpr int kHues = 12;

float row_height() {
    return std::round(ImGui::GetFontSize() * 1.4F);
}

// A function has one colour everywhere; threads have none.
ImU32 color_of(const FlameNode& node) {
    if (node.depth < 2) return theme::raised();
    return theme::hue_color(static_cast<int>(traces::schema::hash_of(node.frame) % kHues));
}

std::string with_share(const SamplesReport& report, std::int64_t weight) {
    const double all = std::max(1.0, static_cast<double>(report.total));
    return fmt::format("{} ({})", weight_text(report, weight),
                       draw::format_percent(100 * static_cast<double>(weight) / all));
}

std::string callees_text(std::int64_t callees) {
    return traces::store::counted(callees, "callee", "callees");
}

}  // namespace

int FlameGraph::top(const std::shared_ptr<const ShownSamples>& samples) {
    if (of_ != samples) {
        of_ = samples;
        top_ = node_at(samples->report.tree, path_);
    }
    return top_;
}

void FlameGraph::show(int node) {
    if (of_ == nullptr) return;
    top_ = node;
    path_ = path_of(of_->report.tree, node);
    scroll_to_top_ = true;
}

void FlameGraph::to_caller() {
    if (of_ != nullptr && top_ > 0) show(node(top_).parent);
}

void FlameGraph::to_largest_callee() {
    if (of_ != nullptr && !of_->report.tree.empty() && !node(top_).children.empty())
        show(node(top_).children.front());
}

void FlameGraph::forget() {
    of_.reset();
    laid_out_.reset();
    labels_.clear();
    layout_ = {};
}

void FlameGraph::lay_out(const std::shared_ptr<const ShownSamples>& samples, float width) {
    const int shown = top(samples);
    const float font = ImGui::GetFontSize();
    if (laid_out_ == samples && laid_out_top_ == shown && width_ == width && font_ == font) return;
    laid_out_ = samples;
    laid_out_top_ = shown;
    width_ = width;
    font_ = font;
    layout_ = flame_layout(samples->report.tree, shown, static_cast<double>(width),
                           static_cast<double>(font * kNarrowest), kMostCells);
    labels_.assign(layout_.rows.size(), {});
    for (std::size_t row = 0; row < layout_.rows.size(); ++row) {
        for (const FlameCell& cell : layout_.rows[row]) {
            const auto room = static_cast<float>(cell.width) - font * 0.5F;
            std::string& label = labels_[row].emplace_back();
            if (room < font * kRoomForText) continue;
            label = draw::fit_text(
                cell.callees > 0 ? callees_text(cell.callees) : node_label(node(cell.node)), room);
        }
    }
}

void FlameGraph::draw_row(std::size_t row, ImVec2 at, float height,
                          const std::function<bool(int node)>& marked) const {
    const float font = ImGui::GetFontSize();
    ImDrawList* draw = ImGui::GetWindowDrawList();
    for (std::size_t i = 0; i < layout_.rows[row].size(); ++i) {
        const FlameCell& cell = layout_.rows[row][i];
        const bool together = cell.callees > 0;
        const float left = at.x + static_cast<float>(cell.x);
        const float gap = cell.width > 4 ? 1.0F : 0.0F;  // separates neighbours without an outline
        const ImVec2 min{left, at.y}, max{left + static_cast<float>(cell.width) - gap, at.y + height - 1};
        const bool bright =
            !together && marked(cell.node) && (cell.node == top_ || node(cell.node).depth > node(top_).depth);
        ImU32 color = together ? theme::no_hue_color() : color_of(node(cell.node));
        if (!bright) color = draw::faded(color, together ? 0.5F : 0.35F);
        draw->AddRectFilled(min, max, color);
        const std::string& label = labels_[row][i];
        if (!label.empty()) {
            draw->AddText({min.x + font * 0.25F, at.y + (height - font) / 2 - 1},
                          bright ? draw::text_on(color) : theme::text(), label.c_str());
        }
        if (draw::items::kept()) {
            const std::string name = together ? callees_text(cell.callees) : node_label(node(cell.node));
            draw::items::place(fmt::format("samples.box.{}.{}", row, i), min, max,
                               fmt::format("{}: {}", name, weight_text(of_->report, cell.weight)));
        }
    }
}

void FlameGraph::draw_tip(const FlameCell& cell) const {
    const SamplesReport& report = of_->report;
    const FlameNode& of = node(cell.node);
    if (cell.callees > 0) {
        draw::begin_tip(fmt::format("{} of {}", callees_text(cell.callees), node_label(of)));
        draw::tip_row("Together", with_share(report, cell.weight));
        draw::tip_row("Each", fmt::format("narrower than {:.0f} pixels", std::ceil(layout_.narrowest)));
        draw::tip_row("Click", "shows their caller as wide as the graph");
        return draw::end_tip();
    }
    draw::begin_tip(node_label(of));
    if (const FrameParts parts = frame_parts(of.frame); of.depth > 1 && !parts.module.empty())
        draw::tip_row("Module", parts.module);
    draw::tip_row("Total", with_share(report, of.total));
    draw::tip_row("Self", with_share(report, of.self));
    draw::tip_row("Samples", traces::store::grouped(of.samples));
    if (cell.node != top_) draw::tip_row("Click", "shows it as wide as the graph");
    draw::end_tip();
}

void FlameGraph::draw(const std::shared_ptr<const ShownSamples>& samples, float most,
                      const std::function<bool(int node)>& marked) {
    // With room for a scroll bar even where there is none: a layout does not depend on its own height.
    lay_out(samples, std::max(1.0F, ImGui::GetContentRegionAvail().x - ImGui::GetStyle().ScrollbarSize));
    const float height = row_height(), all = height * static_cast<float>(layout_.rows.size());
    ImGui::BeginChild("flame", {0, std::min(all, std::max(1.0F, std::floor(most / height)) * height)});
    const ImVec2 start = ImGui::GetCursorScreenPos();
    draw::place_button("boxes", {width_, all});
    draw::items::mark("samples.flame",
                      traces::store::counted(static_cast<std::int64_t>(layout_.rows.size()), "row", "rows"));
    const bool hovered = ImGui::IsItemHovered(), clicked = ImGui::IsItemClicked();
    const float top = ImGui::GetWindowPos().y, bottom = top + ImGui::GetWindowHeight();
    for (std::size_t row = 0; row < layout_.rows.size(); ++row) {
        const float y = start.y + height * static_cast<float>(row);
        if (y + height > top && y < bottom) draw_row(row, {start.x, y}, height, marked);
    }
    if (std::exchange(scroll_to_top_, false)) {
        const auto row = static_cast<float>(node(top_).depth);
        const float at = start.y + height * row - top;  // on the screen, in the window
        if (at < 0 || at + height * 2 > bottom - top)
            ImGui::SetScrollY(std::max(0.0F, height * (row - 2)));  // with some of its callers
    }
    if (hovered) {
        const ImVec2 mouse = ImGui::GetIO().MousePos;
        const auto row = static_cast<std::size_t>(std::max(0.0F, (mouse.y - start.y) / height));
        if (const FlameCell* cell = layout_.at(row, static_cast<double>(mouse.x - start.x))) {
            draw_tip(*cell);
            if (clicked) show(cell->node);
        }
    }
    ImGui::EndChild();
}

}  // namespace shardscope::viewer::panels
