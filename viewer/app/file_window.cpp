// See file_window.h.
#include "viewer/app/file_window.h"

#include <filesystem>

#include <imgui.h>
#include <imgui_stdlib.h>

#include "viewer/app/theme.h"
#include "viewer/draw/format.h"
#include "viewer/draw/text.h"

namespace shardscope::viewer {

namespace fs = std::filesystem;

void FileWindow::go_to(const std::string& path) {
    listing_ = list_folder(path, all_files_);
    typed_ = listing_.path;
}

std::optional<std::string> FileWindow::draw(bool& open) {
    if (open && !was_open_) go_to(listing_.path);
    was_open_ = open;
    if (!open) return std::nullopt;
    const float font = ImGui::GetFontSize();
    const ImVec2 display = ImGui::GetIO().DisplaySize;
    ImGui::SetNextWindowSize({font * 44, font * 32}, ImGuiCond_Appearing);
    ImGui::SetNextWindowPos({display.x / 2, display.y / 2}, ImGuiCond_Appearing, {0.5F, 0.5F});
    std::optional<std::string> chosen;
    if (ImGui::Begin("Open a trace", &open, ImGuiWindowFlags_NoCollapse | ImGuiWindowFlags_NoSavedSettings)) {
        if (ImGui::IsWindowAppearing()) ImGui::SetKeyboardFocusHere();
        ImGui::SetNextItemWidth(ImGui::GetContentRegionAvail().x - font * 6);
        const bool entered = ImGui::InputText("##path", &typed_, ImGuiInputTextFlags_EnterReturnsTrue);
        ImGui::SameLine();
        if (ImGui::Button("Open", {-1, 0}) || entered) chosen = take_typed();
        if (ImGui::Checkbox("All files", &all_files_)) go_to(listing_.path);
        if (!chosen) chosen = draw_entries();
    }
    ImGui::End();
    if (chosen) open = false;
    was_open_ = open;
    return chosen;
}

// A folder is gone into, anything else is opened (and explained where it cannot be).
std::optional<std::string> FileWindow::take_typed() {
    std::error_code error;
    if (!fs::is_directory(typed_, error)) return typed_.empty() ? std::nullopt : std::optional(typed_);
    go_to(std::string(typed_));
    return std::nullopt;
}

std::optional<std::string> FileWindow::draw_entries() {
    std::optional<std::string> chosen;
    std::string next;
    ImGui::BeginChild("entries", {0, 0}, true);
    if (ImGui::Selectable("..")) next = fs::path(listing_.path).parent_path().string();
    if (!listing_.error.empty()) note(listing_.error);
    for (const FolderEntry& entry : listing_.entries) {
        const std::string path = (fs::path(listing_.path) / entry.name).string();
        ImGui::PushStyleColor(ImGuiCol_Text, entry.folder ? theme::accent() : theme::text());
        const bool clicked = ImGui::Selectable((entry.name + (entry.folder ? "/" : "")).c_str());
        ImGui::PopStyleColor();
        if (clicked && entry.folder) next = path;
        if (clicked && !entry.folder) chosen = path;
        if (entry.folder) continue;
        ImGui::SameLine();
        text_right_dim(format_size(entry.bytes));
    }
    ImGui::EndChild();
    if (!next.empty()) go_to(next);
    return chosen;
}

}  // namespace shardscope::viewer
