// See row_menu.h.
#include "viewer/timeline/row_menu.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "viewer/draw/items.h"
#include "viewer/theme/theme.h"

namespace shardscope::viewer::timeline {
namespace {

bool menu_item(const char* label, const char* item, const char* keys = nullptr) {
    const bool chosen = ImGui::MenuItem(label, keys);
    draw::items::mark(fmt::format("timeline.menu.{}", item), label);
    return chosen;
}

const RowGroup* group_called(const RowLayout& layout, const std::string& key) {
    const auto at = std::find_if(layout.groups.begin(), layout.groups.end(),
                                 [&](const RowGroup& g) { return g.key == key; });
    return at == layout.groups.end() ? nullptr : &*at;
}

// The first row on the page with this key; nullptr if it is not shown.
const Row* row_called(const TimelinePage& page, const std::string& key) {
    for (const Row& row : page.layout().rows) {
        if (page.key_of(row) == key) return &row;
    }
    return nullptr;
}

}  // namespace

std::string RowMenu::draw(model::Session& session, TimelinePage& page, const Gestures& gestures) {
    drag(session, page, gestures);
    if (gestures.wants_menu()) {
        const ImVec2 mouse = ImGui::GetIO().MousePos;
        const Row* row = mouse.y >= page.area.top() ? page.row_at(mouse.y) : nullptr;
        if (mouse.x < page.area.left() && row != nullptr) {
            key_ = page.key_of(*row);
            ImGui::OpenPopup("row menu");
        } else if (page.hovered.kind != model::EventKind::none) {
            ImGui::OpenPopup("event menu");
        }
    }
    if (ImGui::BeginPopup("row menu")) {
        draw_row_menu(session, page);
        ImGui::EndPopup();
    }
    std::string action;
    if (ImGui::BeginPopup("event menu")) {
        action = draw_event_menu(session);
        ImGui::EndPopup();
    }
    return action;
}

void RowMenu::draw_row_menu(model::Session& session, TimelinePage& page) {
    model::RowArrangement& rows = session.current()->rows;
    const RowGroup* group = group_called(page.layout(), key_);
    ImGui::TextDisabled("%s", key_.c_str());
    ImGui::Separator();
    if (group != nullptr) {
        if (menu_item(group->collapsed ? "Unfold" : "Fold", "fold_row", "Enter")) rows.toggle_collapsed(key_);
    } else if (menu_item(rows.is_pinned(key_) ? "Let go" : "Pin to the top", "pin_row", "P")) {
        rows.toggle_pinned(key_);
    }
    if (menu_item("Hide", "hide_row", "H")) rows.hide(key_);
    const std::vector<std::string> siblings = page.layout().siblings(key_);
    if (menu_item("Move up", "row_up", "Shift+Up")) rows.step(key_, -1, siblings);
    if (menu_item("Move down", "row_down", "Shift+Down")) rows.step(key_, 1, siblings);
    if (!siblings.empty() && menu_item("Move to the top", "row_first"))
        rows.move(key_, siblings.front(), siblings);
    ImGui::Separator();
    const bool by_rank = rows.grouping == model::RowArrangement::Grouping::rank;
    if (menu_item(by_rank ? "All rows by kind" : "All rows by rank", "group_rows", "K"))
        act("group_rows", session, page);
    if (menu_item("Show all rows in their own order", "show_rows", "Shift+H"))
        act("show_rows", session, page);
}

std::string RowMenu::draw_event_menu(const model::Session& session) {
    struct Choice {
        const char *label, *action, *keys;
    };
    static constexpr std::array kChoices = {
        Choice{"Zoom to it", "zoom_to", "Z"},
        Choice{"Filter all panels by its time", "limit_selected", "Shift+L"},
        Choice{"Mark it as a range", "mark_range", "Shift+M"},
        Choice{"Copy all fields", "copy", "Ctrl+C"},
        Choice{"Next of the same name", "next_same", "Shift+."},
        Choice{"Find all of this name", "find_same", ""},
        Choice{"Statistics of this name", "statistics", "I"},
        Choice{"Hide this row", "hide_row", "H"},
    };
    std::string action;
    for (const Choice& choice : kChoices) {
        if (menu_item(choice.label, choice.action, choice.keys) && session.current() != nullptr)
            action = choice.action;
    }
    return action;
}

// A dragged name is placed before the row whose upper half it is over.
void RowMenu::drag(model::Session& session, TimelinePage& page, const Gestures& gestures) {
    const auto at = gestures.dragged_row();
    if (!at || static_cast<std::size_t>(*at) >= page.layout().rows.size()) {
        if (!dragged_.empty()) {
            model::RowArrangement& rows = session.current()->rows;
            if (before_ != dragged_) rows.move(dragged_, before_, page.layout().siblings(dragged_));
            dragged_.clear();
        }
        return;
    }
    dragged_ = page.key_of(page.layout().rows[static_cast<std::size_t>(*at)]);
    const std::vector<std::string> siblings = page.layout().siblings(dragged_);
    const float mouse = ImGui::GetIO().MousePos.y;
    before_.clear();
    float line = page.area.max.y;
    float bottom = 0;
    for (const std::string& key : siblings) {
        const Row* row = row_called(page, key);
        if (row == nullptr) continue;
        const float y = page.y_of(*row);
        bottom = std::max(bottom, y + row->height);
        if (mouse < y + row->height / 2) {
            before_ = key;
            line = y;
            break;
        }
        line = bottom;
    }
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    line = std::clamp(line, page.area.top(), page.area.max.y);
    draw.AddRectFilled({page.area.min.x, line - 1}, {page.area.left(), line + 1}, theme::accent());
    ImGui::SetMouseCursor(ImGuiMouseCursor_ResizeNS);
}

const Row* RowMenu::row_meant(const model::Session& session, const TimelinePage& page) const {
    const ImVec2 mouse = ImGui::GetIO().MousePos;
    const TimelineArea& area = page.area;
    const bool over =
        mouse.x >= area.min.x && mouse.x < area.max.x && mouse.y >= area.top() && mouse.y < area.max.y;
    const Row* row = over ? page.row_at(mouse.y) : nullptr;
    return row != nullptr ? row : page.row_of(session.selected);
}

bool RowMenu::act(std::string_view action, model::Session& session, TimelinePage& page) {
    model::RowArrangement& rows = session.current()->rows;
    if (action == "show_rows") {
        rows.show_all();
        rows.order.clear();
        rows.pinned.clear();
        rows.filter.clear();
        return true;
    }
    if (action == "group_rows") {
        using Grouping = model::RowArrangement::Grouping;
        rows.grouping = rows.grouping == Grouping::rank ? Grouping::kind : Grouping::rank;
        return true;
    }
    static constexpr std::array<std::string_view, 5> kOfRow = {"pin_row", "hide_row", "row_up", "row_down",
                                                               "fold_row"};
    if (std::find(kOfRow.begin(), kOfRow.end(), action) == kOfRow.end()) return false;
    const Row* row = page.rows != nullptr ? row_meant(session, page) : nullptr;
    if (row == nullptr) return true;
    const std::string key = page.key_of(*row);
    if (action == "pin_row" && row->kind != Row::Kind::group) rows.toggle_pinned(key);
    if (action == "hide_row") rows.hide(key);
    if (action == "row_up") rows.step(key, -1, page.layout().siblings(key));
    if (action == "row_down") rows.step(key, 1, page.layout().siblings(key));
    if (action == "fold_row" && row->group >= 0)
        rows.toggle_collapsed(page.layout().groups[static_cast<std::size_t>(row->group)].key);
    return true;
}

}  // namespace shardscope::viewer::timeline
