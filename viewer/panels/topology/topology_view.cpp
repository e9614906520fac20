// See topology_view.h.
#include "viewer/panels/topology/topology_view.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "viewer/draw/chart.h"
#include "viewer/draw/format.h"
#include "viewer/draw/items.h"
#include "viewer/draw/text.h"
#include "viewer/theme/theme.h"

namespace shardscope::viewer::panels {
namespace {

ImU32 mixed(ImU32 a, ImU32 b, float share) {
    const ImVec4 x = ImGui::ColorConvertU32ToFloat4(a), y = ImGui::ColorConvertU32ToFloat4(b);
    const auto mix = [share](float from, float to) { return from + (to - from) * share; };
    return ImGui::ColorConvertFloat4ToU32({mix(x.x, y.x), mix(x.y, y.y), mix(x.z, y.z), 1});
}

std::string item_name(const TopologyPicture& picture, std::size_t point) {
    const TopologyPoint& of = picture.points[point];
    const std::string& host = picture.boxes[of.box].host;
    return host.empty() ? of.label : host + "/" + of.label;
}

// Only the number where the name has no room.
std::string short_label(const std::string& label, float room) {
    const std::size_t digits = label.find_first_of("0123456789");
    return draw::width_of(label) <= room || digits == std::string::npos ? label : label.substr(digits);
}

class PictureDrawing {
  public:
    PictureDrawing(const TopologyPicture& picture, EdgeColor by, const TopologyChoice& choice, ImVec2 at,
                   ImVec2 size)
        : picture_(picture),
          by_(by),
          choice_(choice),
          at_(at),
          font_(ImGui::GetFontSize()),
          draw_(ImGui::GetWindowDrawList()) {
        const auto boxes = static_cast<float>(std::max<std::size_t>(picture.boxes.size(), 1));
        // As many columns as make the boxes largest.
        for (float columns = 1; columns <= boxes; ++columns) {
            const float rows = std::ceil(boxes / columns);
            const float side = std::min(size.x / columns, size.y / rows);
            if (side <= side_) continue;
            side_ = side;
            columns_ = static_cast<std::size_t>(columns);
        }
        const float used = side_ * static_cast<float>(columns_);
        at_.x += std::max(0.0F, (size.x - used) / 2);
    }

    std::optional<std::size_t> point_at(ImVec2 mouse) const {
        for (std::size_t p = 0; p < picture_.points.size(); ++p) {
            const ImVec2 at = place(p);
            if (std::hypot(mouse.x - at.x, mouse.y - at.y) <= radius(p) + 2) return p;
        }
        return {};
    }
    std::optional<std::size_t> edge_at(ImVec2 mouse) const {
        std::optional<std::size_t> found;
        float nearest = font_ * 0.4F;
        for (std::size_t e = 0; e < picture_.edges.size(); ++e) {
            if (!is_drawn(picture_.edges[e])) continue;
            const float far = distance(mouse, place(picture_.edges[e].a), place(picture_.edges[e].b));
            if (far >= nearest) continue;
            nearest = far;
            found = e;
        }
        return found;
    }

    void draw(std::optional<std::size_t> point, std::optional<std::size_t> edge) const {
        for (std::size_t b = 0; b < picture_.boxes.size(); ++b) draw_box(b);
        std::vector<const TopologyEdge*> edges;
        for (const TopologyEdge& one : picture_.edges) {
            if (is_drawn(one)) edges.push_back(&one);
        }
        // What is known, and more, lies on top.
        std::stable_sort(edges.begin(), edges.end(), [&](const TopologyEdge* a, const TopologyEdge* b) {
            return edge_share(picture_, *a, by_).value_or(-1) < edge_share(picture_, *b, by_).value_or(-1);
        });
        for (const TopologyEdge* one : edges) draw_edge(*one, edge && &picture_.edges[*edge] == one);
        for (std::size_t p = 0; p < picture_.points.size(); ++p) draw_point(p, point == p);
    }

  private:
    ImVec2 corner(std::size_t box) const {
        const std::size_t row = box / columns_, column = box % columns_;
        return {at_.x + side_ * static_cast<float>(column), at_.y + side_ * static_cast<float>(row)};
    }
    ImVec2 place(std::size_t point) const {
        const TopologyPoint& of = picture_.points[point];
        const ImVec2 from = corner(of.box);
        return {from.x + side_ * of.x, from.y + side_ * of.y};
    }
    float radius(std::size_t point) const {
        const TopologyPoint& of = picture_.points[point];
        const auto points = static_cast<float>(picture_.boxes[of.box].points);
        const float room = side_ * 0.8F / std::max(points, 4.0F);
        const float wanted = of.kind == TopologyPoint::Kind::adapter ? font_ * 1.1F : font_ * 1.7F;
        return std::clamp(std::min(wanted, room), 3.0F, wanted);
    }
    static float distance(ImVec2 p, ImVec2 a, ImVec2 b) {
        const float dx = b.x - a.x, dy = b.y - a.y, length = dx * dx + dy * dy;
        const float t =
            length > 0 ? std::clamp(((p.x - a.x) * dx + (p.y - a.y) * dy) / length, 0.0F, 1.0F) : 0.0F;
        return std::hypot(p.x - a.x - t * dx, p.y - a.y - t * dy);
    }

    // The links between GPUs, of each GPU to its nearest adapter, what carried bytes, and all of the chosen
    // point.
    bool is_drawn(const TopologyEdge& edge) const {
        using Kind = TopologyPoint::Kind;
        const bool gpus =
            picture_.points[edge.a].kind != Kind::adapter && picture_.points[edge.b].kind != Kind::adapter;
        const bool chosen = !choice_.second && (choice_.is(edge.a) || choice_.is(edge.b));
        const bool pair = choice_.first && choice_.second && choice_.is(edge.a) && choice_.is(edge.b);
        return gpus || edge.nearest || edge.bytes > 0 || chosen || pair;
    }

    void draw_box(std::size_t b) const {
        const TopologyBox& box = picture_.boxes[b];
        const ImVec2 from = corner(b);
        const float air = font_ * 0.3F;
        draw_->AddRectFilled({from.x + air, from.y + air}, {from.x + side_ - air, from.y + side_ - air},
                             theme::surface(), font_ * 0.4F);
        const std::string name = box.host.empty() ? std::string("Unknown host") : box.host;
        draw_->AddText({from.x + font_ * 0.8F, from.y + font_ * 0.6F}, theme::text(),
                       draw::fit_text(name, side_ - font_ * 1.6F).c_str());
        const ImVec2 middle{from.x + side_ / 2, from.y + side_ / 2};
        const float r = side_ * 0.355F;
        float right = from.x + font_ * 0.8F;
        for (const TopologyBox::Numa& numa : box.numas) {
            const float half = box.points > 1 ? 0.16F : 0.4F;
            const auto turned = [](double angle) {  // ImGui's angles begin on the right
                return static_cast<float>(angle - std::numbers::pi / 2);
            };
            draw_->PathArcTo(middle, r, turned(numa.from) - half, turned(numa.to) + half, 48);
            draw_->PathStroke(draw::faded(theme::hue_color(numa.number), 0.55F), 0, font_ * 0.25F);
            // Named in the box's last line.
            const std::string label = fmt::format("NUMA {}", numa.number);
            const float wide = draw::width_of(label) + font_ * 2;
            if (right + wide > from.x + side_ - font_ * 0.5F) continue;
            const float y = from.y + side_ - font_ * 1.7F;
            draw_->AddRectFilled({right, y + font_ * 0.2F}, {right + font_ * 0.7F, y + font_ * 0.9F},
                                 draw::faded(theme::hue_color(numa.number), 0.7F), 2);
            draw_->AddText({right + font_, y}, theme::text_dim(), label.c_str());
            right += wide;
        }
    }

    void draw_edge(const TopologyEdge& edge, bool hovered) const {
        const std::optional<double> share = edge_share(picture_, edge, by_);
        const bool chosen = choice_.second && choice_.is(edge.a) && choice_.is(edge.b);
        const bool muted = choice_.first && !choice_.second && !choice_.is(edge.a) && !choice_.is(edge.b);
        ImU32 color = share ? share_color(*share) : draw::faded(theme::text_dim(), 0.25F);
        if (muted) color = draw::faded(color, 0.25F);
        float thick = font_ * (share ? 0.06F + 0.08F * static_cast<float>(*share) : 0.05F);
        if (chosen || hovered) thick += font_ * 0.18F;
        const ImVec2 a = place(edge.a), b = place(edge.b);
        if (chosen) draw_->AddLine(a, b, draw::faded(theme::text(), 0.5F), thick + font_ * 0.25F);
        draw_->AddLine(a, b, color, thick);
        const ImVec2 middle{(a.x + b.x) / 2, (a.y + b.y) / 2};
        draw::items::place(
            fmt::format("topology.edge.{}-{}", item_name(picture_, edge.a), item_name(picture_, edge.b)),
            {middle.x - 3, middle.y - 3}, {middle.x + 3, middle.y + 3}, edge_text(edge, by_));
    }

    void draw_point(std::size_t p, bool hovered) const {
        const TopologyPoint& point = picture_.points[p];
        const ImVec2 at = place(p);
        const float r = radius(p);
        const bool adapter = point.kind == TopologyPoint::Kind::adapter;
        const ImU32 fill = !point.visible   ? theme::ground()
                           : point.numa < 0 ? theme::raised()
                                            : mixed(theme::raised(), theme::hue_color(point.numa), 0.35F);
        const ImU32 edge = choice_.is(p) ? theme::accent() : hovered ? theme::text() : theme::line();
        const float thick = choice_.is(p) ? 2.5F : 1.5F;
        if (adapter) {
            draw_->AddRectFilled({at.x - r, at.y - r * 0.75F}, {at.x + r, at.y + r * 0.75F}, fill, 3);
            draw_->AddRect({at.x - r, at.y - r * 0.75F}, {at.x + r, at.y + r * 0.75F}, edge, 3, 0, thick);
        } else {
            const int sides = r < font_ ? 10 : 24;
            draw_->AddCircleFilled(at, r, fill, sides);
            draw_->AddCircle(at, r, edge, sides, thick);
        }
        const std::string label = short_label(point.label, r * 2 - 2);
        const ImVec2 wide = ImGui::CalcTextSize(label.c_str());
        if (wide.x <= r * 2)
            draw_->AddText({at.x - wide.x / 2, at.y - wide.y / 2}, theme::text(), label.c_str());
        draw::items::place("topology.node." + item_name(picture_, p), {at.x - r, at.y - r},
                           {at.x + r, at.y + r}, point.label);
    }

    const TopologyPicture& picture_;
    EdgeColor by_;
    const TopologyChoice& choice_;
    ImVec2 at_;
    float font_, side_ = 0;
    std::size_t columns_ = 1;
    ImDrawList* draw_;
};

void edge_tip(const TopologyPicture& picture, std::size_t a, std::size_t b) {
    draw::begin_tip(fmt::format("{} and {}", picture.name(a), picture.name(b)));
    for (const TopologyFact& fact : pair_facts(picture, a, b)) {
        if (fact.label != "Path" && fact.label != "Told by")
            draw::tip_row(fact.label, draw::shorten_middle(fact.text, 60));
    }
    draw::end_tip();
}

}  // namespace

void TopologyChoice::click(std::size_t point) {
    if (first && !second && first != point) {
        second = point;
    } else {
        *this = {point, {}};
    }
}

ImU32 share_color(double share) {
    return mixed(theme::exposed_color(), theme::accent(), static_cast<float>(std::clamp(share, 0.0, 1.0)));
}

void draw_topology_picture(const TopologyPicture& picture, EdgeColor by, TopologyChoice& choice,
                           ImVec2 size) {
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const bool clicked = draw::place_button("topology", size);
    const bool over = ImGui::IsItemHovered();
    const ImVec2 mouse = ImGui::GetIO().MousePos;
    draw::items::mark("topology.picture", fmt::format("{} points", picture.points.size()));
    const PictureDrawing drawing(picture, by, choice, at, size);
    const std::optional<std::size_t> point = over ? drawing.point_at(mouse) : std::nullopt;
    const std::optional<std::size_t> edge = over && !point ? drawing.edge_at(mouse) : std::nullopt;
    drawing.draw(point, edge);
    if (clicked) {
        if (point) {
            choice.click(*point);
        } else if (edge) {
            choice.click_pair(picture.edges[*edge].a, picture.edges[*edge].b);
        } else {
            choice = {};
        }
    }
    if (edge) edge_tip(picture, picture.edges[*edge].a, picture.edges[*edge].b);
    if (!point) return;
    draw::begin_tip(picture.points[*point].label);
    for (const TopologyFact& fact : point_facts(picture, *point)) draw::tip_row(fact.label, fact.text);
    draw::end_tip();
}

void draw_topology_matrix(const TopologyPicture& picture, std::optional<std::size_t> box, EdgeColor by,
                          TopologyChoice& choice, ImVec2 size) {
    std::vector<std::size_t> points;
    for (std::size_t p = 0; p < picture.points.size(); ++p) {
        const TopologyPoint& point = picture.points[p];
        if (box ? point.box == *box : point.kind != TopologyPoint::Kind::adapter) points.push_back(p);
    }
    if (points.empty()) return;
    const float font = ImGui::GetFontSize();
    float label = 0;
    for (const std::size_t p : points) label = std::max(label, draw::width_of(picture.name(p)));
    label = std::min(label + font * 0.6F, size.x * 0.3F);
    const auto count = static_cast<float>(points.size());
    const float cell = std::clamp((size.x - label) / count, font * 0.5F, font * 6);
    const float line = std::clamp((size.y - font * 1.6F) / count, font * 0.5F, font * 2.2F);
    ImGui::BeginChild("matrix", size, false, ImGuiWindowFlags_HorizontalScrollbar);
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const bool clicked = draw::place_button("cells", {label + cell * count, font * 1.6F + line * count});
    const bool over = ImGui::IsItemHovered();
    const ImVec2 mouse = ImGui::GetIO().MousePos;
    ImDrawList* draw = ImGui::GetWindowDrawList();
    const float top = at.y + font * 1.6F, left = at.x + label;
    std::optional<std::pair<std::size_t, std::size_t>> hovered;
    draw->AddRectFilled({left, top}, {left + cell * count, top + line * count}, theme::surface());
    for (std::size_t i = 0; i < points.size(); ++i) {
        const float y = top + line * static_cast<float>(i), x = left + cell * static_cast<float>(i);
        const std::string name = picture.name(points[i]);
        if (line >= font)
            draw->AddText({at.x, y + (line - font) / 2}, theme::text(),
                          draw::fit_text(name, label - font * 0.4F).c_str());
        draw->AddText(
            {x + 2, at.y + font * 0.2F}, theme::text_dim(),
            draw::fit_text(short_label(picture.points[points[i]].label, cell - 4), cell - 4).c_str());
        for (std::size_t j = 0; j < points.size(); ++j) {
            const ImVec2 from{left + cell * static_cast<float>(j) + 1, y + 1};
            const ImVec2 to{from.x + cell - 2, from.y + line - 2};
            if (!ImGui::IsRectVisible(from, to)) continue;
            const std::size_t a = points[i], b = points[j];
            const TopologyEdge* edge = i == j ? nullptr : picture.edge(a, b);
            const std::optional<double> share =
                edge != nullptr ? edge_share(picture, *edge, by) : std::nullopt;
            const ImU32 color = i == j ? theme::ground() : share ? share_color(*share) : theme::surface();
            if (share || i == j) draw->AddRectFilled(from, to, color);
            if (choice.second && choice.is(a) && choice.is(b) && i != j)
                draw->AddRect(from, to, theme::text(), 2, 0, 2);
            const std::string text = i == j ? "X" : edge == nullptr ? "" : edge_text(*edge, by);
            if (line >= font && draw::width_of(text) <= cell - 4) {
                const ImU32 ink = i == j ? theme::text_dim() : share ? draw::text_on(color) : theme::text();
                draw->AddText({(from.x + to.x - draw::width_of(text)) / 2, (from.y + to.y - font) / 2}, ink,
                              text.c_str());
            }
            if (i < j)
                draw::items::place(
                    fmt::format("topology.cell.{}-{}", item_name(picture, a), item_name(picture, b)), from,
                    to, text);
            if (over && i != j && mouse.x >= from.x && mouse.x < to.x && mouse.y >= from.y && mouse.y < to.y)
                hovered = {a, b};
        }
    }
    if (hovered) {
        edge_tip(picture, hovered->first, hovered->second);
        if (clicked) choice.click_pair(hovered->first, hovered->second);
    }
    ImGui::EndChild();
}

void draw_topology_legend(const TopologyPicture& picture, EdgeColor by) {
    std::vector<draw::LegendItem> items;
    if (by == EdgeColor::link) {
        static constexpr std::array<std::string_view, 6> kKinds = {"NVLink",
                                                                   "PIX: one PCIe switch",
                                                                   "PXB: several PCIe switches",
                                                                   "PHB: a host bridge",
                                                                   "NODE: host bridges of a NUMA node",
                                                                   "SYS: between NUMA nodes"};
        for (std::size_t d = 0; d < kKinds.size(); ++d)
            items.push_back({std::string(kKinds[d]), share_color(1 - static_cast<double>(d) / 5)});
        items.push_back({"unknown", draw::faded(theme::text_dim(), 0.25F)});
        return draw::legend(items);
    }
    const bool bytes = by == EdgeColor::bytes;
    const double most = bytes ? static_cast<double>(picture.most_bytes) : picture.report->fastest_gbps;
    const auto text = [&](double value) {
        return bytes ? draw::format_size(static_cast<std::int64_t>(value))
                     : draw::format_decimal(value, value < 10 ? 2 : 1) + " GB/s";
    };
    if (most > 0) {
        for (const double share : {0.0, 0.25, 0.5, 0.75, 1.0})
            items.push_back({text(most * share), share_color(share)});
    }
    items.push_back({bytes ? "no bytes in this trace" : "not measured in this trace",
                     draw::faded(theme::text_dim(), 0.25F)});
    draw::legend(items);
}

void draw_topology_choice(const TopologyPicture& picture, const TopologyChoice& choice) {
    const auto valid = [&](const std::optional<std::size_t>& point) {
        return point && *point < picture.points.size();
    };
    if (!valid(choice.first)) {
        return draw::note(
            "A click on a link, a cell, or on one point and then another shows the path between "
            "them.");
    }
    const auto row = [](const TopologyFact& fact) {
        draw::text_dim(fact.label);
        draw::wrapped(fact.text);
        draw::items::value("topology.pair." + fact.label, fact.text);
        ImGui::Dummy({0, ImGui::GetFontSize() * 0.15F});
    };
    if (!valid(choice.second)) {
        draw::heading(picture.name(*choice.first));
        for (const TopologyFact& fact : point_facts(picture, *choice.first)) row(fact);
        return draw::note("A click on a second point shows the path to it.");
    }
    const std::string title =
        fmt::format("{} and {}", picture.name(*choice.first), picture.name(*choice.second));
    draw::heading(title);
    draw::items::value("topology.pair", title);
    for (const TopologyFact& fact : pair_facts(picture, *choice.first, *choice.second)) row(fact);
}

}  // namespace shardscope::viewer::panels
