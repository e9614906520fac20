// See shell.h.
#include "viewer/app/shell.h"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <imgui.h>

#include "viewer/app/actions.h"
#include "viewer/app/theme.h"
#include "viewer/draw/format.h"
#include "viewer/draw/items.h"
#include "viewer/draw/text.h"

namespace shardscope::viewer {
namespace {

std::string keys_text(const Action& action) {
    std::string text;
    for (const Chord& chord : action.keys) text += (text.empty() ? "" : ", ") + chord_text(chord);
    return text;
}

std::vector<std::string_view> menu_names() {
    std::vector<std::string_view> names;
    for (const Action& action : actions()) {
        if (std::find(names.begin(), names.end(), action.menu) == names.end()) names.push_back(action.menu);
    }
    return names;
}

void help_row(std::string_view left, std::string_view right) {
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    ImGui::PushStyleColor(ImGuiCol_Text, theme::accent());
    text(left);
    ImGui::PopStyleColor();
    ImGui::TableNextColumn();
    text(right);
}

}  // namespace

void Shell::draw(const Frame& frame) {
    Session& session = program_.session;
    items::begin_frame();
    session.poll();
    if (!session.wanted_panel.empty()) {
        program_.show(session.wanted_panel);
        session.wanted_panel.clear();
    }
    if (!frame.headless) run_shortcuts();

    const ImGuiIO& io = ImGui::GetIO();
    ImGui::SetNextWindowPos({0, 0});
    ImGui::SetNextWindowSize(io.DisplaySize);
    constexpr ImGuiWindowFlags kFlags = ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove |
                                        ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_MenuBar |
                                        ImGuiWindowFlags_NoBringToFrontOnFocus |
                                        ImGuiWindowFlags_NoScrollWithMouse | ImGuiWindowFlags_NoNavInputs;
    ImGui::PushStyleVar(ImGuiStyleVar_WindowRounding, 0);
    ImGui::PushStyleVar(ImGuiStyleVar_WindowBorderSize, 0);
    ImGui::Begin("shardscope", nullptr, kFlags);
    ImGui::PopStyleVar(2);
    draw_menus();
    draw_tabs();
    const float status = ImGui::GetTextLineHeightWithSpacing();
    draw_content(frame, std::max(1.0F, ImGui::GetContentRegionAvail().y - status));
    draw_status();
    ImGui::End();

    draw_help();
    if (const auto path = files_.draw(program_.choose_file)) {
        session.open_file(*path);
        session.set_active(session.open.size() - 1);
    }
}

void Shell::run_shortcuts() {
    if (ImGui::GetIO().WantTextInput) return;
    for (const Action& action : actions()) {
        if (!is_available(action, program_)) continue;
        const bool pressed = std::any_of(action.keys.begin(), action.keys.end(), [&](const Chord& chord) {
            return chord_pressed(chord, action.repeats);
        });
        if (pressed) action.run(program_);
    }
}

void Shell::draw_menus() {
    if (!ImGui::BeginMenuBar()) return;
    for (const std::string_view menu : menu_names()) {
        if (!ImGui::BeginMenu(std::string(menu).c_str())) continue;
        for (const Action& action : actions()) {
            if (action.menu != menu) continue;
            const bool on = action.id == program_.shown().name();
            if (ImGui::MenuItem(std::string(action.title).c_str(), keys_text(action).c_str(), on,
                                is_available(action, program_))) {
                action.run(program_);
            }
        }
        ImGui::EndMenu();
    }
    ImGui::EndMenuBar();
}

void Shell::draw_tabs() {
    if (!ImGui::BeginTabBar("panels", ImGuiTabBarFlags_NoTooltip)) return;
    const std::size_t wanted = program_.panel;
    for (std::size_t i = 0; i < program_.panels.size(); ++i) {
        // A tab is told to be on show only when a key or a panel asked for it; else a click would be undone.
        const bool ask = i == wanted && tab_drawn_ != wanted;
        const std::string title(program_.panels[i]->title());
        if (ImGui::BeginTabItem(title.c_str(), nullptr, ask ? ImGuiTabItemFlags_SetSelected : 0)) {
            if (tab_drawn_ == wanted) program_.panel = i;
            ImGui::EndTabItem();
        }
    }
    tab_drawn_ = tab_drawn_ == wanted ? program_.panel : wanted;
    ImGui::EndTabBar();
}

void Shell::draw_content(const Frame& frame, float height) {
    // The timeline takes the wheel for itself; panels that scroll begin children of their own.
    ImGui::BeginChild("content", {0, height}, false, ImGuiWindowFlags_NoScrollWithMouse);
    Panel& panel = program_.shown();
    if (panel.needs_trace() && program_.session.trace() == nullptr) {
        draw_instead_of_panel();
    } else {
        Frame inside = frame;
        inside.width = ImGui::GetContentRegionAvail().x;
        inside.height = ImGui::GetContentRegionAvail().y;
        ImGui::PushID(static_cast<int>(program_.panel));
        panel.draw(program_.session, inside);
        ImGui::PopID();
    }
    ImGui::EndChild();
}

void Shell::draw_instead_of_panel() {
    Session& session = program_.session;
    const float font = ImGui::GetFontSize();
    const float width = std::min(ImGui::GetContentRegionAvail().x - font * 2, font * 40);
    ImGui::SetCursorPos(
        {(ImGui::GetContentRegionAvail().x - width) / 2, ImGui::GetContentRegionAvail().y * 0.3F});
    ImGui::BeginGroup();
    const OpenTrace* entry = session.current();
    ImGui::PushTextWrapPos(ImGui::GetCursorPosX() + width);
    if (entry == nullptr) {
        text("No trace is open.");
        note("Drop trace files here, or choose one.");
        if (ImGui::Button("Open a trace...")) program_.choose_file = true;
    } else if (!entry->error.empty()) {
        ImGui::PushStyleColor(ImGuiCol_Text, theme::bad());
        text(entry->error);
        ImGui::PopStyleColor();
        if (ImGui::Button("Close")) session.close(session.active);
    } else {
        text(fmt::format("Reading {}", entry->name));
        ImGui::ProgressBar(static_cast<float>(entry->progress), {width, 0});
        if (ImGui::Button("Cancel")) session.close(session.active);
    }
    ImGui::PopTextWrapPos();
    ImGui::EndGroup();
}

void Shell::draw_status() {
    const Session& session = program_.session;
    const OpenTrace* entry = session.current();
    std::string left = entry == nullptr ? "" : entry->path;
    if (entry != nullptr && entry->trace) {
        const traces::Trace& trace = *entry->trace;
        left +=
            fmt::format("   {} rank{}, {} events, {}", trace.ranks.size(), trace.ranks.size() == 1 ? "" : "s",
                        format_count(static_cast<std::int64_t>(trace.device.size() + trace.ranges.size() +
                                                               trace.runtime.size() + trace.memory.size())),
                        format_duration(static_cast<double>(trace.last_ns - trace.first_ns)));
        if (!trace.ended) left += "   the run did not end";
        if (trace.dropped > 0) left += fmt::format("   {} events were dropped", format_count(trace.dropped));
    }
    std::string right = session.analyses.failure();
    if (right.empty() && session.loading()) right = "reading ...";
    if (right.empty() && session.analyses.busy()) right = "working ...";
    ImGui::PushStyleColor(ImGuiCol_Text, theme::text_dim());
    const float room =
        ImGui::GetContentRegionAvail().x - ImGui::CalcTextSize(right.c_str()).x - ImGui::GetFontSize();
    text(fit_text(left, room));
    if (!right.empty()) {
        ImGui::SameLine();
        text_right(right);
    }
    ImGui::PopStyleColor();
}

void Shell::draw_help() {
    if (!program_.help) return;
    const float font = ImGui::GetFontSize();
    const ImVec2 display = ImGui::GetIO().DisplaySize;
    ImGui::SetNextWindowPos({display.x / 2, display.y / 2}, ImGuiCond_Always, {0.5F, 0.5F});
    if (ImGui::Begin("Keys and mouse", &program_.help,
                     ImGuiWindowFlags_NoCollapse | ImGuiWindowFlags_NoSavedSettings |
                         ImGuiWindowFlags_AlwaysAutoResize)) {
        if (ImGui::BeginTable("keys", 2, ImGuiTableFlags_SizingFixedFit | ImGuiTableFlags_NoHostExtendX)) {
            for (const Action& action : actions()) help_row(keys_text(action), action.title);
            ImGui::EndTable();
        }
        ImGui::SameLine(0, font * 2);
        if (ImGui::BeginTable("mouse", 2, ImGuiTableFlags_SizingFixedFit | ImGuiTableFlags_NoHostExtendX)) {
            for (const MouseHelp& help : mouse_help()) help_row(help.gesture, help.meaning);
            ImGui::EndTable();
        }
    }
    ImGui::End();
}

}  // namespace shardscope::viewer
