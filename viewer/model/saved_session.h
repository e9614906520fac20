// A session as text: the open traces with the places in them, the panel and what panels show. A session file
// is this and a version; the viewer's saved state (app/saved_state.h) contains it too. Pure; any thread. No
// Dear ImGui.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "viewer/model/identity.h"
#include "viewer/model/marks.h"
#include "viewer/model/place.h"

namespace shardscope::viewer::model {

struct SavedTrace {
    std::string path;                       // in a session file: relative to the file's folder
    std::vector<std::string> merged;        // all files of a trace that is merged from several
    std::optional<TraceIdentity> identity;  // of the trace when the session was saved
    Place place;
    std::vector<Mark> marks;
    std::vector<SavedView> views;
    bool operator==(const SavedTrace&) const = default;
};

struct SavedSession {
    std::vector<SavedTrace> traces;
    std::string active;         // path of the active trace
    std::string panel;          // the one with the keyboard
    std::string panes, second;  // how the windows are divided (app/panes.h); second empty: there is none
    ColorBy color_by = ColorBy::kind;
    std::map<std::string, std::string> contents;  // by panel: Panel::content()
    bool operator==(const SavedSession&) const = default;
};

template <IsOrIsConst<SavedTrace> T, class Visit>
void fields(T& value, Visit&& visit) {
    auto& [path, merged, identity, place, marks, views] = value;
    visit("path", path);
    visit("merged", merged);
    visit("identity", identity);
    visit("place", place);
    visit("marks", marks);
    visit("views", views);
}
inline bool is_valid(const SavedTrace& trace) {
    return !trace.path.empty();
}
template <IsOrIsConst<SavedSession> T, class Visit>
void fields(T& value, Visit&& visit) {
    auto& [traces, active, panel, panes, second, color_by, contents] = value;
    visit("traces", traces);
    visit("active", active);
    visit("panel", panel);
    visit("panes", panes);
    visit("second", second);
    visit("color_by", color_by);
    visit("contents", contents);
}

std::string session_text(const SavedSession& session);

struct ReadSession {
    SavedSession session;
    std::vector<std::string> left_out;  // places of values that cannot be read: "traces[1].place.limit"
};
// Throws std::runtime_error with the reason as the end of a sentence if the text is not a session of this
// version.
ReadSession parse_session(std::string_view text);

// "a", "a and b", "a, b and 5 more": the first few of a list.
std::string some_of(const std::vector<std::string>& list);

}  // namespace shardscope::viewer::model
