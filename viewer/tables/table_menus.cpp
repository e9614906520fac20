// See table_menus.h.
#include "viewer/tables/table_menus.h"

#include <algorithm>

#include <fmt/core.h>
#include <imgui.h>

#include "viewer/draw/items.h"

namespace shardscope::viewer {

std::string row_text(const TableModel& model, std::size_t row, const std::vector<std::size_t>& columns) {
    std::string line;
    for (const std::size_t c : columns) {
        std::string cell = model.text(row, c);
        std::replace_if(
            cell.begin(), cell.end(), [](char x) { return x == '\t' || x == '\n' || x == '\r'; }, ' ');
        line += (line.empty() && c == columns.front() ? "" : "\t") + cell;
    }
    return line;
}

bool draw_row_menu(const std::string& id, const TableModel& model, std::size_t row, TableState& state,
                   const std::vector<std::size_t>& columns) {
    if (!ImGui::BeginPopupContextItem("row menu")) return false;
    const std::size_t column = std::min(state.context_column, model.columns().size() - 1);
    if (ImGui::MenuItem(fmt::format("Copy {}", model.columns()[column].title).c_str()))
        ImGui::SetClipboardText(model.text(row, column).c_str());
    items::mark(id + ".menu.copy_cell", model.columns()[column].title);
    if (ImGui::MenuItem("Copy row")) ImGui::SetClipboardText(row_text(model, row, columns).c_str());
    items::mark(id + ".menu.copy_row");
    ImGui::Separator();
    const bool export_it = ImGui::MenuItem("Export table...");
    items::mark(id + ".menu.export");
    ImGui::EndPopup();
    return export_it;
}

bool draw_column_menu(const std::string& id, const TableModel& model, TableState& state) {
    const auto& columns = model.columns();
    for (std::size_t c = 1; c < columns.size(); ++c) {
        bool on = state.hidden.count(columns[c].id) == 0;
        const bool changed =
            ImGui::MenuItem((columns[c].title + "##" + columns[c].id).c_str(), columns[c].unit.c_str(), &on);
        items::mark(fmt::format("{}.columns.{}", id, columns[c].id), on ? "shown" : "hidden");
        if (!changed) continue;
        if (on) {
            state.hidden.erase(columns[c].id);
        } else {
            state.hidden.insert(columns[c].id);
        }
    }
    ImGui::Separator();
    ImGui::MenuItem("Also where there is no room", nullptr, &state.all_columns);
    items::mark(id + ".columns_menu.all", state.all_columns ? "on" : "off");
    if (ImGui::MenuItem("Model's order", nullptr, state.sort.column < 0)) state.sort = {};
    items::mark(id + ".columns_menu.order");
    const bool export_it = ImGui::MenuItem("Export table...");
    items::mark(id + ".columns_menu.export");
    return export_it;
}

}  // namespace shardscope::viewer
