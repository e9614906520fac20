// See sql_editor.h.
#include "viewer/panels/query/sql_editor.h"

#include <algorithm>
#include <array>
#include <cfloat>
#include <cmath>
#include <string_view>
#include <tuple>
#include <utility>

#include <fmt/core.h>
#include <imgui_internal.h>
#include <imgui_stdlib.h>

#include "traces/schema/text.h"
#include "traces/store/sqlite/query.h"
#include "viewer/draw/items.h"
#include "viewer/draw/text.h"
#include "viewer/tables/table_parts.h"
#include "viewer/theme/theme.h"

namespace shardscope::viewer::panels {
namespace {

constexpr const char* kId = "##sql";
constexpr int kRowsInSight = 9;  // of the completions

ImU32 ink_of(const SqlToken& token) {
    switch (token.kind) {
        case SqlKind::keyword:
            return theme::palette().code_keyword;
        case SqlKind::text:
            return theme::palette().code_text;
        case SqlKind::number:
        case SqlKind::parameter:
            return theme::palette().code_number;
        case SqlKind::comment:
            return theme::text_dim();
        case SqlKind::name:
        case SqlKind::quoted_name:
            return token.known ? theme::palette().code_name : theme::text();
        case SqlKind::plain:
            break;
    }
    return theme::text();
}

// Unlike ImGui::CalcTextSize() not rounded, so that pieces of a line add up to the line.
float advance_of(std::string_view text) {
    return ImGui::GetFont()
        ->CalcTextSizeA(ImGui::GetFontSize(), FLT_MAX, 0, text.data(), text.data() + text.size())
        .x;
}

// How far the text is scrolled sideways; newer versions of Dear ImGui have both directions here.
template <class State>
float scrolled_sideways(const State& state) {
    if constexpr (requires { state.ScrollX; }) {
        return state.ScrollX;
    } else {
        return state.Scroll.x;
    }
}

// Of a field that has the keyboard.
bool caret_is_lit(const ImGuiInputTextState& state) {
    return !ImGui::GetIO().ConfigInputTextCursorBlink || state.CursorAnim <= 0 ||
           std::fmod(state.CursorAnim, 1.2F) <= 0.8F;
}

void underline(ImDrawList& draw, float from, float to, float y) {
    const float step = std::max(2.0F, std::floor(ImGui::GetFontSize() * 0.14F));
    bool up = false;
    for (float x = from; x < to; x += step, up = !up)
        draw.AddLine({x, up ? y - step : y}, {std::min(x + step, to), up ? y : y - step}, theme::bad(), 1.5F);
}

}  // namespace

void SqlEditor::set(std::string sql, bool restored) {
    sql_ = sql;
    next_sql_ = std::move(sql);  // Dear ImGui keeps its own copy of a text that is being edited
    next_cursor_ = sql_.size();
    completions_ = {};
    if (!restored) take_keyboard();
}

SqlEditor::Keys SqlEditor::read_keys() const {
    Keys keys;
    if (!active_) return keys;
    const bool control = ImGui::GetIO().KeyCtrl, open = !completions_.items.empty() && !control;
    const bool enter = tables::key_pressed(ImGuiKey_Enter) || tables::key_pressed(ImGuiKey_KeyPadEnter);
    keys.run = control && enter;
    keys.complete = control && tables::key_pressed(ImGuiKey_Space);
    keys.choose = open && (enter || tables::key_pressed(ImGuiKey_Tab));
    keys.close = tables::key_pressed(ImGuiKey_Escape);
    if (open) {
        keys.step = static_cast<int>(tables::key_pressed(ImGuiKey_DownArrow)) -
                    static_cast<int>(tables::key_pressed(ImGuiKey_UpArrow));
    }
    return keys;
}

int SqlEditor::on_edit(ImGuiInputTextCallbackData* data) {
    auto& self = *static_cast<SqlEditor*>(data->UserData);
    if (data->EventFlag == ImGuiInputTextFlags_CallbackCharFilter)
        return self.swallow_ && (data->EventChar == '\n' || data->EventChar == '\t') ? 1 : 0;
    if (self.next_sql_) {
        data->DeleteChars(0, data->BufTextLen);
        data->InsertChars(0, self.next_sql_->c_str());
    }
    if (self.hold_) self.next_cursor_ = self.cursor_;
    if (self.next_cursor_) {
        data->CursorPos =
            static_cast<int>(std::min(*self.next_cursor_, static_cast<std::size_t>(data->BufTextLen)));
        data->SelectionStart = data->SelectionEnd = data->CursorPos;
    }
    self.next_sql_.reset();
    self.next_cursor_.reset();
    self.cursor_ = static_cast<std::size_t>(data->CursorPos);
    return 0;
}

// The text field itself. Returns true if its text changed.
bool SqlEditor::input(float height, const Keys& keys) {
    ImGuiIO& io = ImGui::GetIO();
    swallow_ = keys.run || keys.choose;
    hold_ = keys.step != 0;
    // Ctrl+Enter would end the editing: the field sees Enter, which is then swallowed. Escape would restore
    // the text as it was when the field got the keyboard.
    const std::array<bool, 4> held = {io.KeyCtrl, io.KeyShift, io.KeyAlt, io.KeySuper};
    const auto modifiers = io.KeyMods;
    if (keys.run) {
        io.KeyCtrl = io.KeyShift = io.KeyAlt = io.KeySuper = false;
        io.KeyMods = {};
    }
    const std::string before = sql_;
    if (wants_keyboard_ > 0) ImGui::SetKeyboardFocusHere();
    ImGui::PushStyleColor(ImGuiCol_Text, 0);
    bool edited =
        ImGui::InputTextMultiline(kId, &sql_, {-1, height},
                                  ImGuiInputTextFlags_AllowTabInput | ImGuiInputTextFlags_CallbackAlways |
                                      ImGuiInputTextFlags_CallbackCharFilter,
                                  on_edit, this);
    ImGui::PopStyleColor();
    draw::items::mark("query.sql", sql_);
    if (keys.run) {
        std::tie(io.KeyCtrl, io.KeyShift, io.KeyAlt, io.KeySuper) =
            std::tie(held[0], held[1], held[2], held[3]);
        io.KeyMods = modifiers;
    }
    if (keys.close && sql_ != before) {
        sql_ = before;
        next_cursor_ = cursor_;
        edited = false;
    }
    active_ = ImGui::IsItemActive();
    wants_keyboard_ = active_ ? 0 : std::max(0, wants_keyboard_ - 1);
    if (active_) next_sql_.reset();
    draw::items::value("query.sql.keyboard", active_ ? "yes" : "no");
    return edited && active_;
}

void SqlEditor::tokenize(const std::shared_ptr<const Schema>& schema) {
    if (tokens_of_ == sql_ && schema_ == schema) return;
    tokens_of_ = sql_;
    schema_ = schema;
    tokens_ = sql_tokens(sql_);
    if (schema_ != nullptr) mark_known(sql_, tokens_, *schema_);
}

void SqlEditor::update_completions(const Keys& keys, bool edited) {
    const bool said = no_match_;
    no_match_ = no_match_ && active_ && !edited && cursor_ == completions_.to;
    if (keys.close && (said || !completions_.items.empty())) {
        completions_ = {};
        no_match_ = false;
        return take_keyboard();
    }
    if (keys.choose) return choose(chosen_);
    if (keys.step != 0) {
        const auto count = static_cast<int>(completions_.items.size());
        chosen_ = static_cast<std::size_t>((static_cast<int>(chosen_) + keys.step + count) % count);
        scroll_to_chosen_ = true;
        return;
    }
    const bool moved = cursor_ != completions_.to;
    if (keys.run || (moved && !edited)) completions_ = {};
    if (schema_ == nullptr || !(edited || keys.complete)) return;
    completions_ = complete_sql(sql_, cursor_, *schema_);
    chosen_ = 0;
    scroll_to_chosen_ = true;
    no_match_ = keys.complete && completions_.items.empty();
    if (keys.complete) return;
    // While typing, a word that is whole needs no list, and without a letter only a dot calls for one.
    const std::string_view word =
        std::string_view(sql_).substr(completions_.from, cursor_ - completions_.from);
    const bool after_dot = word.empty() && cursor_ > 0 && sql_[cursor_ - 1] == '.';
    const bool whole =
        traces::store::is_sql_keyword(word) ||
        std::any_of(completions_.items.begin(), completions_.items.end(),
                    [&](const Completion& c) { return traces::schema::same_but_for_case(c.insert, word); });
    if ((word.empty() && !after_dot) || whole) completions_ = {};
}

void SqlEditor::choose(std::size_t item) {
    if (item >= completions_.items.size()) return;
    const Completion& chosen = completions_.items[item];
    std::string sql = sql_;
    sql.replace(completions_.from, completions_.to - completions_.from, chosen.insert);
    const std::size_t cursor = completions_.from + chosen.insert.size();
    set(std::move(sql));
    cursor_ = cursor;
    next_cursor_ = cursor;
}

bool SqlEditor::draw(float height, const std::shared_ptr<const Schema>& schema,
                     std::optional<std::size_t> error) {
    const Keys keys = read_keys();
    const bool edited = input(height, keys);
    tokenize(schema);
    update_completions(keys, edited);
    if (edited) error.reset();
    tokenize(schema);
    paint(error);
    draw_completions();
    return keys.run;
}

void SqlEditor::paint(std::optional<std::size_t> error) {
    const ImGuiID id = ImGui::GetID(kId);
    const auto& children = ImGui::GetCurrentWindow()->DC.ChildWindows;
    ImGuiWindow* field = children.empty() ? nullptr : children.back();
    if (field == nullptr || field->ChildId != id) return;  // it is out of sight
    const ImGuiInputTextState* state = active_ ? ImGui::GetInputTextState(id) : nullptr;
    const ImVec2 padding = ImGui::GetStyle().FramePadding;
    const float left = field->Pos.x + padding.x - (state != nullptr ? scrolled_sideways(*state) : 0);
    const float line_height = ImGui::GetFontSize();
    float y = field->Pos.y + padding.y - field->Scroll.y;
    ImDrawList& draw = *field->DrawList;
    const ImRect inside = field->InnerRect;
    draw.PushClipRect(inside.Min, inside.Max);
    for (std::size_t from = 0; from <= sql_.size(); y += line_height) {
        const std::size_t to = std::min(sql_.find('\n', from), sql_.size());
        if (y + line_height > inside.Min.y && y < inside.Max.y) paint_line(draw, from, to, {left, y}, error);
        if (cursor_ >= from && cursor_ <= to) {
            caret_ = {left + advance_of(std::string_view(sql_).substr(from, cursor_ - from)), y};
            if (state != nullptr && caret_is_lit(*state)) {
                const float x = std::floor(caret_.x);
                draw.AddRectFilled({x, y}, {x + 1, y + line_height}, theme::text());
            }
        }
        from = to + 1;
    }
    draw.PopClipRect();
    if (const SqlToken* wrong = error ? token_at(tokens_, *error) : nullptr; wrong != nullptr)
        draw::items::value("query.sql.error", sql_.substr(wrong->from, wrong->to - wrong->from));
}

// The line [from, to) of the text.
void SqlEditor::paint_line(ImDrawList& draw, std::size_t from, std::size_t to, ImVec2 at,
                           std::optional<std::size_t> error) const {
    const std::string_view sql = sql_;
    const SqlToken* wrong = error ? token_at(tokens_, *error) : nullptr;
    auto token = std::upper_bound(tokens_.begin(), tokens_.end(), from,
                                  [](std::size_t place, const SqlToken& t) { return place < t.to; });
    float x = at.x;
    std::size_t done = from;
    for (; token != tokens_.end() && token->from < to; ++token) {
        const std::size_t first = std::max(token->from, from), last = std::min(token->to, to);
        x += advance_of(sql.substr(done, first - done));
        const float end = x + advance_of(sql.substr(first, last - first));
        draw.AddText({x, at.y}, ink_of(*token), sql.data() + first, sql.data() + last);
        if (&*token == wrong) underline(draw, x, end, at.y + ImGui::GetFontSize() + 1);
        x = end;
        done = last;
    }
}

// Under the caret, or above it if there is no room below.
void SqlEditor::draw_completions() {
    const std::vector<Completion>& items = completions_.items;
    if (no_match_) {
        ImGui::SetNextWindowPos({caret_.x, caret_.y + ImGui::GetFontSize() * 1.4F});
        ImGui::BeginTooltip();
        draw::text("No table or column contains this.");
        ImGui::EndTooltip();
        draw::items::value("query.sql.completions", "0");
    }
    if (items.empty()) return;
    draw::items::value("query.sql.completions", fmt::format("{}", items.size()));
    const float font = ImGui::GetFontSize(), row = ImGui::GetTextLineHeightWithSpacing();
    const ImVec2 screen = ImGui::GetIO().DisplaySize, padding = ImGui::GetStyle().WindowPadding;
    const float width = std::min(font * 34, screen.x);
    const int shown = std::min(kRowsInSight, static_cast<int>(items.size()));
    const float list = row * static_cast<float>(shown), about = row * 3;
    const float height = list + about + padding.y * 2;
    const float below = caret_.y + font * 1.4F;
    const float y = below + height <= screen.y ? below : std::max(0.0F, caret_.y - font * 0.4F - height);
    ImGui::SetNextWindowPos({std::clamp(caret_.x - padding.x, 0.0F, screen.x - width), y});
    ImGui::SetNextWindowSize({width, height});
    ImGui::Begin("##completions", nullptr,
                 ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoSavedSettings |
                     ImGuiWindowFlags_NoFocusOnAppearing | ImGuiWindowFlags_NoNav);
    ImGui::BringWindowToDisplayFront(ImGui::GetCurrentWindow());
    std::optional<std::size_t> clicked;
    ImGui::BeginChild("list", {0, list});
    const float room = ImGui::GetContentRegionAvail().x, left = ImGui::GetCursorPosX();
    for (std::size_t i = 0; i < items.size(); ++i) {
        ImGui::PushID(static_cast<int>(i));
        ImGui::Selectable("##item", i == chosen_);
        draw::items::mark(fmt::format("query.sql.completion.{}", i), items[i].insert);
        // On the press: it takes the keyboard from the editor, which gets it back.
        if (ImGui::IsItemHovered() && ImGui::IsMouseClicked(ImGuiMouseButton_Left)) clicked = i;
        if (i == chosen_ && scroll_to_chosen_) ImGui::SetScrollHereY();
        ImGui::SameLine(left);
        draw::text(draw::fit_text(items[i].insert, room * 0.58F));
        ImGui::SameLine(left + room * 0.6F);
        draw::text_dim(draw::fit_text(items[i].of, room * 0.24F));
        ImGui::SameLine(left + room * 0.85F);
        draw::text_dim(draw::fit_text(items[i].type, room * 0.15F));
        ImGui::PopID();
    }
    scroll_to_chosen_ = false;
    ImGui::EndChild();
    ImGui::Separator();
    const std::string& meaning = items[chosen_].meaning;
    draw::note(meaning.empty() ? "The schema says nothing about it." : meaning);
    draw::items::value("query.sql.meaning", meaning);
    const bool over = ImGui::IsWindowHovered(ImGuiHoveredFlags_ChildWindows);
    ImGui::End();
    if (clicked) {
        choose(*clicked);
    } else if (!active_ && !over) {
        completions_ = {};
    }
}

}  // namespace shardscope::viewer::panels
