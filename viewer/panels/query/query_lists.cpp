// See query_lists.h.
#include "viewer/panels/query/query_lists.h"

#include <algorithm>
#include <optional>
#include <vector>

#include <fmt/core.h>
#include <imgui.h>
#include <imgui_stdlib.h>

#include "traces/query/shipped_queries.h"
#include "traces/schema/json_text.h"
#include "viewer/draw/items.h"
#include "viewer/draw/text.h"
#include "viewer/theme/theme.h"

namespace shardscope::viewer::panels {

std::string QueryLists::saved() const {
    const std::string history = history_.to_text();
    if (history.empty() && queries_.entries().empty()) return {};
    return fmt::format(R"({{"history":{},"saved":{}}})", history.empty() ? "[]" : history,
                       queries_.to_text());
}

void QueryLists::restore(std::string_view saved) {
    const auto members = traces::schema::json_members(saved);
    if (!members) return history_.from_text(saved);
    for (const auto& [name, text] : *members) {
        if (name == "history") history_.from_text(text);
        if (name == "saved") queries_.from_text(text);
    }
}

void QueryLists::draw(SqlEditor& editor) {
    const float gap = ImGui::GetFontSize() * 0.5F;
    draw_queries(editor);
    ImGui::SameLine(0, gap);
    draw_history(editor);
    ImGui::SameLine(0, gap);
    draw_save(editor);
}

void QueryLists::draw_queries(SqlEditor& editor) {
    draw::flow(ImGui::GetFontSize() * 11);
    ImGui::SetNextItemWidth(ImGui::GetFontSize() * 11);
    const bool open = ImGui::BeginCombo("##shipped", "Queries", ImGuiComboFlags_HeightLarge);
    draw::items::mark("query.shipped", fmt::format("{}", queries_.entries().size()));
    if (!open) return;
    if (!queries_.entries().empty()) {
        draw::heading("Saved");
        draw_saved(editor);
        draw::heading("Built in");
    }
    for (const traces::query::ShippedQuery& query : traces::query::shipped_queries()) {
        if (ImGui::Selectable(std::string(query.name).c_str())) editor.set(std::string(query.sql));
        draw::items::mark(fmt::format("query.shipped.{}", query.name));
        if (ImGui::IsItemHovered()) ImGui::SetTooltip("%s", traces::query::question_of(query.sql).c_str());
    }
    ImGui::EndCombo();
}

void QueryLists::draw_saved(SqlEditor& editor) {
    const float button = ImGui::GetFontSize() * 1.6F;
    std::optional<std::string> removed;
    for (const SavedQuery& query : queries_.entries()) {
        ImGui::PushID(query.name.c_str());
        const float room = std::max(ImGui::GetContentRegionAvail().x - button, button);
        if (ImGui::Selectable("##query", false, 0, {room, 0})) editor.set(query.sql);
        draw::items::mark(fmt::format("query.saved.{}", query.name), query.sql);
        if (ImGui::IsItemHovered()) draw::full_text_tip(query.sql);
        ImGui::SameLine(ImGui::GetStyle().WindowPadding.x);
        draw::text(draw::fit_text(query.name, room));
        ImGui::SameLine(ImGui::GetStyle().WindowPadding.x + room);
        if (ImGui::SmallButton("x")) removed = query.name;
        draw::items::mark(fmt::format("query.saved.{}.delete", query.name));
        if (ImGui::IsItemHovered()) ImGui::SetTooltip("Delete this saved query");
        ImGui::PopID();
    }
    if (removed) queries_.remove(*removed);
}

// A button, and the window that asks for the name.
void QueryLists::draw_save(SqlEditor& editor) {
    draw::flow(draw::button_width("Save..."));
    if (draw::named_button("Save...", "query.save")) {
        save_refusal_.clear();
        ImGui::OpenPopup("##save");
    }
    if (ImGui::IsItemHovered()) ImGui::SetTooltip("Save this SQL under a name, in the list of queries");
    if (!ImGui::BeginPopup("##save")) return;
    if (ImGui::IsWindowAppearing()) ImGui::SetKeyboardFocusHere();
    ImGui::SetNextItemWidth(ImGui::GetFontSize() * 16);
    bool save =
        ImGui::InputTextWithHint("##name", "Name of the query", &save_name_,
                                 ImGuiInputTextFlags_EnterReturnsTrue | ImGuiInputTextFlags_AutoSelectAll);
    draw::items::mark("query.save.name", save_name_);
    ImGui::SameLine();
    save |= draw::named_button(queries_.has(save_name_) ? "Replace" : "Save", "query.save.ok");
    if (save) {
        save_refusal_ = SavedQueries::refusal(save_name_, editor.sql());
        if (save_refusal_.empty() && !queries_.save(save_name_, editor.sql()))
            save_refusal_ = "200 queries are saved, which is the most; delete one first.";
        if (save_refusal_.empty()) {
            ImGui::CloseCurrentPopup();
            editor.take_keyboard();
        }
    }
    if (!save_refusal_.empty()) {
        draw::text_in(theme::bad(), save_refusal_);
        draw::items::value("query.save.refusal", save_refusal_);
    }
    ImGui::EndPopup();
}

void QueryLists::draw_history(SqlEditor& editor) {
    draw::flow(ImGui::GetFontSize() * 8);
    ImGui::SetNextItemWidth(ImGui::GetFontSize() * 8);
    const std::vector<std::string>& entries = history_.entries();
    ImGui::BeginDisabled(entries.empty());
    const bool open = ImGui::BeginCombo("##history", "History");
    draw::items::mark("query.history", fmt::format("{}", entries.size()));
    if (open) {
        for (std::size_t i = 0; i < entries.size(); ++i) {
            const std::string line = draw::fit_text(entries[i], ImGui::GetFontSize() * 40);
            ImGui::PushID(static_cast<int>(i));
            if (ImGui::Selectable(line.c_str())) editor.set(entries[i]);
            draw::items::mark(fmt::format("query.history.{}", i), entries[i]);
            if (ImGui::IsItemHovered()) draw::full_text_tip(entries[i]);
            ImGui::PopID();
        }
        ImGui::EndCombo();
    }
    ImGui::EndDisabled();
}

}  // namespace shardscope::viewer::panels
