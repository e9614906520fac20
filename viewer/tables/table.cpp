// See table.h.
#include "viewer/tables/table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include <fmt/core.h>
#include <imgui_stdlib.h>

#include "viewer/draw/format.h"
#include "viewer/draw/items.h"
#include "viewer/draw/text.h"
#include "viewer/tables/table_order.h"
#include "viewer/tables/table_parts.h"

namespace shardscope::viewer::tables {
namespace {

// The tables of the frame being drawn, and of the one before it.
struct Shown {
    int frame = -1;
    std::vector<ShownTable> drawing, drawn;
    std::vector<std::string> ids;  // drawn so far in this frame
    std::optional<std::string> export_request;
};
Shown& shown() {
    static Shown kShown;
    Shown& all = kShown;
    if (all.frame != ImGui::GetFrameCount()) {
        all.drawn = std::exchange(all.drawing, {});
        all.ids.clear();
        all.frame = ImGui::GetFrameCount();
    }
    return all;
}

// The id, or "<id>#2" for the second table with this id in the frame.
std::string own_id(const char* id) {
    std::vector<std::string>& ids = shown().ids;
    const auto others = std::count(ids.begin(), ids.end(), id);
    ids.emplace_back(id);
    return others == 0 ? std::string(id) : fmt::format("{}#{}", id, others + 1);
}

void draw_filter(const std::string& id, TableState& state) {
    ImGui::SetNextItemWidth(ImGui::GetFontSize() * 16);
    ImGui::InputTextWithHint("##filter", "Filter", &state.filter);
    draw::items::mark(id + ".filter", state.filter);
}

std::size_t column_called(const TableModel& model, const std::string& id) {
    const auto& columns = model.columns();
    const auto found =
        std::find_if(columns.begin(), columns.end(), [&](const auto& c) { return c.id == id; });
    return static_cast<std::size_t>(found - columns.begin());
}

// Restores the state from the last time the program ran.
void recall(const std::string& id, const TableModel& model, TableState& state) {
    state.remembered = true;
    const auto saved = table_memory().find(id);
    if (saved == table_memory().end()) return;
    state.hidden = {saved->second.hidden.begin(), saved->second.hidden.end()};
    const std::size_t column = column_called(model, saved->second.sorted_by);
    if (column < model.columns().size())
        state.sort = {.column = static_cast<int>(column), .descending = saved->second.descending};
}

void remember(const std::string& id, const TableModel& model, const TableState& state) {
    SavedTable saved;
    if (state.sort.column >= 0 && static_cast<std::size_t>(state.sort.column) < model.columns().size())
        saved.sorted_by = model.columns()[static_cast<std::size_t>(state.sort.column)].id;
    saved.descending = state.sort.descending;
    saved.hidden = {state.hidden.begin(), state.hidden.end()};
    if (saved == SavedTable{}) {
        table_memory().erase(id);
    } else {
        table_memory()[id] = saved;
    }
}

// Whether two rows are about the same: all texts are equal, or the first cells where a table has no text.
bool same_row(const TableModel& a, std::size_t row, const TableModel& b, std::size_t other) {
    bool texts = false;
    for (std::size_t c = 0; c < a.columns().size(); ++c) {
        if (a.columns()[c].kind == TableColumn::Kind::number) continue;
        texts = true;
        if (a.text(row, c) != b.text(other, c)) return false;
    }
    return texts || a.text(row, 0) == b.text(other, 0);
}

// The row of the next model that is about the same as the chosen one, which is kept when a trace grows.
std::optional<std::size_t> chosen_again(const TableModel& before, std::size_t row, const TableModel& model) {
    const auto& a = before.columns();
    const auto& b = model.columns();
    if (row >= before.rows() || !std::equal(a.begin(), a.end(), b.begin(), b.end(), [](auto& x, auto& y) {
            return x.id == y.id && x.kind == y.kind;
        }))
        return std::nullopt;
    if (row < model.rows() && same_row(before, row, model, row)) return row;
    std::optional<std::size_t> same;
    for (std::size_t other = 0; other < std::min(model.rows(), TableOrder::kAtOnce); ++other) {
        if (!same_row(before, row, model, other)) continue;
        if (same) return std::nullopt;  // one of several
        same = other;
    }
    return same;
}

void meet_model(const std::shared_ptr<const TableModel>& met, TableState& state) {
    const TableModel& model = *met;
    if (state.seen != met.get() && state.chosen) {
        const bool known = state.measured != nullptr && state.seen == state.measured.get();
        state.chosen = known ? chosen_again(*state.measured, *state.chosen, model) : std::nullopt;
    }
    if (state.chosen && *state.chosen >= model.rows()) state.chosen.reset();
    state.seen = met.get();
    if (state.measured == met) {
        state.remade = 0;
        return;
    }
    if (state.measured != nullptr) ++state.remade;
    state.measured = met;
    state.largest.assign(model.columns().size(), 0.0);
    if (model.rows() > TableOrder::kAtOnce) return;  // bars would require a scan of every row
    for (std::size_t c = 0; c < model.columns().size(); ++c) {
        const TableColumn& column = model.columns()[c];
        if (column.bar != 0) state.largest[c] = column.full > 0 ? column.full : model.largest(c);
    }
}

constexpr auto kNoColumn = static_cast<std::size_t>(-1);

// One table being drawn.
class Drawing {
  public:
    Drawing(std::string id, const std::shared_ptr<const TableModel>& model, TableState& state,
            const TableOptions& options, std::vector<std::size_t> columns, bool scrolls)
        : id_(std::move(id)),
          model_(model),
          state_(state),
          options_(options),
          columns_(std::move(columns)),
          scrolls_(scrolls),
          scales_(state.scales.of(model)) {}

    TableEvents draw() {
        ImGui::TableSetupScrollFreeze(scrolls_ ? 1 : 0, 1);
        draw_headers();
        const auto sorting = new_sorting();
        if (sorting && *sorting != state_.sort) {
            state_.sort = *sorting;
            remember(id_, *model_, state_);
        }
        order_ = &state_.order.of(model_, state_.sort, state_.filter);
        draw::items::value(id_ + ".rows", fmt::format("{}", order_->size()));
        const std::string name = options_.name.empty() ? id_ : options_.name;
        shown().drawing.push_back({name, model_, state_.order.shared()});
        take_keys();
        draw_rows();
        if (export_) shown().export_request = name;
        return events_;
    }
    bool empty() const { return order_ == nullptr || order_->empty(); }

  private:
    // If no column shares the room that is left, the widest text takes it; a table of numbers stays narrow.
    std::size_t taker_of_rest() const {
        std::size_t widest = kNoColumn;
        for (const std::size_t c : columns_) {
            const TableColumn& column = model_->columns()[c];
            if (column.width <= 0) return kNoColumn;
            if (column.kind == TableColumn::Kind::text &&
                (widest == kNoColumn || column.width > model_->columns()[widest].width))
                widest = c;
        }
        return widest;
    }

    void draw_headers() {
        const std::size_t rest = taker_of_rest();
        std::vector<bool> numbers;
        for (std::size_t i = 0; i < columns_.size(); ++i) {
            const TableColumn& column = model_->columns()[columns_[i]];
            const bool number = column.kind == TableColumn::Kind::number;
            numbers.push_back(number);
            const bool fixed = scrolls_ || (column.width > 0 && columns_[i] != rest);
            ImGuiTableColumnFlags flags =
                fixed ? ImGuiTableColumnFlags_WidthFixed : ImGuiTableColumnFlags_WidthStretch;
            if (number) flags |= ImGuiTableColumnFlags_PreferSortDescending;
            if (state_.sort.column == static_cast<int>(columns_[i])) {
                flags |= ImGuiTableColumnFlags_DefaultSort;
                if (state_.sort.descending) flags |= ImGuiTableColumnFlags_PreferSortDescending;
            }
            const float wide = !fixed ? 0 : column.width > 0 ? column.width : 18;
            ImGui::TableSetupColumn(header_text(column, scales_[columns_[i]]).c_str(), flags,
                                    wide * ImGui::GetFontSize(), static_cast<ImGuiID>(columns_[i]));
        }
        header_height_ = draw::headers_row(numbers);
        draw_header_extras();
    }

    // Adds to the headers: the column's definition on hover, the menu of columns, names for scripts.
    void draw_header_extras() {
        for (std::size_t i = 0; i < columns_.size(); ++i) {
            if (!ImGui::TableSetColumnIndex(static_cast<int>(i))) continue;
            const TableColumn& column = model_->columns()[columns_[i]];
            const ImVec2 min = ImGui::GetCursorScreenPos();
            left_.resize(columns_.size(), min.x);
            left_[i] = min.x;
            const ImVec2 max{min.x + ImGui::GetContentRegionAvail().x, min.y + header_height_};
            draw::items::place(fmt::format("{}.header.{}", id_, column.id), min, max, column.title);
            if (!ImGui::IsWindowHovered() || !ImGui::IsMouseHoveringRect(min, max)) continue;
            if (!column.help.empty()) {
                ImGui::BeginTooltip();
                draw::begin_wrap(ImGui::GetFontSize() * 30);
                draw::text(column.help);
                draw::end_wrap();
                ImGui::EndTooltip();
            }
            if (ImGui::IsMouseReleased(ImGuiMouseButton_Right)) ImGui::OpenPopup("columns");
        }
        if (!ImGui::BeginPopup("columns")) return;
        const std::set<std::string> before = state_.hidden;
        export_ = draw_column_menu(id_, *model_, state_) || export_;
        if (before != state_.hidden) remember(id_, *model_, state_);
        ImGui::EndPopup();
    }

    // The position of the chosen row in the order; -1 if it is not shown.
    std::ptrdiff_t place_of_chosen() const {
        if (!state_.chosen) return -1;
        const auto found =
            std::find(order_->begin(), order_->end(), static_cast<std::uint32_t>(*state_.chosen));
        return found == order_->end() ? -1 : found - order_->begin();
    }

    void take_keys() {
        if (order_->empty() || ImGui::GetIO().WantTextInput || !ImGui::IsWindowFocused()) return;
        const auto page = static_cast<std::ptrdiff_t>(
            std::max(1.0F, ImGui::GetWindowHeight() / ImGui::GetTextLineHeightWithSpacing() - 3));
        const auto count = static_cast<std::ptrdiff_t>(order_->size());
        struct Move {
            ImGuiKey key;
            std::ptrdiff_t by;
        };
        const Move moves[] = {{ImGuiKey_UpArrow, -1},    {ImGuiKey_DownArrow, 1}, {ImGuiKey_PageUp, -page},
                              {ImGuiKey_PageDown, page}, {ImGuiKey_Home, -count}, {ImGuiKey_End, count}};
        for (const Move& move : moves) {
            if (!key_pressed(move.key) || ImGui::GetIO().KeyCtrl) continue;
            const std::ptrdiff_t at = place_of_chosen();
            const std::ptrdiff_t to = std::clamp<std::ptrdiff_t>(at < 0 ? 0 : at + move.by, 0, count - 1);
            state_.chosen = (*order_)[static_cast<std::size_t>(to)];
            state_.scroll_to_chosen = true;
            events_.clicked = state_.chosen;
            events_.by_key = true;
        }
        if (state_.chosen && key_pressed(ImGuiKey_Enter)) events_.opened = state_.chosen;
        if (state_.chosen && ImGui::GetIO().KeyCtrl && key_pressed(ImGuiKey_C))
            ImGui::SetClipboardText(row_text(*model_, *state_.chosen, columns_).c_str());
    }
    void draw_rows() {
        const std::ptrdiff_t wanted = state_.scroll_to_chosen ? place_of_chosen() : -1;
        ImGuiListClipper clipper;
        clipper.Begin(static_cast<int>(order_->size()));
        while (clipper.Step()) {
            row_height_ = clipper.ItemsHeight;
            for (int n = clipper.DisplayStart; n < clipper.DisplayEnd; ++n)
                draw_row(n, (*order_)[static_cast<std::size_t>(n)]);
        }
        if (state_.scroll_to_chosen && !state_.order.busy()) {
            state_.scroll_to_chosen = false;
            scroll_to(wanted);
        }
    }

    // Scrolls as little as needed to show the row, below the header.
    void scroll_to(std::ptrdiff_t place) const {
        if (place < 0 || row_height_ <= 0) return;
        const float top = static_cast<float>(place) * row_height_;
        const float room = ImGui::GetWindowHeight() - header_height_ - row_height_;
        if (top < ImGui::GetScrollY()) ImGui::SetScrollY(top);
        if (top > ImGui::GetScrollY() + room) ImGui::SetScrollY(top - room);
    }

    void draw_row(int n, std::size_t row) {
        const std::string key = draw::items::kept() ? model_->text(row, 0) : std::string();
        ImGui::TableNextRow();
        for (std::size_t i = 0; i < columns_.size(); ++i) {
            if (!ImGui::TableNextColumn() && i > 0) continue;  // scrolled out to the side
            const std::size_t c = columns_[i];
            const std::string value = scaled_text(*model_, row, c, scales_[c]);
            if (i == 0) draw_row_head(n, row, key, value);
            draw_cell(*model_, row, c, value, scales_[c], state_.largest[c]);
            if (draw::items::kept())
                draw::items::mark(fmt::format("{}.{}.{}", id_, key, model_->columns()[c].id),
                                  model_->text(row, c));
        }
    }

    void draw_row_head(int n, std::size_t row, const std::string& key, const std::string& value) {
        ImGui::PushID(n);
        constexpr ImGuiSelectableFlags kRow = ImGuiSelectableFlags_SpanAllColumns |
                                              ImGuiSelectableFlags_AllowDoubleClick |
                                              ImGuiSelectableFlags_AllowItemOverlap;
        if (ImGui::Selectable("##row", state_.chosen == row, kRow)) {
            state_.chosen = row;
            events_.clicked = row;
            if (ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) events_.opened = row;
        }
        if (ImGui::IsItemHovered()) {
            events_.hovered = row;
            if (ImGui::IsMouseClicked(ImGuiMouseButton_Right)) state_.context_column = column_under_mouse();
        }
        if (draw::items::kept()) {
            draw::items::mark(fmt::format("{}.{}", id_, key), value);
            draw::items::mark(fmt::format("{}.row.{}", id_, n), value);
        }
        export_ = draw_row_menu(id_, *model_, row, state_, columns_) || export_;
        ImGui::PopID();
        ImGui::SameLine(0, 0);
        if (model_->swatch(row) != 0) draw::swatch(model_->swatch(row));
    }

    // Dear ImGui 1.86 has this only internally; the cells' left edges provide it too.
    std::size_t column_under_mouse() const {
        std::size_t under = columns_.front();
        for (std::size_t i = 0; i < columns_.size() && i < left_.size(); ++i) {
            if (ImGui::GetIO().MousePos.x >= left_[i]) under = columns_[i];
        }
        return under;
    }

    std::string id_;
    const std::shared_ptr<const TableModel>& model_;
    TableState& state_;
    const TableOptions& options_;
    std::vector<std::size_t> columns_;
    bool scrolls_ = false;  // to the side, for columns that do not fit
    const std::vector<ColumnScale>& scales_;
    const std::vector<std::uint32_t>* order_ = nullptr;
    TableEvents events_;
    std::vector<float> left_;  // of the columns, on the screen
    float header_height_ = 0, row_height_ = 0;
    bool export_ = false;
};

// Remarks under a table that cannot show (all of) its rows.
void draw_remarks(const std::string& id, const TableModel& model, const TableState& state, bool empty) {
    constexpr int kTooOften = 10;
    if (state.order.busy()) {
        draw::items::value(id + ".order", "busy");
        ImGui::ProgressBar(state.order.progress(), {ImGui::GetFontSize() * 16, 0}, "sorting rows");
    } else if (empty && model.rows() > 0) {
        draw::note("No row contains this text.");
    }
    // The panel makes a new model in every frame: a fault, which would cost a sort each time.
    if (state.remade > kTooOften) draw::items::value(id + ".remade", fmt::format("{}", state.remade));
}

}  // namespace

TableEvents draw_table(const char* id, const std::shared_ptr<const TableModel>& model, TableState& state,
                       const TableOptions& options) {
    TableEvents events;
    const std::string own = own_id(id);
    ImGui::PushID(own.c_str());
    if (!state.remembered) recall(own, *model, state);
    meet_model(model, state);
    if (options.filter) draw_filter(own, state);
    ImVec2 size = options.size;
    if (state.order.busy() && size.y == 0) size.y = -ImGui::GetFrameHeightWithSpacing();  // room for its bar
    const ColumnRoom room{.width = size.x > 0 ? size.x : ImGui::GetContentRegionAvail().x};
    std::vector<std::size_t> columns = columns_that_fit(*model, state.hidden, room);
    bool scrolls = false;
    if (state.all_columns) {
        std::vector<std::size_t> all =
            columns_that_fit(*model, state.hidden, {.width = room.width, .all = true});
        scrolls = all.size() > columns.size();
        columns = std::move(all);
    }
    ImGuiTableFlags flags = ImGuiTableFlags_ScrollY | ImGuiTableFlags_RowBg | ImGuiTableFlags_PadOuterX |
                            ImGuiTableFlags_BordersInnerV | ImGuiTableFlags_Sortable |
                            ImGuiTableFlags_SortTristate | ImGuiTableFlags_Resizable |
                            ImGuiTableFlags_NoSavedSettings;
    if (scrolls) flags |= ImGuiTableFlags_ScrollX;
    // Dear ImGui stores widths by position, so another set of columns is another table for it.
    unsigned set = static_cast<unsigned>(columns.size()) + (scrolls ? 1000U : 0U);
    for (const std::size_t c : columns) set = set * 31 + static_cast<unsigned>(c);
    ImGui::PushID(static_cast<int>(set));
    if (ImGui::BeginTable("table", static_cast<int>(columns.size()), flags, size)) {
        Drawing drawing(own, model, state, options, columns, scrolls);
        events = drawing.draw();
        ImGui::EndTable();
        draw_remarks(own, *model, state, drawing.empty());
    }
    ImGui::PopID();
    ImGui::PopID();
    return events;
}

void offer_table(ShownTable table) {
    shown().drawing.push_back(std::move(table));
}

std::vector<ShownTable> shown_tables() {
    Shown& all = shown();
    return all.drawing.empty() ? all.drawn : all.drawing;
}

std::optional<std::string> take_export_request() {
    return std::exchange(shown().export_request, std::nullopt);
}

}  // namespace shardscope::viewer::tables
