// See windows.h.
#include <algorithm>
#include <string>

#include <fmt/core.h>
#include <imgui.h>
#include <imgui_stdlib.h>

#include "viewer/app/place_acts.h"
#include "viewer/app/windows.h"
#include "viewer/draw/items.h"
#include "viewer/draw/text.h"
#include "viewer/panels/panel_table.h"

namespace shardscope::viewer::app {
namespace {

enum class Wanted { nothing, go, remove };

Wanted draw_view(Program& program, const model::SavedView& view) {
    Wanted wanted = Wanted::nothing;
    ImGui::PushID(view.key);
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    if (draw::named_button(fmt::format("Ctrl+{}", view.key).c_str(), fmt::format("views.go.{}", view.key)))
        wanted = Wanted::go;
    ImGui::TableNextColumn();
    std::string name = view.name;
    ImGui::SetNextItemWidth(-1);
    ImGui::InputText("##name", &name);
    draw::items::mark(fmt::format("views.name.{}", view.key), name);
    if (name != view.name) rename_view(program, view.key, name);
    ImGui::TableNextColumn();
    ImGui::AlignTextToFramePadding();
    draw::text_dim(panels::panel_title(view.view.panel));
    ImGui::TableNextColumn();
    if (draw::named_button("Delete", fmt::format("views.delete.{}", view.key))) wanted = Wanted::remove;
    ImGui::PopID();
    return wanted;
}

}  // namespace

void draw_views_window(Program& program) {
    if (!program.views) return;
    const float font = ImGui::GetFontSize();
    const ImVec2 display = ImGui::GetIO().DisplaySize;
    ImGui::SetNextWindowPos({display.x / 2, display.y * 0.2F}, ImGuiCond_Always, {0.5F, 0});
    ImGui::SetNextWindowSize({std::min(font * 46, display.x * 0.94F), 0});
    if (ImGui::Begin(
            "Saved views", &program.views,
            ImGuiWindowFlags_NoCollapse | ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoResize)) {
        const model::OpenTrace* entry = program.session.current();
        const auto views = entry == nullptr || entry->marks == nullptr ? std::vector<model::SavedView>{}
                                                                       : entry->marks->views;
        draw::note(
            "Ctrl+Shift+1 to 9 save what is shown, Ctrl+1 to 9 show it again. They are kept beside the "
            "trace.");
        if (!views.empty() && ImGui::BeginTable("views", 4, ImGuiTableFlags_SizingFixedFit)) {
            ImGui::TableSetupColumn("key");
            ImGui::TableSetupColumn("name", ImGuiTableColumnFlags_WidthStretch);
            for (const model::SavedView& view : views) {
                switch (draw_view(program, view)) {
                    case Wanted::go:
                        program.views = false;
                        go_to_view(program, view.key);
                        break;
                    case Wanted::remove:
                        remove_view(program, view.key);
                        break;
                    case Wanted::nothing:
                        break;
                }
            }
            ImGui::EndTable();
        }
    }
    ImGui::End();
}

}  // namespace shardscope::viewer::app
