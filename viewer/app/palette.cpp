// See windows.h.
#include <algorithm>
#include <utility>

#include <fmt/core.h>
#include <imgui.h>
#include <imgui_stdlib.h>

#include "traces/schema/sort_rows.h"
#include "viewer/app/actions.h"
#include "viewer/app/fuzzy.h"
#include "viewer/app/windows.h"
#include "viewer/draw/items.h"
#include "viewer/draw/text.h"
#include "viewer/theme/theme.h"

namespace shardscope::viewer::app {
namespace {

constexpr int kMost = 14;  // matches shown at most

}  // namespace

std::vector<CommandPalette::Entry> CommandPalette::entries(const Program& program) {
    std::vector<Entry> all;
    for (const Action& action : actions()) {
        if (action.id == "palette") continue;
        const std::vector<model::Chord>& own = keys_of(action, program);
        const std::string keys = own.empty() ? "" : chord_text(own.front());
        all.push_back({std::string(action.menu), title_of(action, program), keys,
                       is_available(action, program), action.run});
    }
    for (std::size_t i = 0; i < program.session.open.size(); ++i) {
        all.push_back({"Trace", program.session.open[i].name, "", true,
                       [i](Program& p) { p.session.set_active(std::min(i, p.session.open.size() - 1)); }});
    }
    for (const std::string& path : program.recent) {
        all.push_back({"Open", path, "", true, [path](Program& p) { p.open(path); }});
    }
    return all;
}

std::vector<CommandPalette::Entry> CommandPalette::matches(const Program& program) const {
    std::vector<std::pair<int, Entry>> scored;
    for (Entry& entry : entries(program)) {
        if (!entry.available) continue;
        const auto score = fuzzy_score(typed_, entry.title + " " + entry.kind);
        if (score) scored.emplace_back(*score, std::move(entry));
    }
    if (!typed_.empty()) {
        traces::schema::sort_rows(scored, [](const auto& a, const auto& b) { return a.first > b.first; });
    }
    std::vector<Entry> best;
    for (auto& [score, entry] : scored) {
        if (best.size() < kMost) best.push_back(std::move(entry));
    }
    return best;
}

void CommandPalette::draw(Program& program) {
    const bool appearing = program.palette && !was_open_;
    was_open_ = program.palette;
    if (!program.palette) return;
    if (appearing) {
        typed_.clear();
        chosen_ = 0;
    }
    const float font = ImGui::GetFontSize();
    const ImVec2 display = ImGui::GetIO().DisplaySize;
    ImGui::SetNextWindowPos({display.x / 2, display.y * 0.12F}, ImGuiCond_Always, {0.5F, 0});
    ImGui::SetNextWindowSize({std::min(font * 40, display.x * 0.9F), 0});
    constexpr ImGuiWindowFlags kFlags =
        ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoMove;
    if (ImGui::Begin("palette", &program.palette, kFlags)) {
        if (appearing) ImGui::SetWindowFocus();
        if (ImGui::IsWindowAppearing() || appearing) ImGui::SetKeyboardFocusHere();
        ImGui::SetNextItemWidth(-1);
        const bool entered = ImGui::InputTextWithHint(
            "##typed", "Type what to do, a panel, an open trace or a recent file", &typed_,
            ImGuiInputTextFlags_EnterReturnsTrue | ImGuiInputTextFlags_AutoSelectAll);
        if (ImGui::IsItemEdited()) chosen_ = 0;
        draw::items::mark("palette.field", typed_);
        draw_matches(program, entered);
    }
    ImGui::End();
    was_open_ = program.palette;
}

void CommandPalette::draw_matches(Program& program, bool entered) {
    std::vector<Entry> shown = matches(program);
    const int count = static_cast<int>(shown.size());
    if (model::chord_pressed({model::Key::down}, true)) ++chosen_;
    if (model::chord_pressed({model::Key::up}, true)) --chosen_;
    chosen_ = count == 0 ? 0 : (chosen_ + count) % count;
    if (shown.empty()) draw::note("No match.");
    int run = entered && count > 0 ? chosen_ : -1;
    for (int i = 0; i < count; ++i) {
        const Entry& entry = shown[static_cast<std::size_t>(i)];
        ImGui::PushID(i);
        if (ImGui::Selectable("##entry", i == chosen_)) run = i;
        draw::items::mark(fmt::format("palette.{}", i), entry.title);
        ImGui::SameLine(0, 0);
        draw::text_dim(entry.kind);
        ImGui::SameLine(ImGui::GetFontSize() * 7);
        const float room = ImGui::GetContentRegionAvail().x - ImGui::CalcTextSize(entry.keys.c_str()).x -
                           ImGui::GetFontSize();
        draw::text(draw::fit_text(entry.title, room));
        if (!entry.keys.empty()) {
            ImGui::SameLine();
            draw::text_right_dim(entry.keys);
        }
        ImGui::PopID();
    }
    if (run < 0) return;
    program.palette = false;
    shown[static_cast<std::size_t>(run)].run(program);
}

}  // namespace shardscope::viewer::app
