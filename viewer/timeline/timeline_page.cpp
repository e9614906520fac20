// See timeline_page.h.
#include "viewer/timeline/timeline_page.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "viewer/model/trace_waits.h"
#include "viewer/timeline/details.h"

namespace shardscope::viewer::timeline {
namespace {

model::TimeSpan span_of(const model::OpenTrace& entry) {
    return {entry.visible.from, entry.visible.to};
}

}  // namespace

TimelinePage::TimelinePage(model::TracePtr opened) : trace(std::move(opened)) {}

model::TimeSpan TimelinePage::whole() const {
    return {trace->first_ns, std::max(trace->last_ns, trace->first_ns + 1)};
}

model::TimeView TimelinePage::view(const model::OpenTrace& entry) const {
    return {entry.visible.from, std::max(entry.visible.to, entry.visible.from + 1),
            std::max(1.0, static_cast<double>(std::floor(area.width())))};
}

float TimelinePage::y_of(const Row& row) const {
    return std::floor(area.top() + layout().on_screen(row, area.scroll));
}

const Lane& TimelinePage::lane_of(const Row& row) const {
    return tracks->tracks[static_cast<std::size_t>(row.track)].lanes[static_cast<std::size_t>(row.lane)];
}

const std::string& TimelinePage::key_of(const Row& row) const {
    return row.entry >= 0 ? layout().entries[static_cast<std::size_t>(row.entry)].key
                          : layout().groups[static_cast<std::size_t>(row.group)].key;
}

const Row* TimelinePage::row_of(model::SelectedEvent event) const {
    if (tracks == nullptr || rows == nullptr || event.kind == model::EventKind::none) return nullptr;
    const auto place = find_event(*trace, *tracks, event);
    return place ? layout().of_lane(place->track, place->lane) : nullptr;
}

std::optional<TimelinePage::Box> TimelinePage::box_of(const model::TimeView& view,
                                                      model::SelectedEvent event) const {
    const Row* row = row_of(event);
    if (row == nullptr) return std::nullopt;
    const EventTime time = time_of(*trace, event);
    const float x0 = x_of(view, time.start), y = y_of(*row);
    return Box{x0, std::max(x0 + 2, x_of(view, time.end)), y + 1, y + row->height - 1};
}

void TimelinePage::zoom(model::OpenTrace& entry, std::int64_t anchor, double factor) const {
    show(entry, zoomed(span_of(entry), whole(), anchor, factor));
}

void TimelinePage::pan_pixels(model::OpenTrace& entry, double pixels) const {
    show(entry, panned(span_of(entry), whole(), std::llround(pixels * view(entry).ns_per_pixel())));
}

void TimelinePage::bring_into_sight(model::OpenTrace& entry, model::SelectedEvent event) {
    const EventTime time = time_of(*trace, event);
    if (time.start < entry.visible.from || time.end > entry.visible.to) {
        const std::int64_t length = time.end - time.start;
        // A long event is framed; a short one moves to the middle at the current zoom.
        if (length > entry.visible.length()) {
            show(entry, framed({time.start, time.end}, whole()));
        } else {
            const std::int64_t middle = time.start + length / 2;
            const std::int64_t now = entry.visible.from + entry.visible.length() / 2;
            show(entry, panned(span_of(entry), whole(), middle - now));
        }
    }
    reveal = event;  // shows its row after the layout: the details may take room
}

void TimelinePage::show_closely(model::OpenTrace& entry, model::SelectedEvent event) const {
    constexpr double kSeen = 6;          // pixels
    constexpr std::int64_t kAround = 6;  // of its lengths, on each side
    const EventTime time = time_of(*trace, event);
    const std::int64_t length = std::max(time.end - time.start, model::kShortestView);
    if (static_cast<double>(length) >= kSeen * view(entry).ns_per_pixel()) return;
    show(entry, framed({time.start - kAround * length, time.end + kAround * length}, whole()));
}

bool TimelinePage::unfold_revealed(model::RowArrangement& arrangement) const {
    if (!reveal || reveal->kind == model::EventKind::none) return false;
    const auto place = find_event(*trace, *tracks, *reveal);
    if (!place || layout().of_lane(place->track, place->lane) != nullptr) return false;
    show_track(arrangement, *trace, *tracks, place->track);
    return true;
}

void TimelinePage::keep_in_sight(float height_before) {
    const Row* row = area.height() < height_before ? row_of(shown_event) : nullptr;
    if (row != nullptr && row->y + row->height <= scroll + height_before) reveal = shown_event;
}

void TimelinePage::reveal_row() {
    const Row* row = reveal ? row_of(*reveal) : nullptr;
    reveal.reset();
    if (row == nullptr || row->pinned) return;
    const float top = row->y - layout().pinned_height;  // of the scrolling part
    if (top < scroll) scroll = top - row->height;
    if (row->y + row->height > scroll + area.height()) scroll = row->y + row->height * 2 - area.height();
}

void TimelinePage::select(model::Session& session, model::SelectedEvent event) const {
    session.selected = event;
    session.selected_module = event.kind == model::EventKind::none ? -1 : module_of(*trace, event);
}

void TimelinePage::go_to(model::Session& session, model::SelectedEvent event) {
    if (event.kind == model::EventKind::none || session.current() == nullptr) return;
    select(session, event);
    bring_into_sight(*session.current(), event);
}

void TimelinePage::update_links(model::Session& session) {
    const auto collectives = session.analyses.get<CollectiveIndex>(
        "timeline collectives", {trace}, [](const auto& t) { return index_collectives(*t.front()); });
    const auto all_waits = model::waits_of(session, trace);
    if (links.of == session.selected && collectives == links_from && all_waits == waits) return;
    links_from = collectives;
    waits = all_waits;
    links = find_links(*trace, session.selected, collectives.get(), waits ? &waits->finder : nullptr);
}

}  // namespace shardscope::viewer::timeline
