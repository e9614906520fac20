// See saved_state.h.
#include "viewer/app/saved_state.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "traces/schema/json_text.h"
#include "viewer/app/options.h"
#include "viewer/app/session_file.h"
#include "viewer/model/fields.h"
#include "viewer/model/whole_file.h"

namespace shardscope::viewer::tables {

template <model::IsOrIsConst<SavedTable> T, class Visit>
void fields(T& value, Visit&& visit) {
    auto& [sorted_by, descending, hidden] = value;
    visit("sorted_by", sorted_by);
    visit("descending", descending);
    visit("hidden", hidden);
}

}  // namespace shardscope::viewer::tables

namespace shardscope::viewer::app {

constexpr std::array<std::string_view, 3> names(RailWidth) {
    return {"automatic", "wide", "narrow"};
}
template <model::IsOrIsConst<Desk> T, class Visit>
void fields(T& value, Visit&& visit) {
    auto& [width, height, maximized] = value;
    visit("width", width);
    visit("height", height);
    visit("maximized", maximized);
}
// A window that is smaller or larger than --size takes is not restored.
bool is_valid(const Desk& desk) {
    const bool unknown = desk.width == 0 && desk.height == 0;  // maximized since it has been on the screen
    return unknown || (is_window_size(desk.width) && is_window_size(desk.height));
}

namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t kMostState = 16U << 20;

// Until sessions came, a trace had its ranges and, as a text, its rows beside its path.
void take_old_places(model::JsonIn& json) {
    if (!json.is_object() || !json.contains("traces") || !json["traces"].is_array()) return;
    for (model::JsonIn& trace : json["traces"]) {
        if (!trace.is_object() || trace.contains("place")) continue;
        model::JsonIn place = model::JsonIn::object();
        for (const char* key : {"visible", "limit", "rows"}) {
            if (!trace.contains(key) || trace[key].is_null()) continue;
            place[key] = trace[key].is_string() ? traces::schema::parse_json(trace[key].get<std::string>())
                                                : trace[key];
            if (!place[key].is_object() && !place[key].is_array()) place.erase(key);
        }
        trace["place"] = std::move(place);
    }
}

}  // namespace

std::string to_json(const SavedState& state) {
    return traces::schema::dump_json(model::field_json(state), 1) + "\n";
}

SavedState parse_state(std::string_view text, std::vector<std::string>& left_out) {
    try {
        model::JsonIn json = traces::schema::parse_json(text, traces::schema::BadJson::throws);
        take_old_places(json);
        SavedState state;
        model::LeftOut places;
        if (!take_field(json, state, places)) throw std::runtime_error("it is not a JSON object");
        left_out = std::move(places.places);
        return state;
    } catch (const nlohmann::json::exception& error) {
        throw std::runtime_error(error.what());
    }
}

std::string state_path() {
    const std::string folder = model::state_folder();
    return folder.empty() ? "" : folder + "/viewer.json";
}

std::optional<SavedState> read_state(const std::string& path, std::string& message) {
    if (!model::is_file(path)) return std::nullopt;
    try {
        std::vector<std::string> left_out;
        SavedState state = parse_state(model::read_whole(path, kMostState), left_out);
        if (!left_out.empty())
            message = fmt::format("{}: the saved state is restored without what cannot be read: {}.", path,
                                  model::some_of(left_out));
        return state;
    } catch (const std::exception& wrong) {
        message = fmt::format("{}: the saved state is damaged and is ignored ({}).", path, wrong.what());
        return std::nullopt;
    }
}

std::string write_state(const std::string& path, const SavedState& state) {
    if (path.empty()) return "";
    std::error_code ignored;
    fs::create_directories(fs::path(path).parent_path(), ignored);
    constexpr bool kSecret = true;
    const std::string why = model::write_whole(path, to_json(state), kSecret);
    return why.empty() ? "" : fmt::format("{}: the state cannot be saved for next time ({}).", path, why);
}

SavedState state_of(const Program& program) {
    SavedState state;
    state.session = session_of(program);
    // An error is not worth another look at the next start; marks and views are kept beside the traces.
    std::erase_if(state.session.traces, [&](const model::SavedTrace& trace) {
        return std::any_of(program.session.open.begin(), program.session.open.end(),
                           [&](const model::OpenTrace& e) {
                               return !e.error.empty() && full_path(e.path) == trace.path &&
                                      e.merged.size() == trace.merged.size();
                           });
    });
    for (model::SavedTrace& trace : state.session.traces) {
        trace.identity.reset();
        trace.marks.clear();
        trace.views.clear();
    }
    state.second_desk = program.second_desk;
    state.appearance = theme::appearance() == theme::Appearance::dark ? "dark" : "light";
    state.zoom = program.zoom;
    state.desk = program.desk;
    state.rail = program.rail;
    state.follow = program.session.follow;
    state.keep_columns = program.session.keep_columns;
    for (const std::string& path : program.recent) state.recent.push_back(full_path(path));
    state.keys = saved_keys(program.keys);
    for (const auto& panel : program.panels) {
        if (std::string saved = panel->saved(); !saved.empty())
            state.panels[std::string(panel->name())] = saved;
    }
    state.tables = tables::table_memory();
    return state;
}

void restore(const SavedState& state, Program& program, bool files) {
    program.set_zoom(state.zoom);
    program.desk = state.desk;
    program.set_appearance(state.appearance == "light" ? theme::Appearance::light : theme::Appearance::dark);
    program.rail = state.rail;
    program.session.follow = state.follow;
    program.session.keep_columns = state.keep_columns;
    program.session.color_by = state.session.color_by;
    program.recent = state.recent;
    program.keys = changed_keys(state.keys);
    program.arrange(state.session.panes);
    program.arrange_second(state.session.second);
    program.second_desk = state.second_desk;
    program.show(state.session.panel);
    tables::table_memory() = state.tables;
    for (const auto& panel : program.panels) {
        const auto saved = state.panels.find(std::string(panel->name()));
        if (saved != state.panels.end()) panel->restore(saved->second);
    }
    if (!files) return;
    model::SavedSession session = state.session;
    std::erase_if(session.traces, [](const model::SavedTrace& trace) {
        std::error_code ignored;
        return !fs::exists(trace.path, ignored);
    });
    restore(session, program);
}

}  // namespace shardscope::viewer::app
