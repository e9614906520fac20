// See go_to_place.h.
#include "viewer/model/go_to_place.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/core.h>

#include "viewer/draw/format.h"
#include "viewer/model/same_event.h"
#include "viewer/model/time_view.h"

namespace shardscope::viewer::model {
namespace {

bool has_module(const traces::store::Trace& trace, int id) {
    return std::any_of(trace.modules.begin(), trace.modules.end(),
                       [id](const auto& m) { return m.id == id; });
}

}  // namespace

Place place_of(const Session& session, std::size_t index) {
    const OpenTrace& entry = session.open[index];
    if (entry.trace == nullptr) return entry.wanted ? entry.wanted->place : Place{.rows = entry.rows};
    Place place{.visible = entry.visible,
                .limit = entry.limit,
                .lit = entry.lit,
                .cursor = entry.cursor,
                .area = entry.area,
                .rows = entry.rows};
    if (index != session.active) return place;
    const traces::store::Trace& trace = *entry.trace;
    if (session.rank.at() < trace.ranks.size()) place.rank = trace.ranks[session.rank.at()].number;
    place.selected = place_of(trace, session.selected);
    if (session.selected_module >= 0) place.module = session.selected_module;
    if (session.selected_unit.known()) place.unit = trace.units[session.selected_unit.at()].id;
    return place;
}

std::vector<std::string> go_to_place(Session& session, std::size_t index, const Place& place) {
    OpenTrace& entry = session.open[index];
    const traces::store::Trace& trace = *entry.trace;
    std::vector<std::string> gone;
    const TimeRange whole = Session::whole(trace);
    const auto shows = [&](const TimeRange& range) { return range.from < whole.to && range.to > whole.from; };
    entry.visible = whole;
    if (place.visible && shows(*place.visible)) {
        entry.visible = *place.visible;
    } else if (place.visible) {
        gone.emplace_back("the visible time");
    }
    entry.limit = place.limit && shows(*place.limit) ? place.limit : std::nullopt;
    if (place.limit && !entry.limit) gone.emplace_back("the time filter");
    entry.lit = place.lit;
    entry.cursor = place.cursor && is_viewable(*place.cursor) ? place.cursor : std::nullopt;
    entry.area = place.area;
    entry.rows = place.rows;
    if (index != session.active) return gone;
    if (place.rank && !session.choose_rank(*place.rank)) gone.push_back(fmt::format("rank {}", *place.rank));
    session.selected = event_at(trace, place.selected);
    if (place.selected.kind != EventKind::none && session.selected.kind == EventKind::none)
        gone.push_back(fmt::format("the event \"{}\" at {}", draw::shorten_middle(place.selected.name, 60),
                                   draw::format_duration(static_cast<double>(place.selected.start))));
    session.selected_module = place.module && has_module(trace, *place.module) ? *place.module : -1;
    if (place.module && session.selected_module < 0) gone.push_back(fmt::format("module {}", *place.module));
    session.selected_unit = place.unit ? trace.unit_of_id(*place.unit) : traces::store::UnitIndex();
    if (place.unit && !session.selected_unit.known()) gone.push_back(fmt::format("unit {}", *place.unit));
    return gone;
}

void take_wanted(Session& session, std::size_t index) {
    OpenTrace& entry = session.open[index];
    const SavedTrace wanted = *std::exchange(entry.wanted, std::nullopt);
    std::vector<std::string> gone = go_to_place(session, index, wanted.place);
    for (const std::string& name : entry.marks->add(wanted.marks, wanted.views))
        gone.push_back(fmt::format("a free key for the view \"{}\"", draw::shorten_middle(name, 60)));
    const TraceIdentity now = identity_of(*entry.trace);
    const bool changed = wanted.identity && *wanted.identity != now;
    if (!changed && gone.empty()) return;
    entry.notice = entry.name;
    if (changed) {
        const bool same_run = wanted.identity->run == now.run;
        const auto events = [](std::int64_t count) { return draw::format_count(count); };
        entry.notice += same_run
                            ? fmt::format(" has changed since the session was saved: {} events then, {} now",
                                          events(wanted.identity->events), events(now.events))
                            : " is another trace than the one that the session was saved with";
    }
    if (!gone.empty()) entry.notice += fmt::format("{} lacks {}", changed ? ", and it" : "", some_of(gone));
    entry.notice += ".";
}

}  // namespace shardscope::viewer::model
