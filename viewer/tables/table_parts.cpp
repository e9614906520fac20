// See table_parts.h.
#include "viewer/tables/table_parts.h"

#include <algorithm>
#include <numeric>

#include <fmt/core.h>
#include <imgui.h>

#include "viewer/draw/items.h"
#include "viewer/draw/text.h"

namespace shardscope::viewer::tables {
namespace {

constexpr std::size_t kMostColumns = 64;  // limit of Dear ImGui's tables

}  // namespace

std::vector<std::size_t> columns_that_fit(const TableModel& model, const std::set<std::string>& hidden,
                                          const ColumnRoom& room) {
    const auto& columns = model.columns();
    std::vector<std::size_t> by_priority(columns.size());
    std::iota(by_priority.begin(), by_priority.end(), std::size_t{0});
    // The first column always comes first.
    std::stable_sort(by_priority.begin() + (columns.empty() ? 0 : 1), by_priority.end(),
                     [&](auto a, auto b) { return columns[a].priority > columns[b].priority; });
    const float font = ImGui::GetFontSize(), padding = 2 * ImGui::GetStyle().CellPadding.x + 1;
    std::vector<std::size_t> fit;
    float used = room.used, given = 0;  // `given`: what the widest text leaves to the others
    for (const std::size_t c : by_priority) {
        if (c < room.first || (c != 0 && hidden.contains(columns[c].id))) continue;
        float least = (columns[c].least > 0 ? columns[c].least : c == 0 ? 10.0F : 8.0F) * font;
        if (c == 0) least = std::min(least, 0.5F * room.width);  // in a narrow pane a number is needed, too
        used += (columns[c].width > 0 ? columns[c].width * font : least) + padding;
        if (columns[c].kind == TableColumn::Kind::text && columns[c].least > 0)
            given = std::max(given, columns[c].width * font - least);
        if (used - given > room.width && !fit.empty() && !room.all) break;
        if (fit.size() + room.first == kMostColumns) break;
        fit.push_back(c);
    }
    std::sort(fit.begin(), fit.end());
    return fit;
}

std::string header_text(const TableColumn& column, const ColumnScale& scale) {
    return scale.unit.empty() ? column.title : column.title + "\n" + scale.unit;
}

std::optional<TableSort> new_sorting() {
    ImGuiTableSortSpecs* specs = ImGui::TableGetSortSpecs();
    if (specs == nullptr || !specs->SpecsDirty) return std::nullopt;
    specs->SpecsDirty = false;
    TableSort sort;
    if (specs->SpecsCount > 0) {
        sort.column = static_cast<int>(specs->Specs[0].ColumnUserID);
        sort.descending = specs->Specs[0].SortDirection == ImGuiSortDirection_Descending;
    }
    return sort;
}

void draw_cell(const TableModel& model, std::size_t row, std::size_t column, const std::string& value,
               const ColumnScale& scale, double most) {
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const ImVec2 end{at.x + ImGui::GetContentRegionAvail().x, at.y + ImGui::GetTextLineHeight()};
    const theme::Color ink = model.ink(row, column);
    if (ink != 0) ImGui::PushStyleColor(ImGuiCol_Text, ink);
    if (model.columns()[column].kind == TableColumn::Kind::text) {
        draw::text_fit(value);
    } else if (value == "-") {
        draw::text_right_dim(value);
    } else {
        const double number = model.number(row, column);
        draw::number_cell(value, number / scale.of, most > 0 ? number / most : 0,
                          model.columns()[column].bar);
    }
    if (ink != 0) ImGui::PopStyleColor();
    if (!ImGui::IsWindowHovered() || !ImGui::IsMouseHoveringRect(at, end)) return;
    const std::string exact = exact_text(model, row, column, scale);
    if (exact.empty()) return;
    ImGui::BeginTooltip();
    draw::text(exact);
    ImGui::EndTooltip();
    draw::items::value("table.exact", exact);
}

bool key_pressed(ImGuiKey key) {
#if IMGUI_VERSION_NUM >= 18700
    return ImGui::IsKeyPressed(key);
#else
    const int code = ImGui::GetKeyIndex(key);
    return code >= 0 && ImGui::IsKeyPressed(code);
#endif
}

void show_column(std::set<std::string>& hidden, const std::string& id, bool show) {
    if (show) {
        hidden.erase(id);
    } else {
        hidden.insert(id);
    }
}

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
    const TableColumn& copied = model.columns()[column];
    const std::string unit = copied.unit.empty() ? "" : " (" + copied.unit + ")";
    if (ImGui::MenuItem(fmt::format("Copy {}{}", copied.title, unit).c_str()))
        ImGui::SetClipboardText(model.text(row, column).c_str());
    draw::items::mark(id + ".menu.copy_cell", copied.title);
    if (ImGui::MenuItem("Copy row")) ImGui::SetClipboardText(row_text(model, row, columns).c_str());
    draw::items::mark(id + ".menu.copy_row");
    ImGui::Separator();
    const bool export_it = ImGui::MenuItem("Export table...");
    draw::items::mark(id + ".menu.export");
    ImGui::EndPopup();
    return export_it;
}

bool draw_column_menu(const std::string& id, const TableModel& model, TableState& state) {
    const auto& columns = model.columns();
    for (std::size_t c = 1; c < columns.size(); ++c) {
        bool on = state.hidden.count(columns[c].id) == 0;
        const bool changed = ImGui::MenuItem((columns[c].title + "##" + columns[c].id).c_str(),
                                             state.scales.last()[c].unit.c_str(), &on);
        draw::items::mark(fmt::format("{}.columns.{}", id, columns[c].id), on ? "shown" : "hidden");
        if (changed) show_column(state.hidden, columns[c].id, on);
    }
    ImGui::Separator();
    ImGui::MenuItem("Show columns that do not fit", nullptr, &state.all_columns);
    draw::items::mark(id + ".columns_menu.all", state.all_columns ? "on" : "off");
    if (ImGui::MenuItem("Original order", nullptr, state.sort.column < 0)) state.sort = {};
    draw::items::mark(id + ".columns_menu.order");
    const bool export_it = ImGui::MenuItem("Export table...");
    draw::items::mark(id + ".columns_menu.export");
    return export_it;
}

}  // namespace shardscope::viewer::tables
