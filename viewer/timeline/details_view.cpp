// See details_view.h. The fields are made once for each selection, not in every frame.
#include "viewer/timeline/details_view.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <imgui.h>

#include "viewer/draw/format.h"
#include "viewer/draw/items.h"
#include "viewer/draw/text.h"
#include "viewer/theme/theme.h"

namespace shardscope::viewer::timeline {
namespace {

constexpr int kLines = 6;           // of fields; more lines scroll
constexpr float kWidestValue = 22;  // font sizes; longer values are shortened and shown whole on hover
constexpr std::size_t kMostLinks = 12;

// A tooltip of one text, wrapped.
void whole_tip(const std::string& what) {
    ImGui::BeginTooltip();
    draw::begin_wrap(ImGui::GetFontSize() * 40);
    draw::text(draw::shorten_middle(what, 2000));
    draw::end_wrap();
    ImGui::EndTooltip();
}

int rank_number(const traces::store::Trace& trace, model::SelectedEvent event) {
    const std::size_t rank = trace.device.rank[static_cast<std::size_t>(event.index)];
    return rank < trace.ranks.size() ? trace.ranks[rank].number : -1;
}

}  // namespace

float DetailsView::height() {
    return std::round(ImGui::GetTextLineHeightWithSpacing() * static_cast<float>(kLines) +
                      ImGui::GetFrameHeightWithSpacing() + ImGui::GetFontSize() * 0.8F);
}

void DetailsView::update(model::Session& session, const TimelinePage& page) {
    auto units = session.analyses.get<traces::analysis::UnitRanges>(
        "unit ranges", {page.trace}, [](const auto& t) { return traces::analysis::find_units(*t.front()); });
    if (of_ == session.selected && trace_ == page.trace && collectives_ == page.links_from &&
        units_ == units && waits_ == page.waits)
        return;
    of_ = session.selected;
    trace_ = page.trace;
    collectives_ = page.links_from;
    units_ = std::move(units);
    waits_ = page.waits;
    details_ = all_fields(*trace_, of_, {collectives_.get(), units_.get(), waits_.get()});
}

std::string DetailsView::draw(model::Session& session, TimelinePage& page, float width) {
    update(session, page);
    const float font = ImGui::GetFontSize();
    ImGui::PushStyleColor(ImGuiCol_ChildBg, theme::raised());
    ImGui::BeginChild("details", {width, height()}, false, ImGuiWindowFlags_NoScrollbar);
    ImGui::PopStyleColor();
    ImGui::SetCursorPos({font * 0.6F, font * 0.4F});
    std::string action = draw_buttons(session, page);
    draw_fields(width);
    ImGui::EndChild();
    return action;
}

std::string DetailsView::draw_buttons(model::Session& session, TimelinePage& page) {
    struct Button {
        const char *label, *action, *help;
    };
    static constexpr std::array kButtons = {
        Button{"<", "previous_event", "Previous event in row ( , )"},
        Button{">", "next_event", "Next event in row ( . )"},
        Button{"<< same", "previous_same", "Previous event of the same name ( Shift+, )"},
        Button{"same >>", "next_same", "Next event of the same name ( Shift+. )"},
        Button{"Area", "show_area", "The statistics of the marked area"},
        Button{"Zoom", "zoom_to", "Zoom to it ( Z )"},
        Button{"Limit", "limit_selected", "Filter all panels by its time ( Shift+L )"},
        Button{"Copy", "copy", "Copy all fields ( Ctrl+C )"},
        Button{"x", "deselect", "Clear selection ( Escape )"},
    };
    const float font = ImGui::GetFontSize();
    float buttons = 0;
    const ImGuiStyle& style = ImGui::GetStyle();
    const bool with_area = session.current()->area.has_value();
    const auto is_shown = [&](const Button& button) {
        return with_area || std::string_view(button.action) != "show_area";
    };
    for (const Button& button : kButtons) {
        if (is_shown(button))
            buttons += draw::width_of(button.label) + style.FramePadding.x * 2 + font * 0.3F;
    }
    const float room = ImGui::GetContentRegionAvail().x - buttons - font;
    ImGui::AlignTextToFramePadding();
    const float line = ImGui::GetCursorPosY();
    const std::string title = draw::fit_text(details_.title, std::max(font * 6, room * 0.6F));
    draw::text(title);
    draw::items::mark("timeline.selected", details_.title);
    if (ImGui::IsItemHovered() && title != details_.title) {
        whole_tip(details_.title);
    }
    draw_links(session, page);
    std::string action;
    float x = ImGui::GetWindowWidth() - buttons - font * 0.3F;
    for (const Button& button : kButtons) {
        if (!is_shown(button)) continue;
        ImGui::SetCursorPos({x, line});
        if (draw::named_button(button.label, fmt::format("timeline.details.{}", button.action)))
            action = button.action;
        if (ImGui::IsItemHovered()) whole_tip(button.help);
        x += ImGui::GetItemRectSize().x + font * 0.3F;
    }
    return action;
}

// Small buttons that go to the related events.
void DetailsView::draw_links(model::Session& session, TimelinePage& page) {
    const Links links = page.links;
    std::vector<std::pair<std::string, model::SelectedEvent>> all;
    if (links.launch.kind != model::EventKind::none && links.launch != links.of)
        all.emplace_back("launch", links.launch);
    if (links.launch == links.of) {
        for (const model::SelectedEvent& event : links.launched) {
            all.emplace_back(all.empty() ? "device work" : fmt::format("{}", all.size() + 1), event);
            if (all.size() >= kMostLinks) break;
        }
    }
    for (const model::SelectedEvent& part : links.parts) {
        if (part == links.of || all.size() >= kMostLinks) continue;
        all.emplace_back(fmt::format("rank {}", rank_number(*page.trace, part)), part);
    }
    if (links.forward.kind != model::EventKind::none && links.forward != links.of)
        all.emplace_back("forward", links.forward);
    for (const model::SelectedEvent& backward : links.backwards) {
        if (backward != links.of && all.size() < kMostLinks) all.emplace_back("backward", backward);
    }
    const auto add_waits = [&](const char* label, const std::vector<model::SelectedEvent>& events) {
        int number = 0;
        for (const model::SelectedEvent& event : events) {
            if (all.size() >= kMostLinks) return;
            all.emplace_back(++number > 1 ? fmt::format("{} {}", label, number) : label, event);
        }
    };
    add_waits("waited for", links.waited_for);
    add_waits("waiting", links.waiting);
    const float right = ImGui::GetWindowWidth() - ImGui::GetFontSize() * 26;
    for (std::size_t i = 0; i < all.size(); ++i) {
        ImGui::SameLine(0, i == 0 ? ImGui::GetFontSize() : ImGui::GetFontSize() * 0.3F);
        if (ImGui::GetCursorPosX() + draw::width_of(all[i].first) > right) break;
        ImGui::PushID(static_cast<int>(i));
        ImGui::PushStyleColor(ImGuiCol_Text, theme::accent());
        if (ImGui::SmallButton(all[i].first.c_str())) page.go_to(session, all[i].second);
        ImGui::PopStyleColor();
        draw::items::mark(fmt::format("timeline.link.{}", all[i].first));
        ImGui::PopID();
    }
}

// Columns one after another, each as wide as its longest row; if they do not all fit, longer columns that
// scroll.
void DetailsView::draw_fields(float width) const {
    const float font = ImGui::GetFontSize(), line = ImGui::GetTextLineHeightWithSpacing();
    const auto count = details_.rows.size();
    struct Column {
        std::size_t from, to;
        float labels, values;
    };
    const auto columns_of = [&](std::size_t lines) {
        std::vector<Column> columns;
        for (std::size_t from = 0; from < count; from += lines) {
            Column column{from, std::min(count, from + lines), 0, 0};
            for (std::size_t i = column.from; i < column.to; ++i) {
                column.labels = std::max(column.labels, draw::width_of(details_.rows[i].label));
                column.values = std::max(column.values, draw::width_of(details_.rows[i].value));
            }
            column.values = std::min(column.values, font * kWidestValue);
            columns.push_back(column);
        }
        return columns;
    };
    const auto width_together = [&](const std::vector<Column>& columns) {
        float sum = font * 1.2F;
        for (const Column& column : columns) sum += column.labels + column.values + font * 2.6F;
        return sum;
    };
    std::size_t lines = kLines;
    std::vector<Column> columns = columns_of(lines);
    while (columns.size() > 1 && width_together(columns) > width) columns = columns_of(++lines);

    ImGui::BeginChild("fields", {0, 0}, false);
    const ImVec2 top = ImGui::GetCursorScreenPos();
    ImDrawList* draw = ImGui::GetWindowDrawList();
    float x = top.x + font * 0.6F;
    const bool hovered = ImGui::IsWindowHovered();
    const ImVec2 mouse = ImGui::GetIO().MousePos;
    for (const Column& column : columns) {
        for (std::size_t i = column.from; i < column.to; ++i) {
            const Detail& detail = details_.rows[i];
            const float y = top.y + line * static_cast<float>(i - column.from);
            const float at = x + column.labels + font * 0.8F;
            const std::string shown = draw::fit_text(detail.value, column.values);
            draw->AddText({std::floor(x), std::floor(y)}, theme::text_dim(), detail.label.c_str());
            draw->AddText({std::floor(at), std::floor(y)}, theme::text(), shown.c_str());
            draw::items::place("timeline.field." + detail.label, {at, y}, {at + column.values, y + line},
                               detail.value);
            if (hovered && shown != detail.value && mouse.x >= at && mouse.x < at + column.values &&
                mouse.y >= y && mouse.y < y + line) {
                whole_tip(detail.value);
            }
        }
        x += column.labels + column.values + font * 2.6F;
    }
    ImGui::Dummy({1, line * static_cast<float>(std::min(count, lines))});
    ImGui::EndChild();
}

}  // namespace shardscope::viewer::timeline
