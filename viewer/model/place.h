// Where a user is: in a trace (its time, selection and rows) and in the viewer (panel, colours). What a
// session file, a saved view and a link hold. Plain data with their lists of fields (fields.h). Times in
// nanoseconds since the start of the capture. Any thread. No Dear ImGui.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "traces/store/columns/event_columns.h"
#include "viewer/model/arrangement.h"

namespace shardscope::viewer::model {

template <class T, class Struct>
concept IsOrIsConst = std::same_as<std::remove_const_t<T>, Struct>;

struct TimeRange {  // half-open
    std::int64_t from = 0, to = 0;
    std::int64_t length() const { return to - from; }
    bool operator==(const TimeRange&) const = default;
};

// A part of the timeline whose events are summed up: rows x time, or all events of one name.
struct MarkedArea {
    TimeRange time;
    std::vector<std::string> rows;  // keys of rows or of groups (arrangement.h); empty: all
    std::string name;               // only events of this name; empty: all
    bool operator==(const MarkedArea&) const = default;
};

// What the timeline's bars are coloured by.
enum class ColorBy { kind, name, module, unit, cause };
constexpr std::array<std::string_view, 5> names(ColorBy) {
    return {"kind", "name", "module", "unit", "cause"};
}

using EventKind = traces::store::EventKind;
constexpr std::array<std::string_view, 6> names(EventKind) {
    return {"none", "device", "range", "runtime", "wait", "mark"};
}

// An event by what stays the same when its trace is read again, and on another machine (same_event.h).
struct EventPlace {
    EventKind kind = EventKind::none;
    std::int64_t start = 0;
    std::string name;         // empty for a kind without names
    int rank = -1;            // its number; -1 unknown
    std::int64_t detail = 0;  // the device kind, the depth of a range, or the correlation of a call
    bool operator==(const EventPlace&) const = default;
};

// Numbers of ranks, ids of modules and units: stable across openings of a trace.
struct Place {
    std::optional<TimeRange> visible, limit, lit;
    std::optional<std::int64_t> cursor;
    std::optional<MarkedArea> area;
    RowArrangement rows;
    std::optional<int> rank;
    EventPlace selected;
    std::optional<int> module, unit;
    bool operator==(const Place&) const = default;
};

// What is shown of one trace.
struct View {
    std::string panel;
    ColorBy color_by = ColorBy::kind;
    std::string content;  // of the panel: Panel::content()
    Place place;
    bool operator==(const View&) const = default;
};

template <IsOrIsConst<MarkedArea> T, class Visit>
void fields(T& value, Visit&& visit) {
    auto& [time, rows, name] = value;
    visit("time", time);
    visit("rows", rows);
    visit("name", name);
}
template <IsOrIsConst<RowArrangement> T, class Visit>
void fields(T& value, Visit&& visit) {
    auto& [grouping, collapsed, hidden, pinned, order, filter] = value;
    visit("grouping", grouping);
    visit("collapsed", collapsed);
    visit("hidden", hidden);
    visit("pinned", pinned);
    visit("order", order);
    visit("filter", filter);
}
template <IsOrIsConst<EventPlace> T, class Visit>
void fields(T& value, Visit&& visit) {
    auto& [kind, start, name, rank, detail] = value;
    visit("kind", kind);
    visit("start_ns", start);
    visit("name", name);
    visit("rank", rank);
    visit("detail", detail);
}
template <IsOrIsConst<Place> T, class Visit>
void fields(T& value, Visit&& visit) {
    auto& [visible, limit, lit, cursor, area, rows, rank, selected, module, unit] = value;
    visit("visible", visible);
    visit("limit", limit);
    visit("lit", lit);
    visit("cursor_ns", cursor);
    visit("area", area);
    visit("rows", rows);
    visit("rank", rank);
    visit("selected", selected);
    visit("module", module);
    visit("unit", unit);
}
template <IsOrIsConst<View> T, class Visit>
void fields(T& value, Visit&& visit) {
    auto& [panel, color_by, content, place] = value;
    visit("panel", panel);
    visit("color_by", color_by);
    visit("content", content);
    visit("place", place);
}

// Whether a view can show it.
bool is_valid(const TimeRange& range);
inline bool is_valid(const MarkedArea& area) {
    return is_valid(area.time);
}

}  // namespace shardscope::viewer::model
