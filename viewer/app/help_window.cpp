// See windows.h.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>
#include <imgui.h>

#include "viewer/app/actions.h"
#include "viewer/app/windows.h"
#include "viewer/draw/items.h"
#include "viewer/draw/text.h"
#include "viewer/theme/theme.h"

namespace shardscope::viewer::app {
namespace {

constexpr float kColumn = 27;  // font sizes

void row(std::string_view left, std::string_view right) {
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    draw::wrapped_in(theme::accent(), left);
    ImGui::TableNextColumn();
    draw::wrapped(right);
}

// Begins the table of one menu, under its heading.
bool begin(std::string_view title, float keys) {
    draw::text_dim(title);
    if (!ImGui::BeginTable(std::string(title).c_str(), 2, ImGuiTableFlags_SizingFixedFit)) return false;
    ImGui::TableSetupColumn("keys", ImGuiTableColumnFlags_WidthFixed, ImGui::GetFontSize() * keys);
    ImGui::TableSetupColumn("meaning", ImGuiTableColumnFlags_WidthStretch);
    return true;
}

// Keys are changed by a click; Escape keeps its meaning.
void action_row(const Action& action, Program& program) {
    const bool waits = program.takes_key == action.id;
    const std::string keys = waits ? "press a key" : keys_text(action, program);
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    ImGui::PushStyleColor(ImGuiCol_Text, waits ? theme::bad() : theme::accent());
    ImGui::PushID(action.id.data());
    if (ImGui::Selectable(keys.empty() ? "-" : keys.c_str(), waits) && action.id != "let_go")
        program.takes_key = action.id;
    ImGui::PopID();
    ImGui::PopStyleColor();
    draw::items::mark(fmt::format("help.key.{}", action.id), keys);
    ImGui::TableNextColumn();
    draw::wrapped(action.title);
}

void draw_menu(std::string_view menu, Program& program) {
    if (begin(menu, 8.5F)) {
        for (const Action& action : actions()) {
            if (action.menu == menu) action_row(action, program);
        }
        ImGui::EndTable();
    }
    ImGui::Spacing();
}

// What a click on a key does, and the way back.
void draw_change(Program& program) {
    if (!program.takes_key.empty()) {
        draw::text_in(theme::accent(),
                      "The next key becomes its key; Esc leaves it as it is, Del takes it away.");
    } else {
        draw::text_dim("Click a key to change it.");
        if (program.keys.empty()) return;
        ImGui::SameLine();
        if (draw::named_button("Default keys", "help.defaults")) {
            program.keys.clear();
            program.notice = "All keys are the default ones again.";
        }
    }
}

void draw_mouse() {
    if (begin("Mouse", 11)) {
        for (const MouseHelp& help : mouse_help()) row(help.gesture, help.meaning);
        ImGui::EndTable();
    }
}

}  // namespace

void draw_help_window(Program& program) {
    bool& open = program.help;
    if (!open) program.takes_key.clear();
    if (!open) return;
    const float font = ImGui::GetFontSize();
    const ImVec2 display = ImGui::GetIO().DisplaySize;
    const int columns = display.x > font * kColumn * 3 ? 3 : display.x > font * kColumn * 2 ? 2 : 1;
    const float width = static_cast<float>(columns) * font * kColumn;
    ImGui::SetNextWindowPos({display.x / 2, display.y / 2}, ImGuiCond_Always, {0.5F, 0.5F});
    ImGui::SetNextWindowSize(
        {std::min(width + font * 2, display.x * 0.96F), std::min(font * 44, display.y * 0.92F)});
    if (ImGui::Begin("Keys and mouse", &open,
                     ImGuiWindowFlags_NoCollapse | ImGuiWindowFlags_NoSavedSettings)) {
        draw::items::value("help", "open");
        draw_change(program);
        std::vector<std::string_view> menus = menu_names();
        // Spreads the menus over the columns evenly, so that long lists start a new column.
        ImGui::Columns(columns, "parts", false);
        std::size_t rows = actions().size() + mouse_help().size() + 2 * menus.size(), used = 0;
        int column = 0;
        for (const std::string_view menu : menus) {
            const auto own = static_cast<std::size_t>(std::count_if(
                actions().begin(), actions().end(), [&](const Action& a) { return a.menu == menu; }));
            const std::size_t share = rows / static_cast<std::size_t>(columns);
            if (used > 0 && column + 1 < columns && used + own / 2 > share) {
                ImGui::NextColumn();
                ++column;
                used = 0;
            }
            draw_menu(menu, program);
            used += own + 2;
        }
        draw_mouse();
        ImGui::Columns(1);
    }
    ImGui::End();
}

}  // namespace shardscope::viewer::app
