// See session_file.h.
#include "viewer/app/session_file.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "viewer/draw/format.h"
#include "viewer/model/go_to_place.h"
#include "viewer/model/whole_file.h"

namespace shardscope::viewer::app {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t kMostSession = 16U << 20;

std::string folder_of(const std::string& path) {
    return fs::path(full_path(path)).parent_path().string();
}

// As it is written in a file of this folder.
std::string relative(const std::string& path, const std::string& folder) {
    std::error_code error;
    const fs::path from = fs::proximate(path, folder, error);
    return error || from.empty() ? path : from.string();
}

// The file that a session in this folder names; if it is not there, one of the same name beside the session.
std::string found(const std::string& path, const std::string& folder) {
    const fs::path named = (fs::path(folder) / path).lexically_normal();
    const fs::path beside = fs::path(folder) / fs::path(path).filename();
    std::error_code error;
    return !fs::exists(named, error) && model::is_file(beside.string()) ? beside.string() : named.string();
}

void change_paths(model::SavedSession& session, const std::string& folder,
                  std::string (*change)(const std::string&, const std::string&)) {
    for (model::SavedTrace& trace : session.traces) {
        const bool active = trace.path == session.active;
        trace.path = change(trace.path, folder);
        if (active) session.active = trace.path;
        for (std::string& path : trace.merged) path = change(path, folder);
    }
}

model::ReadSession read_session(const std::string& path) {
    return model::parse_session(model::read_whole(path, kMostSession));
}

// Of a simulation or a trial of this program, whose files go at its end.
bool is_simulated(const model::Session& session, const model::OpenTrace& entry) {
    return session.simulation.is_mine(entry.path) || session.trials.is_mine(entry.path);
}

}  // namespace

std::string full_path(const std::string& path) {
    std::error_code error;
    const fs::path absolute = fs::absolute(path, error);
    return error ? path : absolute.lexically_normal().string();
}

model::SavedSession session_of(const Program& program) {
    model::SavedSession session;
    const auto& open = program.session.open;
    for (std::size_t i = 0; i < open.size(); ++i) {
        const model::OpenTrace& entry = open[i];
        if (is_simulated(program.session, entry)) continue;
        model::SavedTrace trace = entry.wanted.value_or(model::SavedTrace{});
        trace.path = full_path(entry.path);
        trace.merged.clear();
        for (const std::string& path : entry.merged) trace.merged.push_back(full_path(path));
        trace.place = model::place_of(program.session, i);
        if (entry.trace != nullptr) {
            trace.identity = model::identity_of(*entry.trace);
            trace.marks = entry.marks->marks.all();
            trace.views = entry.marks->views;
        }
        session.traces.push_back(std::move(trace));
    }
    if (const model::OpenTrace* entry = program.session.current();
        entry != nullptr && !is_simulated(program.session, *entry))
        session.active = full_path(entry->path);
    session.panel = program.shown().name();
    session.panes = program.panes.text();
    if (program.elsewhere) session.second = program.elsewhere->text();
    if (program.in_second) std::swap(session.panes, session.second);
    session.color_by = program.session.color_by;
    for (const auto& panel : program.panels) {
        if (std::string content = panel->content(program.session); !content.empty())
            session.contents[std::string(panel->name())] = content;
    }
    return session;
}

bool restore(const model::SavedSession& session, Program& program) {
    std::size_t active = program.session.open.size();
    for (const model::SavedTrace& trace : session.traces) {
        if (trace.merged.empty()) {
            program.session.open_file(trace.path);
        } else {
            program.session.open_merged(trace.merged);
        }
        program.session.open.back().rows = trace.place.rows;
        program.session.open.back().wanted = trace;
        if (trace.path == session.active) active = program.session.open.size() - 1;
    }
    if (active < program.session.open.size()) program.session.set_active(active);
    program.session.color_by = session.color_by;
    program.elsewhere.reset();
    bool divided = session.panes.empty() || program.arrange(session.panes);
    divided = (session.second.empty() || program.arrange_second(session.second)) && divided;
    program.show(session.panel);  // even if a file contains a plan only
    program.contents = session.contents;
    return divided;
}

void save_session(const Program& program, const std::string& path) {
    if (model::is_file(path)) {
        try {
            read_session(path);
        } catch (const std::exception& error) {
            throw std::runtime_error(
                fmt::format("{}: it is left as it is, since {}; choose another name.", path, error.what()));
        }
    }
    model::SavedSession session = session_of(program);
    change_paths(session, folder_of(path), relative);
    if (const std::string why = model::write_whole(path, model::session_text(session)); !why.empty())
        throw std::runtime_error(fmt::format("{}: the session cannot be saved ({}).", path, why));
}

bool open_session(Program& program, const std::string& path) {
    try {
        model::ReadSession read = read_session(path);
        change_paths(read.session, folder_of(path), found);
        if (!read.left_out.empty())
            program.say_problem(fmt::format("{}: opened without what cannot be read: {}.", path,
                                            model::some_of(read.left_out)));
        const bool panel_is_known =
            std::any_of(program.panels.begin(), program.panels.end(),
                        [&](const auto& panel) { return panel->name() == read.session.panel; });
        if (!panel_is_known && !read.session.panel.empty())
            program.say_problem(fmt::format("{}: its panel \"{}\" is not in this version of the viewer.",
                                            path, draw::shorten_middle(read.session.panel, 40)));
        while (!program.session.open.empty()) program.session.close(program.session.open.size() - 1);
        if (!restore(read.session, program))
            program.say_problem(
                fmt::format("{}: its panes cannot be arranged in this version of the viewer.", path));
        program.session_path = full_path(path);
        program.remember(path);
        return true;
    } catch (const std::exception& error) {
        program.say_problem(fmt::format("{}: this session cannot be opened: {}.", path, error.what()));
        return false;
    }
}

}  // namespace shardscope::viewer::app
