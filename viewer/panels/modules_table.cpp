// See modules_table.h.
#include "viewer/panels/modules_table.h"

#include <algorithm>
#include <array>
#include <string>

#include <imgui.h>

#include "viewer/app/theme.h"
#include "viewer/draw/format.h"
#include "viewer/draw/text.h"

namespace shardscope::viewer {
namespace {

using traces::ModuleNode;
using traces::RankModules;

struct ColumnText {
    ModuleColumn column;
    const char* header;  // second line: the unit
    float width;         // in font sizes
    int priority;        // the lowest is left out first where the window is narrow
};

constexpr std::array<ColumnText, kModuleColumns - 1> kColumns = {{
    {ModuleColumn::occurrences, "Calls\n ", 3.6F, 8},
    {ModuleColumn::operators, "Operators\n ", 5.2F, 2},
    {ModuleColumn::host, "Host total\n\u00b5s", 6.2F, 9},
    {ModuleColumn::host_self, "Host self\n\u00b5s", 6.2F, 3},
    {ModuleColumn::device, "Device total\n\u00b5s", 7.2F, 11},
    {ModuleColumn::device_self, "Device self\n\u00b5s", 6.8F, 4},
    {ModuleColumn::backward, "Backward\n% of device", 6.2F, 6},
    {ModuleColumn::parameters, "Parameters\n ", 6.6F, 5},
    {ModuleColumn::gathered, "Gathered\nMB", 5.4F, 7},
    {ModuleColumn::reduced, "Reduced\nMB", 5.4F, 1},
    {ModuleColumn::peak, "Peak\nMB", 5.4F, 10},
}};
constexpr float kNameWidth = 21;

std::string cell_text(const ModuleNode& node, ModuleColumn column) {
    const auto megabytes = [](std::int64_t bytes) {
        return bytes == 0 ? std::string("-") : format_mb(bytes, false);
    };
    switch (column) {
        case ModuleColumn::name:
            return node.name;
        case ModuleColumn::occurrences:
            return format_count(node.occurrences);
        case ModuleColumn::operators:
            return format_count(node.operators);
        case ModuleColumn::host:
            return format_decimal(node.host_us, 0);
        case ModuleColumn::host_self:
            return format_decimal(node.host_self_us, 0);
        case ModuleColumn::device:
            return format_decimal(node.device_us, 0);
        case ModuleColumn::device_self:
            return format_decimal(node.device_self_us, 0);
        case ModuleColumn::backward:
            return node.device_us > 0 ? format_decimal(backward_percent(node), 1) : "-";
        case ModuleColumn::parameters:
            return node.parameters == 0 ? "-" : format_count(node.parameters);
        case ModuleColumn::gathered:
            return megabytes(node.gathered_bytes);
        case ModuleColumn::reduced:
            return megabytes(node.reduced_bytes);
        case ModuleColumn::peak:
            return megabytes(node.peak_bytes);
    }
    return {};
}

// Bars stand behind the columns that are read at a glance; each scaled by the largest root.
ImU32 bar_color(ModuleColumn column) {
    switch (column) {
        case ModuleColumn::device:
        case ModuleColumn::device_self:
            return time_category_color(traces::TimeCategory::kernel);
        case ModuleColumn::gathered:
        case ModuleColumn::reduced:
            return time_category_color(traces::TimeCategory::communication);
        case ModuleColumn::peak:
            return category_color(traces::MemoryCategory::activations);
        default:
            return 0;
    }
}

double largest_value(const std::vector<ModuleNode>& nodes, ModuleColumn column) {
    double largest = 0;
    for (const ModuleNode& node : nodes) {
        largest = std::max({largest, column_value(node, column), largest_value(node.children, column)});
    }
    return largest;
}

void take_sorting(ModuleTreeState& state) {
    ImGuiTableSortSpecs* specs = ImGui::TableGetSortSpecs();
    if (specs == nullptr || !specs->SpecsDirty) return;
    state.sorted = specs->SpecsCount > 0;
    if (state.sorted) {
        state.sort_by = static_cast<ModuleColumn>(specs->Specs[0].ColumnUserID);
        state.descending = specs->Specs[0].SortDirection == ImGuiSortDirection_Descending;
    }
    specs->SpecsDirty = false;
}

// The name cell: indentation, arrow, name; true where it was clicked (not on its arrow).
bool draw_name(const VisibleModule& row, ModuleTreeState& state, bool selected) {
    const float indent = static_cast<float>(row.depth) * ImGui::GetFontSize() * 0.9F;
    if (indent > 0) ImGui::Indent(indent);
    ImGuiTreeNodeFlags flags = ImGuiTreeNodeFlags_NoTreePushOnOpen | ImGuiTreeNodeFlags_NoAutoOpenOnLog |
                               ImGuiTreeNodeFlags_SpanFullWidth | ImGuiTreeNodeFlags_OpenOnArrow |
                               ImGuiTreeNodeFlags_OpenOnDoubleClick;
    if (!row.has_children) flags |= ImGuiTreeNodeFlags_Leaf;
    if (selected) flags |= ImGuiTreeNodeFlags_Selected;
    ImGui::SetNextItemOpen(row.open, ImGuiCond_Always);
    if (row.found) ImGui::PushStyleColor(ImGuiCol_Text, theme::accent());
    const bool open = ImGui::TreeNodeEx(row.path.c_str(), flags, "%s", row.node->name.c_str());
    if (row.found) ImGui::PopStyleColor();
    const bool clicked = ImGui::IsItemClicked() && !ImGui::IsItemToggledOpen();
    if (indent > 0) ImGui::Unindent(indent);
    if (row.has_children && open != row.open && state.search.empty()) {
        if (!state.toggled.erase(row.path)) state.toggled.insert(row.path);
    }
    return clicked;
}

void draw_tip(const VisibleModule& row) {
    begin_tip(row.node->name);
    tip_row("Path", shorten_middle(row.path, 64));
    for (const ColumnText& column : kColumns) {
        std::string label = column.header, unit;
        if (const auto line = label.find('\n'); line != std::string::npos) {
            unit = label.substr(line + 1);
            label.resize(line);
        }
        const std::string value = cell_text(*row.node, column.column);
        tip_row(label, unit == " " || value == "-" ? value : value + " " + unit.substr(0, unit.find(' ')));
    }
    tip_row("Waiting in unshard", format_duration(row.node->unshard_wait_us * 1e3));
    end_tip();
}

}  // namespace

std::vector<ModuleColumn> columns_that_fit(float width) {
    const float font = ImGui::GetFontSize();
    float used = kNameWidth * font;
    std::array<const ColumnText*, kColumns.size()> by_priority{};
    std::transform(kColumns.begin(), kColumns.end(), by_priority.begin(),
                   [](const ColumnText& c) { return &c; });
    std::sort(by_priority.begin(), by_priority.end(),
              [](auto* a, auto* b) { return a->priority > b->priority; });
    std::vector<ModuleColumn> columns;
    for (const ColumnText* column : by_priority) {
        used += column->width * font + 2 * ImGui::GetStyle().CellPadding.x;
        if (used > width) break;
        columns.push_back(column->column);
    }
    std::sort(columns.begin(), columns.end());
    return columns;
}

ModuleTableResult draw_module_table(const RankModules& rank, ModuleTreeState& state, int selected_module) {
    ModuleTableResult result;
    const std::vector<ModuleColumn> columns = columns_that_fit(ImGui::GetContentRegionAvail().x);
    constexpr ImGuiTableFlags kFlags = ImGuiTableFlags_ScrollY | ImGuiTableFlags_RowBg |
                                       ImGuiTableFlags_PadOuterX | ImGuiTableFlags_BordersInnerV |
                                       ImGuiTableFlags_Sortable | ImGuiTableFlags_SortTristate |
                                       ImGuiTableFlags_Resizable | ImGuiTableFlags_NoSavedSettings;
    // The id holds the columns' number: another window width is another table.
    ImGui::PushID(static_cast<int>(columns.size()));
    if (ImGui::BeginTable("modules", static_cast<int>(columns.size()) + 1, kFlags)) {
        ImGui::TableSetupScrollFreeze(0, 1);
        ImGui::TableSetupColumn("Module", ImGuiTableColumnFlags_WidthStretch, 0,
                                static_cast<ImGuiID>(ModuleColumn::name));
        std::vector<double> largest;
        for (const ModuleColumn c : columns) {
            const auto& column =
                *std::find_if(kColumns.begin(), kColumns.end(), [c](const auto& t) { return t.column == c; });
            ImGui::TableSetupColumn(
                column.header, ImGuiTableColumnFlags_WidthFixed | ImGuiTableColumnFlags_PreferSortDescending,
                column.width * ImGui::GetFontSize(), static_cast<ImGuiID>(c));
            largest.push_back(bar_color(c) != 0 ? largest_value(rank.modules, c) : 0);
        }
        headers_row(1);
        take_sorting(state);

        const std::vector<VisibleModule> rows = visible_modules(rank.modules, state);
        ImGuiListClipper clipper;
        clipper.Begin(static_cast<int>(rows.size()));
        while (clipper.Step()) {
            for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
                const VisibleModule& row = rows[static_cast<std::size_t>(i)];
                ImGui::TableNextRow();
                ImGui::TableNextColumn();
                const bool selected = selected_module >= 0 && row.node->module == selected_module;
                if (draw_name(row, state, selected)) result = {true, row.node->module};
                if (ImGui::IsItemHovered() &&
                    ImGui::GetIO().MousePos.x < ImGui::GetItemRectMin().x + kNameWidth * ImGui::GetFontSize())
                    draw_tip(row);
                for (std::size_t c = 0; c < columns.size(); ++c) {
                    ImGui::TableNextColumn();
                    const std::string value = cell_text(*row.node, columns[c]);
                    const double share =
                        largest[c] > 0 ? column_value(*row.node, columns[c]) / largest[c] : 0;
                    if (value == "-") {
                        text_right_dim(value);
                    } else {
                        cell_bar(share, bar_color(columns[c]), value);
                    }
                }
            }
        }
        ImGui::EndTable();
        if (rows.empty()) note("No module's name holds this text.");
    }
    ImGui::PopID();
    return result;
}

}  // namespace shardscope::viewer
