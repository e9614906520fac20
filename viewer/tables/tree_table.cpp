// See tree_table.h.
#include "viewer/tables/tree_table.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include <fmt/core.h>
#include <imgui_stdlib.h>

#include "viewer/draw/items.h"
#include "viewer/draw/text.h"
#include "viewer/tables/table.h"
#include "viewer/tables/table_parts.h"

namespace shardscope::viewer::tables {
namespace {

constexpr int kAllLevels = 100'000;
constexpr float kNameWidth = 19;  // in font sizes: minimum width of the tree's column

// The header, and its places for scripts; returns its height.
float draw_header(const char* id, const TreeModel& model, const std::vector<std::size_t>& columns) {
    std::vector<bool> numbers = {false};  // the tree's names
    for (const std::size_t c : columns)
        numbers.push_back(model.columns()[c].kind == TableColumn::Kind::number);
    const float height = draw::headers_row(numbers);
    if (!draw::items::kept()) return height;
    for (std::size_t i = 0; i <= columns.size(); ++i) {
        if (!ImGui::TableSetColumnIndex(static_cast<int>(i))) continue;
        const std::size_t c = i == 0 ? 0 : columns[i - 1];
        const ImVec2 at = ImGui::GetCursorScreenPos();
        const float width = ImGui::GetContentRegionAvail().x;
        const float line = ImGui::GetTextLineHeight();
        // The cursor in a header's cell is at the start of its text or below it.
        draw::items::place(fmt::format("{}.header.{}", id, model.columns()[c].id), {at.x, at.y - line},
                           {at.x + width, at.y + line}, model.columns()[c].title);
    }
    return height;
}

struct Cells {
    const std::vector<std::size_t>& columns;
    const std::vector<ColumnScale>& scales;  // by column of the model
    std::vector<double> most;                // the value of a whole bar, by position in `columns`; 0: no bar
};

class RowDrawer {
  public:
    RowDrawer(const char* id, const TreeModel& model, TreeState& state, const TreeOptions& options)
        : id_(id), model_(model), state_(state), options_(options) {}

    void draw(const TreeRow& shown, const Cells& cells, TreeEvents& events) {
        ImGui::TableNextRow();
        ImGui::TableNextColumn();
        draw_name(shown, events);
        const std::string& path = model_.node(shown.row).path;
        for (std::size_t i = 0; i < cells.columns.size(); ++i) {
            ImGui::TableNextColumn();
            const std::size_t c = cells.columns[i];
            const std::string value = scaled_text(model_, shown.row, c, cells.scales[c]);
            draw_cell(model_, shown.row, c, value, cells.scales[c], cells.most[i]);
            if (draw::items::kept())
                draw::items::mark(fmt::format("{}.{}.{}", id_, path, model_.columns()[c].id),
                                  model_.text(shown.row, c));
        }
    }

  private:
    void draw_name(const TreeRow& shown, TreeEvents& events) {
        const TreeNode& node = model_.node(shown.row);
        const float indent = static_cast<float>(node.depth) * ImGui::GetFontSize() * 0.9F;
        const ImVec2 start = ImGui::GetCursorScreenPos();
        if (indent > 0) ImGui::Indent(indent);
        ImGuiTreeNodeFlags flags = ImGuiTreeNodeFlags_NoTreePushOnOpen | ImGuiTreeNodeFlags_NoAutoOpenOnLog |
                                   ImGuiTreeNodeFlags_SpanFullWidth | ImGuiTreeNodeFlags_OpenOnArrow;
        if (!model_.has_children(shown.row)) flags |= ImGuiTreeNodeFlags_Leaf;
        if (state_.chosen == node.path) flags |= ImGuiTreeNodeFlags_Selected;
        ImGui::SetNextItemOpen(shown.open, ImGuiCond_Always);
        if (shown.found) ImGui::PushStyleColor(ImGuiCol_Text, ImGui::GetStyleColorVec4(ImGuiCol_CheckMark));
        ImGui::PushID(static_cast<int>(shown.row));
        const float arrow = ImGui::GetTreeNodeToLabelSpacing();
        const std::string name = draw::fit_text(
            node.name, std::max(ImGui::GetFontSize() * 2, ImGui::GetContentRegionAvail().x - arrow));
        const bool open = ImGui::TreeNodeEx("row", flags, "%s", name.c_str());
        ImGui::PopID();
        if (shown.found) ImGui::PopStyleColor();
        const bool toggled = ImGui::IsItemToggledOpen();
        if (ImGui::IsItemClicked() && !toggled) events.clicked = shown.row;
        const bool hovered = ImGui::IsItemHovered();
        if (hovered && !toggled && ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left))
            events.opened = shown.row;
        if (draw::items::kept()) {
            draw::items::mark(fmt::format("{}.row.{}", id_, node.path), node.name);
            const ImVec2 at{start.x + indent, start.y};
            draw::items::place(fmt::format("{}.arrow.{}", id_, node.path), at,
                               {at.x + arrow, at.y + ImGui::GetTextLineHeight()},
                               shown.open ? "open" : "closed");
        }
        const bool on_name =
            hovered && ImGui::GetIO().MousePos.x < start.x + kNameWidth * ImGui::GetFontSize();
        if (indent > 0) ImGui::Unindent(indent);
        if (on_name && options_.tip) options_.tip(shown.row);
        if (model_.has_children(shown.row) && open != shown.open && state_.view().search.empty())
            state_.toggle(node.path);
    }

    const char* id_;
    const TreeModel& model_;
    TreeState& state_;
    const TreeOptions& options_;
};

// Up and down choose the next row, left and right close and open, Enter opens.
void take_keys(const TreeModel& model, const std::vector<TreeRow>& rows, TreeState& state,
               TreeEvents& events) {
    if (!ImGui::IsWindowFocused(ImGuiFocusedFlags_ChildWindows) || ImGui::GetIO().WantTextInput) return;
    const auto at = std::find_if(rows.begin(), rows.end(), [&](const TreeRow& row) {
        return state.chosen == model.node(row.row).path;
    });
    const int move = (key_pressed(ImGuiKey_DownArrow) ? 1 : 0) - (key_pressed(ImGuiKey_UpArrow) ? 1 : 0);
    if (move != 0 && !rows.empty()) {
        const auto last = static_cast<std::ptrdiff_t>(rows.size()) - 1;
        const std::ptrdiff_t next =
            at == rows.end() ? 0 : std::clamp<std::ptrdiff_t>(at - rows.begin() + move, 0, last);
        events.clicked = rows[static_cast<std::size_t>(next)].row;
        state.scroll_to_chosen = true;
    }
    if (at == rows.end()) return;
    const std::string& path = model.node(at->row).path;
    const bool parent = model.has_children(at->row) && state.view().search.empty();
    if (key_pressed(ImGuiKey_Enter)) {
        events.opened = at->row;
    } else if (parent && key_pressed(at->open ? ImGuiKey_LeftArrow : ImGuiKey_RightArrow)) {
        state.toggle(path);
    }
}

void scroll_to_chosen(const TreeModel& model, const std::vector<TreeRow>& rows, TreeState& state,
                      float header) {
    if (!state.scroll_to_chosen) return;
    state.scroll_to_chosen = false;
    const auto at = std::find_if(rows.begin(), rows.end(), [&](const TreeRow& row) {
        return state.chosen == model.node(row.row).path;
    });
    if (at == rows.end()) return;
    const float line = ImGui::GetTextLineHeight() + 2 * ImGui::GetStyle().CellPadding.y;
    const float top = static_cast<float>(at - rows.begin()) * line;
    const float height = ImGui::GetWindowHeight() - header;
    if (top < ImGui::GetScrollY()) ImGui::SetScrollY(top);
    if (top + line > ImGui::GetScrollY() + height) ImGui::SetScrollY(top + line - height);
}

}  // namespace

void draw_tree_controls(const char* id, const std::shared_ptr<const TreeModel>& model, TreeState& state) {
    const float font = ImGui::GetFontSize();
    ImGui::PushID(id);
    draw::flow(font * 10);
    ImGui::SetNextItemWidth(std::min(font * 14, ImGui::GetContentRegionAvail().x * 0.4F));
    ImGui::InputTextWithHint("##search", "Search a module", &state.search_text);
    draw::items::mark(fmt::format("{}.search", id), state.search_text);
    state.search(state.search_text);
    ImGui::SameLine(0, font * 0.6F);
    draw::flow(draw::button_width("Open all"));
    if (draw::named_button("Open all", fmt::format("{}.open_all", id))) state.open_levels(kAllLevels);
    ImGui::SameLine(0, font * 0.3F);
    draw::flow(draw::button_width("Close all"));
    if (draw::named_button("Close all", fmt::format("{}.close_all", id))) state.open_levels(1);
    ImGui::SameLine(0, font * 0.3F);
    draw::flow(draw::button_width("Columns"));
    if (draw::named_button("Columns", fmt::format("{}.columns", id))) ImGui::OpenPopup("columns");
    if (ImGui::BeginPopup("columns")) {
        for (std::size_t c = 1; c < model->columns().size(); ++c) {
            const TableColumn& column = model->columns()[c];
            bool shown = !state.hidden.contains(column.id);
            const std::string& written = state.scales.of(model)[c].unit;
            const std::string unit = written.empty() ? "" : ", " + written;
            if (ImGui::Checkbox((column.title + unit + "##" + column.id).c_str(), &shown))
                show_column(state.hidden, column.id, shown);
            draw::items::mark(fmt::format("{}.columns.{}", id, column.id), shown ? "shown" : "hidden");
        }
        ImGui::EndPopup();
    }
    ImGui::PopID();
}

TreeEvents draw_tree(const char* id, const std::shared_ptr<const TreeModel>& model, TreeState& state,
                     const TreeOptions& options) {
    TreeEvents events;
    const float width = options.size.x > 0 ? options.size.x : ImGui::GetContentRegionAvail().x;
    // The columns that fit beside a readable tree.
    const std::vector<std::size_t> columns = columns_that_fit(
        *model, state.hidden, {.width = width, .used = kNameWidth * ImGui::GetFontSize(), .first = 1});
    constexpr ImGuiTableFlags kFlags = ImGuiTableFlags_ScrollY | ImGuiTableFlags_RowBg |
                                       ImGuiTableFlags_PadOuterX | ImGuiTableFlags_BordersInnerV |
                                       ImGuiTableFlags_Sortable | ImGuiTableFlags_SortTristate |
                                       ImGuiTableFlags_Resizable | ImGuiTableFlags_NoSavedSettings;
    // The id depends on the columns: other columns make another table.
    std::string table = id;
    for (const std::size_t c : columns) table += fmt::format(" {}", c);
    if (!ImGui::BeginTable(table.c_str(), static_cast<int>(columns.size()) + 1, kFlags, options.size))
        return events;
    ImGui::TableSetupScrollFreeze(0, 1);
    ImGui::TableSetupColumn(options.first.c_str(), ImGuiTableColumnFlags_WidthStretch, 0, 0);
    Cells cells{columns, state.scales.of(model), {}};
    for (const std::size_t c : columns) {
        const TableColumn& column = model->columns()[c];
        ImGuiTableColumnFlags flags = ImGuiTableColumnFlags_WidthFixed;
        const TableSort& sort = state.view().sort;
        const bool sorted = sort.column == static_cast<int>(c);
        if (sorted) flags |= ImGuiTableColumnFlags_DefaultSort;
        if (!sorted || sort.descending) flags |= ImGuiTableColumnFlags_PreferSortDescending;
        ImGui::TableSetupColumn(header_text(column, cells.scales[c]).c_str(), flags,
                                column.width * ImGui::GetFontSize(), static_cast<ImGuiID>(c));
        cells.most.push_back(column.bar == 0 ? 0 : column.full > 0 ? column.full : model->largest(c));
    }
    const float header = draw_header(id, *model, columns);
    if (const auto sorting = new_sorting()) state.sort(*sorting);

    const std::vector<TreeRow>& rows = state.rows(model);  // the effect of a click shows in the next frame
    draw::items::value(fmt::format("{}.rows", id), fmt::format("{}", rows.size()));
    offer_table({options.name.empty() ? id : options.name, model, state.order()});

    take_keys(*model, rows, state, events);
    scroll_to_chosen(*model, rows, state, header);
    RowDrawer drawer(id, *model, state, options);
    ImGuiListClipper clipper;
    clipper.Begin(static_cast<int>(rows.size()));
    while (clipper.Step()) {
        for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i)
            drawer.draw(rows[static_cast<std::size_t>(i)], cells, events);
    }
    ImGui::EndTable();
    if (rows.empty())
        draw::note(model->rows() == 0 ? "There is nothing to list." : "No name contains this text.");
    if (events.clicked) state.chosen = model->node(*events.clicked).path;
    return events;
}

}  // namespace shardscope::viewer::tables
