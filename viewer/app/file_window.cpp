// See windows.h.
#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include <fmt/core.h>
#include <imgui.h>
#include <imgui_stdlib.h>

#include "viewer/app/windows.h"
#include "viewer/draw/format.h"
#include "viewer/draw/items.h"
#include "viewer/draw/text.h"
#include "viewer/theme/theme.h"

namespace shardscope::viewer::app {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::pair<FileKind, const char*>, 5> kKinds = {
    {{FileKind::trace, "All traces"},
     {FileKind::database, "Databases (.sqlite, .db)"},
     {FileKind::json, "Kineto and Chrome traces (.json, .gz)"},
     {FileKind::snapshot, "Memory snapshots (.pickle)"},
     {FileKind::any, "All files"}}};

constexpr const char* kHowToChoose =
    "Ctrl or Shift with a click chooses several. Side by side they are compared; merged they are the ranks "
    "of one job.";

const char* label_of(FileKind kind) {
    for (const auto& [value, label] : kKinds) {
        if (value == kind) return label;
    }
    return "";
}

}  // namespace

void FileWindow::go_to(const std::string& path) {
    listing_ = list_folder(path, true);
    typed_ = listing_.path;
    marked_.clear();
    last_clicked_ = 0;
}

std::string FileWindow::path_of(const std::string& name) const {
    return (fs::path(listing_.path) / name).string();
}

void FileWindow::draw(Program& program) {
    bool& open = program.choose_file;
    if (open && !was_open_) go_to(listing_.path);
    was_open_ = open;
    if (!open) return;
    const float font = ImGui::GetFontSize();
    const ImVec2 display = ImGui::GetIO().DisplaySize;
    ImGui::SetNextWindowSize({std::min(font * 48, display.x * 0.94F), std::min(font * 34, display.y * 0.9F)},
                             ImGuiCond_Always);
    ImGui::SetNextWindowPos({display.x / 2, display.y / 2}, ImGuiCond_Always, {0.5F, 0.5F});
    if (ImGui::Begin("Open traces", &open, ImGuiWindowFlags_NoCollapse | ImGuiWindowFlags_NoSavedSettings)) {
        draw_path();
        const float words =
            ImGui::CalcTextSize(kHowToChoose, nullptr, false, ImGui::GetContentRegionAvail().x).y;
        const float buttons =
            words + ImGui::GetFrameHeightWithSpacing() + 2 * ImGui::GetStyle().ItemSpacing.y;
        ImGui::BeginChild("entries", {0, -buttons}, true);
        draw_entries();
        ImGui::EndChild();
        draw_buttons();
    }
    ImGui::End();
    if (!next_folder_.empty()) go_to(std::exchange(next_folder_, {}));
    if (open_.empty()) return;
    const std::vector<std::string> chosen = std::exchange(open_, {});
    if (std::exchange(merge_, false)) {
        program.session.open_merged(chosen);
        program.session.set_active(program.session.open.size() - 1);
    } else {
        for (const std::string& path : chosen) program.open(path);
    }
    open = was_open_ = false;
}

void FileWindow::draw_path() {
    const float font = ImGui::GetFontSize();
    if (ImGui::IsWindowAppearing()) ImGui::SetKeyboardFocusHere();
    ImGui::SetNextItemWidth(ImGui::GetContentRegionAvail().x - font * 15);
    if (ImGui::InputTextWithHint("##path", "A file or a folder", &typed_,
                                 ImGuiInputTextFlags_EnterReturnsTrue))
        take_typed();
    draw::items::mark("files.path", typed_);
    ImGui::SameLine();
    ImGui::SetNextItemWidth(-1);
    if (ImGui::BeginCombo("##kind", label_of(kind_))) {
        for (const auto& [kind, label] : kKinds) {
            if (ImGui::Selectable(label, kind == kind_)) kind_ = kind;
        }
        ImGui::EndCombo();
    }
    draw::items::mark("files.kind", label_of(kind_));
}

// Enters a folder; opens anything else (if it cannot be opened, its tab says why).
void FileWindow::take_typed() {
    std::error_code error;
    if (typed_.empty()) return;
    if (fs::is_directory(typed_, error)) {
        next_folder_ = typed_;
    } else {
        open_ = {typed_};
    }
}

void FileWindow::draw_entries() {
    if (ImGui::Selectable("..")) next_folder_ = fs::path(listing_.path).parent_path().string();
    draw::items::mark("files.up", "..");
    if (!listing_.error.empty()) draw::note(listing_.error);
    draw::items::value("files.error", listing_.error);
    for (std::size_t row = 0; row < listing_.entries.size(); ++row) {
        const FolderEntry& entry = listing_.entries[row];
        if (!entry.folder && !is_of_kind(entry.name, kind_)) continue;
        ImGui::PushStyleColor(ImGuiCol_Text, entry.folder ? theme::accent() : theme::text());
        const bool clicked =
            ImGui::Selectable((entry.name + (entry.folder ? "/" : "")).c_str(), marked_.count(entry.name) > 0,
                              ImGuiSelectableFlags_AllowDoubleClick);
        ImGui::PopStyleColor();
        draw::items::mark("files.entry." + entry.name, entry.name);
        if (clicked) click(row, entry);
        if (entry.folder) continue;
        ImGui::SameLine();
        draw::text_right_dim(draw::format_size(entry.bytes));
    }
}

void FileWindow::click(std::size_t row, const FolderEntry& entry) {
    if (entry.folder) {
        next_folder_ = path_of(entry.name);
        return;
    }
    if (ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) {
        open_ = {path_of(entry.name)};
        return;
    }
    const ImGuiIO& io = ImGui::GetIO();
    if (io.KeyShift) {
        for (std::size_t i = std::min(row, last_clicked_); i <= std::max(row, last_clicked_); ++i) {
            const FolderEntry& other = listing_.entries[i];
            if (!other.folder && is_of_kind(other.name, kind_)) marked_.insert(other.name);
        }
        return;
    }
    last_clicked_ = row;
    if (!io.KeyCtrl) marked_.clear();
    if (!marked_.insert(entry.name).second) marked_.erase(entry.name);
    typed_ = path_of(entry.name);
}

void FileWindow::draw_buttons() {
    draw::note(kHowToChoose);
    const bool several = marked_.size() > 1;
    const bool open = draw::named_button(several ? "Open side by side" : "Open", "files.open");
    bool merge = false;
    if (several) {
        ImGui::SameLine();
        merge = draw::named_button("Open merged on one clock", "files.merge");
    }
    if (!several && open) return take_typed();
    if (!open && !merge) return;
    for (const std::string& name : marked_) open_.push_back(path_of(name));
    merge_ = merge;
}

}  // namespace shardscope::viewer::app
