// See table.h.
#include "viewer/tables/table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include <fmt/format.h>
#include <imgui_stdlib.h>

#include "viewer/draw/format.h"
#include "viewer/draw/items.h"
#include "viewer/draw/text.h"

namespace shardscope::viewer {
namespace {

// Tables are offered by the frame that draws them.
struct Shown {
    int frame = -1;
    std::vector<ShownTable> drawing, drawn;
};
Shown& shown() {
    static Shown kShown;
    return kShown;
}
void offer(ShownTable table) {
    Shown& all = shown();
    if (all.frame != ImGui::GetFrameCount()) {
        all.drawn = std::exchange(all.drawing, {});
        all.frame = ImGui::GetFrameCount();
    }
    all.drawing.push_back(std::move(table));
}

std::vector<std::size_t> columns_that_fit(const TableModel& model, float width) {
    const auto& columns = model.columns();
    std::vector<std::size_t> by_priority(columns.size());
    std::iota(by_priority.begin(), by_priority.end(), std::size_t{0});
    std::stable_sort(by_priority.begin() + (columns.empty() ? 0 : 1), by_priority.end(),
                     [&](auto a, auto b) { return columns[a].priority > columns[b].priority; });
    const float font = ImGui::GetFontSize(), padding = 2 * ImGui::GetStyle().CellPadding.x + 1;
    std::vector<std::size_t> fit;
    float used = 0;
    for (const std::size_t c : by_priority) {
        const float wide = columns[c].width > 0 ? columns[c].width : 14;
        used += wide * font + padding;
        if (used > width && !fit.empty()) break;
        fit.push_back(c);
    }
    std::sort(fit.begin(), fit.end());
    return fit;
}

double largest(const TableModel& model, std::size_t column) {
    double most = 0;
    for (std::size_t row = 0; row < model.rows(); ++row) {
        const double n = model.number(row, column);
        if (std::isfinite(n)) most = std::max(most, n);
    }
    return most;
}

void take_sorting(TableSort& sort) {
    ImGuiTableSortSpecs* specs = ImGui::TableGetSortSpecs();
    if (specs == nullptr || !specs->SpecsDirty) return;
    sort = {};
    if (specs->SpecsCount > 0) {
        sort.column = static_cast<int>(specs->Specs[0].ColumnUserID);
        sort.descending = specs->Specs[0].SortDirection == ImGuiSortDirection_Descending;
    }
    specs->SpecsDirty = false;
}

void draw_filter(const char* id, TableState& state) {
    ImGui::SetNextItemWidth(ImGui::GetFontSize() * 16);
    ImGui::InputTextWithHint("##filter", "Filter", &state.filter);
    items::mark(fmt::format("{}.filter", id), state.filter);
}

}  // namespace

TableEvents draw_table(const char* id, const std::shared_ptr<const TableModel>& model, TableState& state,
                       const TableOptions& options) {
    TableEvents events;
    ImGui::PushID(id);
    if (state.seen != model.get()) {
        state.chosen.reset();
        state.seen = model.get();
    }
    if (options.filter) draw_filter(id, state);
    const ImVec2 size = options.size;
    const std::vector<std::size_t> columns =
        columns_that_fit(*model, size.x > 0 ? size.x : ImGui::GetContentRegionAvail().x);
    constexpr ImGuiTableFlags kFlags = ImGuiTableFlags_ScrollY | ImGuiTableFlags_RowBg |
                                       ImGuiTableFlags_PadOuterX | ImGuiTableFlags_BordersInnerV |
                                       ImGuiTableFlags_Sortable | ImGuiTableFlags_SortTristate |
                                       ImGuiTableFlags_Resizable | ImGuiTableFlags_NoSavedSettings;
    ImGui::PushID(static_cast<int>(columns.size()));
    if (ImGui::BeginTable("table", static_cast<int>(columns.size()), kFlags, size)) {
        ImGui::TableSetupScrollFreeze(0, 1);
        int first_number = 0;
        std::vector<double> most(columns.size(), 0.0);
        for (std::size_t i = 0; i < columns.size(); ++i) {
            const TableColumn& column = model->columns()[columns[i]];
            const bool number = column.kind == TableColumn::Kind::number;
            if (!number && static_cast<int>(i) == first_number) ++first_number;
            ImGuiTableColumnFlags flags =
                column.width > 0 ? ImGuiTableColumnFlags_WidthFixed : ImGuiTableColumnFlags_WidthStretch;
            if (number) flags |= ImGuiTableColumnFlags_PreferSortDescending;
            if (state.sort.column == static_cast<int>(columns[i])) {
                flags |= ImGuiTableColumnFlags_DefaultSort;
                if (state.sort.descending) flags |= ImGuiTableColumnFlags_PreferSortDescending;
            }
            ImGui::TableSetupColumn((column.title + "\n" + (column.unit.empty() ? " " : column.unit)).c_str(),
                                    flags, column.width > 0 ? column.width * ImGui::GetFontSize() : 0,
                                    static_cast<ImGuiID>(columns[i]));
            if (column.bar != 0 && model->rows() <= TableOrder::kAtOnce)
                most[i] = largest(*model, columns[i]);
        }
        headers_row(first_number);
        take_sorting(state.sort);
        const std::vector<std::uint32_t>& order = state.order.of(model, state.sort, state.filter);
        items::value(fmt::format("{}.rows", id), fmt::format("{}", order.size()));
        offer({options.name.empty() ? id : options.name, model, order});

        ImGuiListClipper clipper;
        clipper.Begin(static_cast<int>(order.size()));
        while (clipper.Step()) {
            for (int n = clipper.DisplayStart; n < clipper.DisplayEnd; ++n) {
                const std::size_t row = order[static_cast<std::size_t>(n)];
                const std::string key = items::kept() ? model->text(row, 0) : std::string();
                ImGui::TableNextRow();
                for (std::size_t i = 0; i < columns.size(); ++i) {
                    ImGui::TableNextColumn();
                    const std::size_t c = columns[i];
                    const std::string value = model->text(row, c);
                    if (i == 0) {
                        ImGui::PushID(n);
                        constexpr ImGuiSelectableFlags kRow = ImGuiSelectableFlags_SpanAllColumns |
                                                              ImGuiSelectableFlags_AllowDoubleClick |
                                                              ImGuiSelectableFlags_AllowItemOverlap;
                        if (ImGui::Selectable("##row", state.chosen == row, kRow)) {
                            state.chosen = row;
                            events.clicked = row;
                            if (ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) events.opened = row;
                        }
                        if (ImGui::IsItemHovered()) events.hovered = row;
                        items::mark(fmt::format("{}.{}", id, key), value);
                        items::mark(fmt::format("{}.row.{}", id, n), value);
                        ImGui::PopID();
                        ImGui::SameLine(0, 0);
                        if (model->swatch(row) != 0) swatch(model->swatch(row));
                    }
                    const Color ink = model->ink(row, c);
                    if (ink != 0) ImGui::PushStyleColor(ImGuiCol_Text, ink);
                    if (model->columns()[c].kind == TableColumn::Kind::text) {
                        text_fit(value);
                    } else if (value == "-") {
                        text_right_dim(value);
                    } else if (most[i] > 0) {
                        cell_bar(model->number(row, c) / most[i], model->columns()[c].bar, value);
                    } else {
                        text_right(value);
                    }
                    if (ink != 0) ImGui::PopStyleColor();
                    items::mark(fmt::format("{}.{}.{}", id, key, model->columns()[c].id), value);
                }
            }
        }
        ImGui::EndTable();
        if (state.order.busy()) {
            note("Putting rows in order ...");
        } else if (order.empty() && model->rows() > 0) {
            note("No row holds this text.");
        }
    }
    ImGui::PopID();
    ImGui::PopID();
    return events;
}

void offer_table(ShownTable table) {
    offer(std::move(table));
}

std::vector<ShownTable> shown_tables() {
    Shown& all = shown();
    return all.frame == ImGui::GetFrameCount() && !all.drawing.empty() ? all.drawing : all.drawn;
}

}  // namespace shardscope::viewer
