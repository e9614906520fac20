// See windows.h.
#include <algorithm>
#include <array>
#include <cstddef>
#include <ctime>
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

constexpr std::array<std::pair<FileKind, const char*>, 6> kKinds = {
    {{FileKind::trace, "All traces"},
     {FileKind::database, "Databases (.sqlite, .db)"},
     {FileKind::json, "Kineto and Chrome traces (.json, .gz)"},
     {FileKind::snapshot, "Memory snapshots (.pickle)"},
     {FileKind::session, "Sessions (.shardscope-session)"},
     {FileKind::any, "All files"}}};

constexpr const char* kHowToChoose =
    "Type a part of a name to find it, Up and Down choose, Enter opens. Ctrl or Shift with a click chooses "
    "several. Side by side they are compared; merged they are the ranks of one job.";

const char* label_of(FileKind kind) {
    for (const auto& [value, label] : kKinds) {
        if (value == kind) return label;
    }
    return "";
}

// "2026-11-27 22:10", of the local time.
std::string date_text(std::int64_t seconds) {
    if (seconds == 0) return "";
    const std::time_t time = seconds;
    std::tm local{};
    localtime_r(&time, &local);
    std::array<char, 32> text{};
    return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M", &local)};
}

// Of the active trace; empty if none is open.
std::string folder_of_current(const Program& program) {
    const model::OpenTrace* entry = program.session.current();
    return entry == nullptr ? "" : fs::path(entry->path).parent_path().string();
}

}  // namespace

void FileWindow::go_to(const std::string& path) {
    listing_ = list_folder(path, true);
    sort_entries(listing_.entries, order_, descending_);
    typed_ = listing_.path + (listing_.path.ends_with('/') ? "" : "/");
    takes_keyboard_ = true;
    chosen_.clear();
    marked_.clear();
    last_clicked_ = 0;
}

std::string FileWindow::path_of(const std::string& name) const {
    return (fs::path(listing_.path) / name).string();
}

void FileWindow::draw(Program& program) {
    bool& open = program.choose_file;
    if (open && !was_open_) {
        const bool sessions = std::exchange(program.choose_session, false);
        if (sessions || kind_ == FileKind::session) kind_ = sessions ? FileKind::session : FileKind::trace;
        go_to(listing_.path.empty() ? folder_of_current(program) : listing_.path);
    }
    was_open_ = open;
    if (!open) return;
    const float font = ImGui::GetFontSize();
    const ImVec2 display = ImGui::GetIO().DisplaySize;
    ImGui::SetNextWindowSize({std::min(font * 48, display.x * 0.94F), std::min(font * 34, display.y * 0.9F)},
                             ImGuiCond_Always);
    ImGui::SetNextWindowPos({display.x / 2, display.y / 2}, ImGuiCond_Always, {0.5F, 0.5F});
    const char* title = kind_ == FileKind::session ? "Open a session###files" : "Open traces###files";
    if (ImGui::Begin(title, &open, ImGuiWindowFlags_NoCollapse | ImGuiWindowFlags_NoSavedSettings)) {
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
    if (std::exchange(takes_keyboard_, false)) ImGui::SetKeyboardFocusHere();
    ImGui::SetNextItemWidth(ImGui::GetContentRegionAvail().x - font * 15);
    const auto on_arrow = [](ImGuiInputTextCallbackData* data) {
        static_cast<FileWindow*>(data->UserData)
            ->choose_neighbour(data->EventKey == ImGuiKey_UpArrow ? -1 : 1);
        return 0;
    };
    const std::string before = typed_;
    if (ImGui::InputTextWithHint("##path", "A file or a folder", &typed_,
                                 ImGuiInputTextFlags_EnterReturnsTrue | ImGuiInputTextFlags_AutoSelectAll |
                                     ImGuiInputTextFlags_CallbackHistory,
                                 on_arrow, this))
        enter();
    if (typed_ != before) {
        chosen_.clear();
        marked_.clear();
    }
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

// The part of a name that is typed behind the path of this folder, or alone; empty if a path is typed.
std::string FileWindow::part_of_name() const {
    const fs::path typed(typed_);
    if (typed == fs::path(listing_.path)) return "";
    const bool here = !typed.has_parent_path() || typed.parent_path() == fs::path(listing_.path);
    return here ? typed.filename().string() : "";
}

// While several are marked all are shown, as the path is that of the latest.
bool FileWindow::shows(const FolderEntry& entry) const {
    if (!entry.folder && !is_of_kind(entry.name, kind_)) return false;
    return !marked_.empty() || has_typed(entry.name, part_of_name());
}

void FileWindow::choose_neighbour(int step) {
    std::vector<std::string> shown;
    for (const FolderEntry& entry : listing_.entries)
        if (shows(entry)) shown.push_back(entry.name);
    if (shown.empty()) return;
    const auto at = std::find(shown.begin(), shown.end(), chosen_);
    const auto last = static_cast<std::ptrdiff_t>(shown.size()) - 1;
    const std::ptrdiff_t now = at == shown.end() ? (step > 0 ? -1 : last + 1) : at - shown.begin();
    chosen_ = shown[static_cast<std::size_t>(std::clamp(now + step, std::ptrdiff_t{0}, last))];
}

// Opens, or enters, the entry that the arrows have chosen; without one what is typed, if it exists; else the
// first entry that is shown.
void FileWindow::enter() {
    std::error_code error;
    const bool is_path = fs::exists(typed_, error);
    if (chosen_.empty() && !is_path && !part_of_name().empty()) choose_neighbour(1);
    if (!chosen_.empty()) typed_ = path_of(std::exchange(chosen_, {}));
    take_typed();
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
    if (!ImGui::BeginTable("files", 3, ImGuiTableFlags_Sortable | ImGuiTableFlags_SizingFixedFit)) return;
    draw_headings();
    bool none = true;
    for (std::size_t row = 0; row < listing_.entries.size(); ++row) {
        if (!shows(listing_.entries[row])) continue;
        draw_entry(row);
        none = false;
    }
    ImGui::EndTable();
    if (none && listing_.error.empty())
        draw::note(!part_of_name().empty()      ? "No name contains this."
                   : kind_ == FileKind::session ? "No session is in this folder."
                                                : "No trace is in this folder.");
}

void FileWindow::draw_headings() {
    static constexpr std::array<std::pair<const char*, const char*>, 3> kColumns = {
        {{"Name", "files.sort.name"}, {"Modified", "files.sort.modified"}, {"Size", "files.sort.bytes"}}};
    const float font = ImGui::GetFontSize();
    ImGui::TableSetupColumn(kColumns[0].first, ImGuiTableColumnFlags_WidthStretch);
    ImGui::TableSetupColumn(kColumns[1].first,
                            ImGuiTableColumnFlags_WidthFixed | ImGuiTableColumnFlags_PreferSortDescending,
                            font * 9);
    ImGui::TableSetupColumn(kColumns[2].first,
                            ImGuiTableColumnFlags_WidthFixed | ImGuiTableColumnFlags_PreferSortDescending,
                            font * 6);
    ImGui::TableNextRow(ImGuiTableRowFlags_Headers);
    for (int column = 0; column < 3; ++column) {
        ImGui::TableSetColumnIndex(column);
        const auto& [title, item] = kColumns[static_cast<std::size_t>(column)];
        ImGui::TableHeader(title);
        draw::items::mark(item, title);
    }
    ImGuiTableSortSpecs* sort = ImGui::TableGetSortSpecs();
    if (sort == nullptr || !sort->SpecsDirty || sort->SpecsCount == 0) return;
    order_ = static_cast<EntryOrder>(sort->Specs[0].ColumnIndex);
    descending_ = sort->Specs[0].SortDirection == ImGuiSortDirection_Descending;
    sort_entries(listing_.entries, order_, descending_);
    sort->SpecsDirty = false;
}

void FileWindow::draw_entry(std::size_t row) {
    const FolderEntry& entry = listing_.entries[row];
    const bool chosen = entry.name == chosen_;
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    ImGui::PushStyleColor(ImGuiCol_Text, entry.folder ? theme::accent() : theme::text());
    const bool clicked = ImGui::Selectable(
        (entry.name + (entry.folder ? "/" : "")).c_str(), chosen || marked_.count(entry.name) > 0,
        ImGuiSelectableFlags_AllowDoubleClick | ImGuiSelectableFlags_SpanAllColumns);
    ImGui::PopStyleColor();
    if (chosen) ImGui::SetScrollHereY();
    draw::items::mark("files.entry." + entry.name, entry.name);
    ImGui::TableNextColumn();
    draw::text_dim(date_text(entry.modified));
    ImGui::TableNextColumn();
    if (!entry.folder) draw::text_right_dim(draw::format_size(entry.bytes));
    if (clicked) click(row, entry);
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
