// See saved_state.h.
#include "viewer/app/saved_state.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include "traces/schema/json_text.h"
#include "viewer/app/options.h"
#include "viewer/model/time_view.h"

namespace shardscope::viewer::app {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::size_t kMostBytes = 1 << 20;  // the viewer writes no larger file

constexpr std::array<std::pair<model::ColorBy, const char*>, 5> kColorings = {
    {{model::ColorBy::kind, "kind"},
     {model::ColorBy::name, "name"},
     {model::ColorBy::module, "module"},
     {model::ColorBy::unit, "unit"},
     {model::ColorBy::cause, "cause"}}};
constexpr std::array<std::pair<RailWidth, const char*>, 3> kRails = {
    {{RailWidth::automatic, "automatic"}, {RailWidth::wide, "wide"}, {RailWidth::narrow, "narrow"}}};

template <class Value, std::size_t N>
std::string name_of(const std::array<std::pair<Value, const char*>, N>& all, Value value) {
    for (const auto& [v, name] : all) {
        if (v == value) return name;
    }
    return all.front().second;
}
template <class Value, std::size_t N>
Value value_of(const std::array<std::pair<Value, const char*>, N>& all, const std::string& name) {
    for (const auto& [value, n] : all) {
        if (name == n) return value;
    }
    return all.front().first;
}

Json of(const std::optional<model::TimeRange>& range) {
    return range ? Json::array({range->from, range->to}) : Json();
}

template <class T>
void take(const Json& object, const char* key, T& value) {
    if (const auto it = object.find(key); it != object.end()) value = it->get<T>();
}

std::optional<model::TimeRange> take_range(const Json& object, const char* key) {
    const auto it = object.find(key);
    if (it == object.end() || it->is_null()) return std::nullopt;
    const model::TimeRange range{it->at(0).get<std::int64_t>(), it->at(1).get<std::int64_t>()};
    // Ignores a range that no view can show, so that the whole trace is shown.
    const bool shows =
        range.to > range.from && model::is_viewable(range.from) && model::is_viewable(range.to);
    return shows ? std::optional(range) : std::nullopt;
}

SavedTrace trace_of(const Json& object) {
    SavedTrace trace;
    trace.path = object.at("path").get<std::string>();
    take(object, "merged", trace.merged);
    trace.visible = take_range(object, "visible");
    trace.limit = take_range(object, "limit");
    take(object, "rows", trace.rows);
    return trace;
}

// A window that is smaller or larger than --size takes is not restored.
Desk desk_of(const Json& object) {
    Desk desk;
    take(object, "width", desk.width);
    take(object, "height", desk.height);
    take(object, "maximized", desk.maximized);
    return is_window_size(desk.width) && is_window_size(desk.height) ? desk : Desk{};
}

tables::SavedTable table_of(const Json& object) {
    tables::SavedTable table;
    take(object, "sorted_by", table.sorted_by);
    take(object, "descending", table.descending);
    take(object, "hidden", table.hidden);
    return table;
}

}  // namespace

std::string to_json(const SavedState& state) {
    Json json;
    json["traces"] = Json::array();
    for (const SavedTrace& trace : state.traces) {
        json["traces"].push_back({{"path", trace.path},
                                  {"merged", trace.merged},
                                  {"visible", of(trace.visible)},
                                  {"limit", of(trace.limit)},
                                  {"rows", trace.rows}});
    }
    json["active"] = state.active;
    json["panel"] = state.panel;
    json["panes"] = state.panes;
    json["second"] = {
        {"panes", state.second}, {"width", state.second_desk.width}, {"height", state.second_desk.height}};
    json["appearance"] = state.appearance;
    json["zoom"] = state.zoom;
    json["window"] = {
        {"width", state.desk.width}, {"height", state.desk.height}, {"maximized", state.desk.maximized}};
    json["rail"] = state.rail;
    json["follow"] = state.follow;
    json["color_by"] = state.color_by;
    json["recent"] = state.recent;
    json["keys"] = state.keys;
    json["panels"] = state.panels;
    json["tables"] = Json::object();
    for (const auto& [id, table] : state.tables) {
        json["tables"][id] = {
            {"sorted_by", table.sorted_by}, {"descending", table.descending}, {"hidden", table.hidden}};
    }
    return traces::schema::dump_json(json, 1) + "\n";
}

SavedState parse_state(std::string_view text) {
    try {
        const Json json = traces::schema::parse_ordered_json(text, traces::schema::BadJson::throws);
        if (!json.is_object()) throw std::runtime_error("it is not a JSON object");
        SavedState state;
        if (const auto it = json.find("traces"); it != json.end()) {
            for (const Json& trace : *it) state.traces.push_back(trace_of(trace));
        }
        take(json, "active", state.active);
        take(json, "panel", state.panel);
        take(json, "panes", state.panes);
        if (const auto it = json.find("second"); it != json.end()) {
            take(*it, "panes", state.second);
            state.second_desk = desk_of(*it);
        }
        take(json, "appearance", state.appearance);
        take(json, "zoom", state.zoom);
        if (const auto it = json.find("window"); it != json.end()) state.desk = desk_of(*it);
        take(json, "rail", state.rail);
        take(json, "follow", state.follow);
        take(json, "color_by", state.color_by);
        take(json, "recent", state.recent);
        take(json, "keys", state.keys);
        take(json, "panels", state.panels);
        if (const auto it = json.find("tables"); it != json.end()) {
            if (!it->is_object()) throw std::runtime_error("\"tables\" is not a JSON object");
            for (const auto& [id, table] : it->items()) state.tables[id] = table_of(table);
        }
        return state;
    } catch (const nlohmann::json::exception& error) {
        throw std::runtime_error(error.what());
    }
}

std::string state_path() {
    // The specification requires ignoring a relative path in the variable.
    if (const char* folder = std::getenv("XDG_STATE_HOME"); folder != nullptr && folder[0] == '/')
        return std::string(folder) + "/shardscope/viewer.json";
    if (const char* home = std::getenv("HOME"); home != nullptr && home[0] == '/')
        return std::string(home) + "/.local/state/shardscope/viewer.json";
    return "";
}

std::optional<SavedState> read_state(const std::string& path, std::string& message) {
    std::error_code error;
    if (path.empty() || !fs::exists(path, error)) return std::nullopt;
    const auto bytes = fs::file_size(path, error);
    std::ifstream in(path, std::ios::binary);
    if (error || bytes > kMostBytes || !in) {
        message = fmt::format("{}: the saved state cannot be read and is ignored.", path);
        return std::nullopt;
    }
    const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    try {
        return parse_state(text);
    } catch (const std::exception& wrong) {
        message = fmt::format("{}: the saved state is damaged and is ignored ({}).", path, wrong.what());
        return std::nullopt;
    }
}

std::string write_state(const std::string& path, const SavedState& state) {
    const auto failed = [&](const std::string& why) {
        return fmt::format("{}: the state cannot be saved for next time ({}).", path, why);
    };
    if (path.empty()) return "";
    std::error_code error;
    fs::create_directories(fs::path(path).parent_path(), error);
    const std::string part = fmt::format("{}.{}.part", path, ::getpid());
    const int file = ::open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0) return failed(std::strerror(errno));
    const std::string text = to_json(state);
    std::size_t done = 0;
    while (done < text.size()) {
        const ssize_t wrote = ::write(file, text.data() + done, text.size() - done);
        if (wrote <= 0) break;
        done += static_cast<std::size_t>(wrote);
    }
    const bool whole = ::close(file) == 0 && done == text.size();
    if (whole) fs::rename(part, path, error);
    if (whole && !error) return "";
    const std::string why = whole ? error.message() : std::strerror(errno);
    std::error_code ignored;
    fs::remove(part, ignored);
    return failed(why);
}

SavedState state_of(const Program& program) {
    SavedState state;
    const auto full = [](const std::string& path) {
        std::error_code error;
        const fs::path absolute = fs::absolute(path, error);
        return error ? path : absolute.lexically_normal().string();
    };
    for (const model::OpenTrace& entry : program.session.open) {
        if (!entry.error.empty() || program.session.simulation.is_mine(entry.path) ||
            program.session.trials.is_mine(entry.path))
            continue;
        SavedTrace trace{full(entry.path), {}, {}, entry.limit, to_json(entry.rows)};
        for (const std::string& path : entry.merged) trace.merged.push_back(full(path));
        if (entry.trace) trace.visible = entry.visible;
        state.traces.push_back(std::move(trace));
    }
    if (const model::OpenTrace* entry = program.session.current()) state.active = full(entry->path);
    state.panel = program.shown().name();
    state.panes = program.panes.text();
    if (program.elsewhere) state.second = program.elsewhere->text();
    state.second_desk = program.second_desk;
    state.appearance = theme::appearance() == theme::Appearance::dark ? "dark" : "light";
    state.zoom = program.zoom;
    state.desk = program.desk;
    state.rail = name_of(kRails, program.rail);
    state.follow = program.session.follow;
    state.color_by = name_of(kColorings, program.session.color_by);
    for (const std::string& path : program.recent) state.recent.push_back(full(path));
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
    program.rail = value_of(kRails, state.rail);
    program.session.follow = state.follow;
    program.session.color_by = value_of(kColorings, state.color_by);
    program.recent = state.recent;
    program.keys = changed_keys(state.keys);
    program.arrange(state.panes);
    program.arrange_second(state.second);
    program.second_desk = state.second_desk;
    program.show(state.panel);
    tables::table_memory() = state.tables;
    for (const auto& panel : program.panels) {
        const auto saved = state.panels.find(std::string(panel->name()));
        if (saved != state.panels.end()) panel->restore(saved->second);
    }
    if (!files) return;
    for (const SavedTrace& trace : state.traces) {
        std::error_code ignored;
        if (!fs::exists(trace.path, ignored)) continue;
        if (trace.merged.empty()) {
            program.session.open_file(trace.path);
        } else {
            program.session.open_merged(trace.merged);
        }
        program.session.open.back().wanted_visible = trace.visible;
        program.session.open.back().wanted_limit = trace.limit;
        if (!trace.rows.empty()) program.session.open.back().rows = model::arrangement_from_json(trace.rows);
        if (trace.path == state.active) program.session.set_active(program.session.open.size() - 1);
    }
    program.show(state.panel);  // even if a file contains a plan only
}

}  // namespace shardscope::viewer::app
