// See windows.h.
#include <algorithm>
#include <exception>
#include <filesystem>

#include <fmt/core.h>
#include <imgui.h>
#include <imgui_stdlib.h>

#include "viewer/app/export.h"
#include "viewer/app/session_file.h"
#include "viewer/app/windows.h"
#include "viewer/draw/items.h"
#include "viewer/draw/text.h"
#include "viewer/tables/table.h"
#include "viewer/theme/theme.h"

namespace shardscope::viewer::app {
namespace {

namespace fs = std::filesystem;

const char* title_of(SaveRequest::What what) {
    switch (what) {
        case SaveRequest::table:
            return "Export a table###save";
        case SaveRequest::panel:
            return "Picture of the panel###save";
        case SaveRequest::window:
            return "Picture of the window###save";
        case SaveRequest::report:
            return "Report as HTML###save";
        case SaveRequest::timeline:
            return "Timeline as HTML###save";
        case SaveRequest::visible_timeline:
            return "Visible time of the timeline as HTML###save";
        case SaveRequest::text:
            return "Save a file###save";
        case SaveRequest::session:
            return "Save the session###save";
        case SaveRequest::nothing:
            break;
    }
    return "###save";
}

// "run.sqlite" -> "run".
std::string stem(const Program& program) {
    const model::OpenTrace* entry = program.session.current();
    if (entry == nullptr) return "shardscope";
    std::string name = fs::path(entry->path).filename().string();
    return name.substr(0, name.find('.'));
}

std::string suggestion(const Program& program, const std::string& table) {
    std::string name = stem(program);
    switch (program.save.what) {
        case SaveRequest::table:
            name += "-" + table + ".csv";
            break;
        case SaveRequest::panel:
        case SaveRequest::window:
            name += fmt::format("-{}.png", program.shown().name());
            break;
        case SaveRequest::text:
            name = program.save.name;
            break;
        case SaveRequest::timeline:
        case SaveRequest::visible_timeline:
            name += "-timeline.html";
            break;
        case SaveRequest::session:
            if (!program.session_path.empty()) return program.session_path;
            name += kSessionEnding;
            break;
        default:
            name += ".html";
    }
    std::replace(name.begin(), name.end(), '/', '-');
    std::error_code error;
    const fs::path here = fs::current_path(error);
    return error ? name : (here / name).string();
}

}  // namespace

void SaveWindow::begin(const Program& program) {
    asked_ = program.save.what;
    failure_.clear();
    tables_.clear();
    for (const tables::ShownTable& table : tables::shown_tables()) tables_.push_back(table.name);
}

void SaveWindow::choose_table(Program& program) {
    if (ImGui::BeginCombo("Table", program.save.name.c_str())) {
        for (const std::string& name : tables_) {
            if (!ImGui::Selectable(name.c_str(), name == program.save.name)) continue;
            program.save.name = name;
            path_ = suggestion(program, name);
        }
        ImGui::EndCombo();
    }
    draw::items::mark("save.table", program.save.name);
}

void SaveWindow::save(Program& program) {
    try {
        switch (program.save.what) {
            case SaveRequest::table:
                write_shown_table(program.save.name, path_);
                program.notice = path_ + " is written.";
                break;
            case SaveRequest::panel:
            case SaveRequest::window:
                program.picture = path_;
                program.picture_of_panel = program.save.what == SaveRequest::panel;
                break;
            case SaveRequest::report:
                program.report.start(program.session, path_);
                program.notice = "Writing the report ...";
                break;
            case SaveRequest::timeline:
            case SaveRequest::visible_timeline:
                program.report.start_timeline(program.session, path_,
                                              program.save.what == SaveRequest::visible_timeline);
                program.notice = "Writing the timeline ...";
                break;
            case SaveRequest::text:
                write_text(path_, program.save.content);
                program.notice = path_ + " is written.";
                break;
            case SaveRequest::session:
                if (!path_.ends_with(kSessionEnding)) path_ += kSessionEnding;
                save_session(program, path_);
                program.session_path = full_path(path_);
                program.remember(program.session_path);
                program.notice = path_ + " is written.";
                break;
            case SaveRequest::nothing:
                break;
        }
        program.save = {};
    } catch (const std::exception& error) {
        failure_ = error.what();
    }
}

void SaveWindow::draw(Program& program) {
    if (program.save.what == SaveRequest::nothing) {
        asked_ = SaveRequest::nothing;
        return;
    }
    const bool appearing = asked_ != program.save.what;
    if (appearing) {
        begin(program);
        if (program.save.name.empty() && !tables_.empty()) program.save.name = tables_.front();
        path_ = suggestion(program, program.save.name);
    }
    const float font = ImGui::GetFontSize();
    const ImVec2 display = ImGui::GetIO().DisplaySize;
    ImGui::SetNextWindowPos({display.x / 2, display.y * 0.3F}, ImGuiCond_Always, {0.5F, 0});
    ImGui::SetNextWindowSize({std::min(font * 42, display.x * 0.9F), 0});
    bool open = true;
    if (ImGui::Begin(
            title_of(program.save.what), &open,
            ImGuiWindowFlags_NoCollapse | ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoResize)) {
        const bool table = program.save.what == SaveRequest::table;
        if (table && tables_.empty()) {
            draw::note("This panel shows no table.");
        } else {
            if (appearing) ImGui::SetWindowFocus();
            if (table && tables_.size() > 1) choose_table(program);
            if (appearing) ImGui::SetKeyboardFocusHere();
            ImGui::SetNextItemWidth(-font * 6);
            const bool entered = ImGui::InputText(
                "##path", &path_, ImGuiInputTextFlags_EnterReturnsTrue | ImGuiInputTextFlags_AutoSelectAll);
            draw::items::mark("save.path", path_);
            ImGui::SameLine();
            std::error_code ignored;
            const bool there = fs::exists(path_, ignored);
            const bool go = ImGui::Button(there ? "Replace" : "Save", {-1, 0});
            draw::items::mark("save.go", there ? "Replace" : "Save");
            if (table)
                draw::note("The rows as they are shown; a name that ends in .json gives JSON, else CSV.");
            if (program.save.what == SaveRequest::timeline ||
                program.save.what == SaveRequest::visible_timeline)
                draw::note("For a browser, up to 5 MiB; short events that do not fit are folded.");
            if (program.save.what == SaveRequest::session)
                draw::note(
                    "The open traces by their paths from here, the panel, and in each trace the time, the "
                    "selection, rows, marks and views.");
            if (!failure_.empty()) {
                draw::wrapped_in(theme::bad(), failure_);
                draw::items::mark("save.failure", failure_);
            }
            if ((go || entered) && !path_.empty()) save(program);
        }
    }
    ImGui::End();
    if (!open) program.save = {};
}

}  // namespace shardscope::viewer::app
