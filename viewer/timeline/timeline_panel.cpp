// The timeline: ranks x streams and threads over time. This file connects the parts of the page and
// dispatches actions; the layout is arithmetic (time_view.h, rows.h, fold_lane.h), the mouse is gestures.h,
// the picture painter.h and overlays.h.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <imgui.h>

#include "traces/analysis/memory/memory.h"
#include "traces/lanes/counter_words.h"
#include "traces/schema/json_text.h"
#include "traces/store/columns/trace.h"
#include "viewer/draw/fold.h"
#include "viewer/draw/format.h"
#include "viewer/draw/items.h"
#include "viewer/draw/text.h"
#include "viewer/model/panel.h"
#include "viewer/model/result_rows.h"
#include "viewer/model/session.h"
#include "viewer/model/trace_waits.h"
#include "viewer/model/why_empty.h"
#include "viewer/theme/theme.h"
#include "viewer/timeline/columns_keeper.h"
#include "viewer/timeline/details.h"
#include "viewer/timeline/fold_lane.h"
#include "viewer/timeline/minimap.h"
#include "viewer/timeline/overlays.h"
#include "viewer/timeline/timeline_page.h"
#include "viewer/timeline/timeline_parts.h"
#include "viewer/widgets/toolbar.h"

namespace shardscope::viewer::timeline {
namespace {

// --- Names of what the timeline shows, for scripts (draw/items.h): rows, and bars whose text is read.
//
//     timeline.row.<key>                    the name of a group or row, by its key (arrangement.h):
//                                           "timeline.row.rank 0", "timeline.row.rank 0/stream 7"
//     timeline.event.<label>                the first bar in sight (by row, then time) with this label
//     timeline.event.<label>.<n>            the n-th, from 1

constexpr std::size_t kMostBars = 3000;

class Names {
  public:
    explicit Names(const TimelinePage& page) : p_(page) {}

    void row(const Row& row) {
        const float y0 = std::max(p_.y_of(row), p_.area.top());
        const float y1 = std::min(p_.y_of(row) + row.height, p_.area.max.y);
        if (row.kind == Row::Kind::lane && !row.first_of_track) return;
        const std::string& key = p_.key_of(row);
        const std::string& label = row.entry >= 0
                                       ? p_.layout().entries[static_cast<std::size_t>(row.entry)].label
                                       : p_.layout().groups[static_cast<std::size_t>(row.group)].label;
        std::string text = label;
        if (row.kind == Row::Kind::counter) {
            const CounterTrack& counter = p_.tracks->counters[static_cast<std::size_t>(row.track)];
            const std::string_view unit = traces::lanes::counter_words(p_.trace->strings[counter.name]).unit;
            text += ": max " + draw::format_amount(counter.most, unit);
        }
        draw::items::place("timeline.row." + key, {p_.area.min.x, y0}, {p_.area.left(), y1}, text);
    }

    void bars(const Row& row) {
        const FoldedRow* folded = p_.folded_rows.find(row.track, row.lane);
        if (folded == nullptr) return;
        const Lane& lane = p_.lane_of(row);
        const float y0 = std::max(p_.y_of(row), p_.area.top());
        const float y1 = std::min(p_.y_of(row) + row.height, p_.area.max.y);
        for (const Bar& bar : folded->lane.bars) {
            if (count_++ >= kMostBars) return;
            std::string label(
                p_.tracks->tracks[static_cast<std::size_t>(row.track)].name(row.lane, bar.item));
            if (label.empty()) label = bar_label(*p_.trace, lane.event(bar.item));
            const int n = ++seen_[label];
            const ImVec2 min{p_.area.left() + bar.x0, y0}, max{p_.area.left() + bar.x1, y1};
            if (n == 1) draw::items::place("timeline.event." + label, min, max, label);
            draw::items::place(fmt::format("timeline.event.{}.{}", label, n), min, max, label);
        }
    }

  private:
    const TimelinePage& p_;
    std::map<std::string, int> seen_;
    std::size_t count_ = 0;
};

// Does nothing unless names are kept.
void name_timeline_items(const model::OpenTrace& entry, const TimelinePage& page) {
    if (!draw::items::kept()) return;
    const TimelineArea& a = page.area;
    draw::items::place("timeline.ruler", {a.left(), a.min.y}, {a.max.x, a.top()});
    draw::items::place("timeline.rows", {a.left(), a.top()}, {a.max.x, a.max.y},
                       fmt::format("{} rows", page.layout().rows.size()));
    if (entry.trace == nullptr) return;
    Names names(page);
    for (const Row* row : page.rows_in_sight()) {
        names.row(*row);
        if (row->kind == Row::Kind::lane) names.bars(*row);
    }
}

}  // namespace

// --- Views of the one event under the mouse: the tooltip of an event or of a memory curve.

void event_tip(const traces::store::Trace& trace, model::SelectedEvent event, const Hit& hit) {
    const EventDetails details = describe(trace, event);
    draw::begin_tip(draw::shorten_middle(details.title, 80));
    if (hit.events > 1) {
        draw::tip_row("in this pixel", fmt::format("{} events, {} busy", draw::format_count(hit.events),
                                                   draw::format_percent(hit.busy * 100)));
    }
    for (const Detail& detail : details.rows)
        draw::tip_row(detail.label, draw::shorten_middle(detail.value, 60));
    draw::end_tip();
}

namespace {

void memory_tip(const std::vector<traces::analysis::MemoryPoint>& curve, std::int64_t time) {
    const traces::analysis::MemoryPoint* point = draw::point_at(curve, time);
    draw::begin_tip(
        fmt::format("Allocated at {} ms", draw::format_decimal(static_cast<double>(time) / 1e6, 3)));
    draw::tip_row("total", draw::format_size(point ? point->total : 0));
    for (std::size_t c = 0; point != nullptr && c < point->bytes.size(); ++c) {
        if (point->bytes[c] == 0) continue;
        draw::tip_row(draw::spaced(traces::schema::kMemoryCategoryNames[c]),
                      draw::format_size(point->bytes[c]),
                      theme::category_color(static_cast<traces::schema::MemoryCategory>(c)));
    }
    draw::end_tip();
}

// What a session keeps of the panel: a list of the text that is searched for, and which lists are shown.
constexpr const char* kHitsListed = "hits listed";
constexpr const char* kMarksListed = "marks listed";

constexpr int kMinimapSlices = 4096;

class TimelinePanel final : public model::Panel {
  public:
    std::string_view name() const override { return "timeline"; }
    bool busy() const override { return parts_.find.busy() || parts_.area.busy(); }

    std::string content(const model::Session&) const override {
        std::vector<std::string> content{parts_.find.text()};
        if (parts_.find.list) content.emplace_back(kHitsListed);
        if (on_ != nullptr && on_->marks_view.shown) content.emplace_back(kMarksListed);
        return content == std::vector<std::string>{""} ? "" : traces::schema::dump_strings(content);
    }
    void show_content(std::string_view content, model::Session& session) override {
        const auto shown = traces::schema::json_strings(content).value_or(std::vector<std::string>{});
        const auto lists = [&](const char* what) {
            return std::find(shown.begin(), shown.end(), what) != shown.end();
        };
        parts_.find.find(shown.empty() ? "" : shown.front());
        parts_.find.list = lists(kHitsListed);
        if (session.trace() != nullptr) on_page(session).marks_view.shown = lists(kMarksListed);
    }

    // The page of a reloaded trace's successor keeps the layout of the old one.
    void closed(const traces::store::Trace& trace, const model::TracePtr& successor) override {
        parts_.details.forget(trace);
        parts_.find.forget(trace);
        parts_.area.forget(trace, successor != nullptr);
        parts_.other.forget(trace, successor);
        const auto old = traces_.find(&trace);
        if (old == traces_.end()) return;
        if (successor != nullptr && traces_.count(successor.get()) == 0)
            traces_[successor.get()] = std::make_unique<TraceOnPage>(successor, std::move(*old->second));
        if (on_ == old->second.get()) on_ = nullptr;
        traces_.erase(old);
    }

    bool ready(model::Session& session, const model::TracePtr& successor) override {
        const auto tracks = tracks_of(session, successor);
        const bool minimap = minimap_of(session, successor) != nullptr;
        const auto waits = model::waits_of(session, successor);
        if (tracks == nullptr || !minimap || waits == nullptr) return false;
        if (paints_of(session, successor, tracks, waits) == nullptr) return false;
        KeptLayout layout;
        bool all = true;
        for (const RowGroup& group : layout.update(*successor, tracks, session.current()->rows, {}).groups) {
            if (group.collapsed) all = busy_of(session, successor, tracks, group) != nullptr && all;
        }
        return parts_.find.ready(session, successor, tracks) && all;
    }

    void draw(model::Session& session, const model::Frame& /*frame*/) override {
        on_ = &on_page(session);
        TimelinePage& page = on_->page;
        model::OpenTrace& entry = *session.current();
        page.history.see({entry.visible.from, entry.visible.to});
        page.tracks = tracks_of(session, page.trace);
        update_paints(session, page);
        const auto minimap = minimap_of(session, page.trace);
        if (page.has_windows()) page.summary = session.analyses.summary(page.trace);
        const std::string clicked =
            draw_timeline_toolbar(session, page, parts_.find,
                                  {parts_.gestures.measuring, on_->marks_view.shown, parts_.focus_filter,
                                   on_->marks.marks.all().size(), parts_.other});
        if (!clicked.empty()) act(clicked, session);
        if (page.tracks == nullptr) return widgets::draw_waiting(session, "the timeline");
        if (page.tracks->empty())
            return draw::note(
                model::why_empty(page.trace->samples.size() > 0 ? "timeline.samples" : "timeline"));
        page.update_links(session);
        follow_rank(session, page);
        parts_.find.mark_hits(page);
        page.marked_area = page.kept_area.update(entry.area, *page.trace, page.tracks);
        page.dragged_rows = page.kept_drag.update(page.dragged_area, *page.trace, page.tracks);
        choose_pane(session);
        Room room = share_out(session);
        lay_out(page, entry.rows, room);
        parts_.minimap.draw(entry, page, minimap.get(), on_->marks.marks, room.minimap_min, room.minimap_max);
        const int mark =
            mark_at({entry, page, on_->marks.marks, on_->marks_view.chosen()}, ImGui::GetIO().MousePos);
        parts_.gestures.handle(session, page, on_->marks.marks.edges(), mark >= 0);
        answer_mouse(session, page, mark);
        paint(session, page, room);
        parts_.other.draw(session, page, {room.min.x, room.bottom}, {room.main, room.other_bottom});
        const std::string chosen = parts_.row_menu.draw(session, page, parts_.gestures);
        if (!chosen.empty()) act(chosen, session);
        const bool has_event = session.selected.kind != model::EventKind::none;
        ImGui::SetCursorScreenPos({room.min.x, room.other_bottom});
        std::string wanted;
        if (parts_.area_in_front && page.marked_area != nullptr) {
            wanted = parts_.area.draw(session, page, {room.main - room.min.x, room.max.y - room.other_bottom},
                                      has_event);
        } else if (has_event) {
            wanted = parts_.details.draw(session, page, room.main - room.min.x);
        }
        if (!wanted.empty()) act(wanted, session);
        draw_side(session, page, room);
    }

    std::optional<model::TimeAxis> time_axis() const override { return axis_; }

    void act(std::string_view action, model::Session& session) override {
        if (on_ == nullptr || session.current() == nullptr || session.trace() != on_->page.trace) return;
        do_timeline_action(action, session, *on_, parts_);
    }

  private:
    std::shared_ptr<const Tracks> tracks_of(model::Session& session, const model::TracePtr& trace) {
        auto plain = session.analyses.get<Tracks>("timeline tracks", {trace},
                                                  [](const auto& t) { return make_tracks(*t.front()); });
        if (plain != nullptr && session.keep_columns) {
            if (std::string said = keeper_.keep(trace, plain); !said.empty())
                session.to_say = std::move(said);
        }
        const model::OpenTrace* entry = session.current();
        if (entry == nullptr || entry->result == nullptr || entry->result->trace.lock() != trace)
            return plain;
        const auto with = session.analyses.derived<Tracks>(
            fmt::format("timeline tracks with result {}", entry->result->number), {trace},
            [result = entry->result](const auto& t) { return make_tracks(*t.front(), result.get()); });
        return with != nullptr ? with : plain;
    }
    static std::shared_ptr<const Minimap> minimap_of(model::Session& session, const model::TracePtr& trace) {
        return session.analyses.get<Minimap>("timeline minimap", {trace}, [](const auto& t) {
            return make_minimap(*t.front(), kMinimapSlices);
        });
    }

    // --- the traces on the page ------------------------------------------------------------------------
    TraceOnPage& on_page(const model::Session& session) {
        const model::OpenTrace& entry = *session.current();
        auto& slot = traces_[entry.trace.get()];
        if (slot == nullptr) slot = std::make_unique<TraceOnPage>(entry.trace, entry.marks);
        return *slot;
    }

    // --- geometry --------------------------------------------------------------------------------------
    struct Room {
        ImVec2 min, max;         // the whole page below the toolbar
        float main = 0;          // right end of the timeline; the list, if any, is beyond it
        float bottom = 0;        // bottom of the timeline; the other run, if any, is below it
        float other_bottom = 0;  // the details are below it
        ImVec2 minimap_min, minimap_max;
    };

    bool has_list() const { return parts_.find.list || on_->marks_view.shown; }

    Room share_out(model::Session& session) const {
        const float font = ImGui::GetFontSize();
        Room room;
        const ImVec2 at = ImGui::GetCursorScreenPos(), size = ImGui::GetContentRegionAvail();
        room.min = {std::floor(at.x), std::floor(at.y)};
        room.max = {std::floor(at.x + size.x), std::floor(at.y + size.y)};
        room.main = room.max.x;
        if (has_list()) room.main -= std::floor(std::clamp(size.x * 0.45F, font * 17, font * 38));
        const bool details = session.selected.kind != model::EventKind::none;
        room.bottom = room.max.y - (parts_.area_in_front ? AreaView::height(size.y)
                                    : details            ? DetailsView::height()
                                                         : 0);
        room.bottom = std::max(room.bottom, room.min.y + MinimapView::height() + font * 8);
        room.other_bottom = room.bottom;
        if (parts_.other.chosen(session) != nullptr)
            room.bottom = std::floor((room.min.y + MinimapView::height() + room.bottom) / 2);
        return room;
    }

    // The pane of what changed last is in front: the marked area, or an event that the user chose.
    void choose_pane(const model::Session& session) {
        const std::optional<model::MarkedArea>& area = session.current()->area;
        if (area != std::exchange(seen_area_, area)) parts_.area_in_front = area.has_value();
        if (session.selected != std::exchange(seen_event_, session.selected) &&
            session.selected.kind != model::EventKind::none && session.selected != parts_.area.walked())
            parts_.area_in_front = false;
        if (!area) parts_.area_in_front = false;
        if (area && session.selected.kind == model::EventKind::none) parts_.area_in_front = true;
    }

    void lay_out(TimelinePage& page, model::RowArrangement& arrangement, Room& room) {
        const float font = ImGui::GetFontSize();
        const RowHeights heights = row_heights();
        page.rows = &page.kept.update(*page.trace, page.tracks, arrangement, heights);
        if (page.unfold_revealed(arrangement))
            page.rows = &page.kept.update(*page.trace, page.tracks, arrangement, heights);
        TimelineArea& area = page.area;
        const float height_before = area.height();
        area.names = std::round(font * 11);
        area.ruler = std::round(font * (page.has_windows()          ? 4.55F
                                        : page.trace->steps.empty() ? 1.65F
                                                                    : 3.1F));
        area.outer = room.main;
        area.min = {room.min.x, room.min.y + MinimapView::height() + 2};
        area.max = {room.main - scrollbar_width(), room.bottom};
        axis_ = {area.left(), area.max.x, ImGui::GetWindowPos().x, ImGui::GetWindowSize().x};
        room.minimap_min = {area.left(), room.min.y};
        room.minimap_max = {area.max.x, room.min.y + MinimapView::height()};
        if (page.scroll_to_rank.known()) {
            for (const Row& row : page.layout().rows) {
                if (row.kind == Row::Kind::group && row.rank == page.scroll_to_rank)
                    page.scroll = row.y - page.layout().pinned_height;
            }
            page.scroll_to_rank = {};
        }
        page.keep_in_sight(height_before);
        page.reveal_row();
        page.scroll = std::clamp(page.scroll, 0.0F, std::max(0.0F, page.layout().height - area.height()));
        area.scroll = std::floor(page.scroll);
    }

    // Scrolls to the rank when another one is chosen.
    void follow_rank(const model::Session& session, TimelinePage& page) {
        if (std::exchange(page.read_again, false)) page.shown_event = session.selected;
        // Also scrolls to an event that another panel has chosen.
        if (session.selected != std::exchange(page.shown_event, session.selected))
            page.reveal = session.selected;
        if (page.shown_rank == session.rank) return;
        if (page.shown_rank.known()) page.scroll_to_rank = session.rank;
        page.shown_rank = session.rank;
    }

    // --- mouse -----------------------------------------------------------------------------------------
    // `mark`: index of the one whose tag is under the mouse, -1 none.
    void answer_mouse(model::Session& session, TimelinePage& page, int mark) {
        model::OpenTrace& entry = *session.current();
        if (const Row* row = parts_.gestures.clicked_name(); row != nullptr && row->kind == Row::Kind::group)
            entry.rows.toggle_collapsed(page.key_of(*row));
        if (mark >= 0 && parts_.gestures.over_time()) {
            mark_tip(on_->marks.marks.all()[static_cast<std::size_t>(mark)]);
            if (ImGui::IsMouseClicked(ImGuiMouseButton_Left)) on_->marks_view.choose(on_->marks, mark);
            if (ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) {
                on_->marks_view.shown = true;
                on_->marks_view.choose(on_->marks, mark, true);
            }
            return;
        }
        if (page.hovered.kind != model::EventKind::none && parts_.gestures.hit()) {
            event_tip(*page.trace, page.hovered, *parts_.gestures.hit());
        } else if (parts_.gestures.over_time()) {
            tip_of_memory(entry, page);
            tip_of_counter(entry, page);
            tip_of_gap(entry, page);
        }
    }

    // The value of a counter at the mouse, with its extremes over the whole trace.
    static void tip_of_counter(const model::OpenTrace& entry, const TimelinePage& page) {
        const ImVec2 mouse = ImGui::GetIO().MousePos;
        const Row* row = mouse.y >= page.area.top() ? page.row_at(mouse.y) : nullptr;
        if (row == nullptr || row->kind != Row::Kind::counter) return;
        const CounterTrack& counter = page.tracks->counters[static_cast<std::size_t>(row->track)];
        const std::string_view name = page.trace->strings[counter.name];
        const traces::lanes::CounterWords words = traces::lanes::counter_words(name, counter.device);
        const std::int64_t time = page.time_at(entry, mouse.x);
        const auto after = std::partition_point(counter.points.begin(), counter.points.end(),
                                                [time](const auto& point) { return point.first <= time; });
        draw::begin_tip(draw::shorten_middle(words.label, 80));
        draw::tip_row("at", draw::format_decimal(static_cast<double>(time) / 1e6, 3) + " ms");
        draw::tip_row("value", after == counter.points.begin()
                                   ? std::string("not sampled yet")
                                   : draw::format_amount(std::prev(after)->second, words.unit));
        draw::tip_row("least", draw::format_amount(counter.least, words.unit));
        draw::tip_row("most", draw::format_amount(counter.most, words.unit));
        if (const std::string_view host = page.trace->strings[counter.host]; !host.empty())
            draw::tip_row("host", draw::shorten_middle(std::string(host), 60));
        draw::tip_row("name", draw::shorten_middle(std::string(name), 60));
        draw::end_tip();
    }

    // What the event after an idle time of a stream waited for.
    static void tip_of_gap(const model::OpenTrace& entry, TimelinePage& page) {
        const ImVec2 mouse = ImGui::GetIO().MousePos;
        const Row* row = mouse.y >= page.area.top() ? page.row_at(mouse.y) : nullptr;
        if (row == nullptr || row->kind != Row::Kind::lane || page.waits == nullptr) return;
        const std::int64_t time = page.time_at(entry, mouse.x);
        const auto event =
            event_after_gap(page.tracks->tracks[static_cast<std::size_t>(row->track)], row->lane, time);
        if (!event) return;
        const NamedGap& gap = page.gaps.before(*page.waits, *event);
        if (gap.parts.empty() || time < gap.parts.front().from) return;
        const auto ns = static_cast<double>(gap.parts.back().to - gap.parts.front().from);
        draw::begin_tip(fmt::format("Idle {}: waits for", draw::format_duration(ns)));
        for (std::size_t k = 0; k < gap.parts.size(); ++k) {
            draw::tip_row(draw::format_duration(static_cast<double>(gap.parts[k].length())),
                          draw::shorten_middle(gap.names[k], 80), theme::wait_color(gap.parts[k].what));
        }
        draw::end_tip();
    }

    static void mark_tip(const model::Mark& mark) {
        draw::begin_tip(mark.text);
        draw::tip_row(mark.is_range() ? "from" : "at", instant_text(mark.from));
        if (mark.is_range()) {
            draw::tip_row("to", instant_text(mark.to));
            draw::tip_row("length", draw::format_duration(static_cast<double>(mark.to - mark.from)));
        }
        draw::end_tip();
    }

    static void tip_of_memory(const model::OpenTrace& entry, const TimelinePage& page) {
        const ImVec2 mouse = ImGui::GetIO().MousePos;
        const Row* row = mouse.y >= page.area.top() ? page.row_at(mouse.y) : nullptr;
        if (row == nullptr || row->kind != Row::Kind::memory) return;
        if (const MemoryRow* memory = page.memory.find(row->rank))
            memory_tip(memory->curve->points, page.time_at(entry, mouse.x));
    }

    // --- picture ---------------------------------------------------------------------------------------
    void paint(model::Session& session, TimelinePage& page, const Room& room) {
        const OverlayScene scene{*session.current(), page, on_->marks.marks, on_->marks_view.chosen()};
        ImDrawList& draw = *ImGui::GetWindowDrawList();
        paint_timeline(draw, session, page, scene);
        paint_scrollbar(draw, page);
        const std::string length =
            draw::format_duration(static_cast<double>(page.whole().to - page.whole().from));
        // Of two runs, each has its name.
        const std::string whole =
            parts_.other.chosen(session) == nullptr
                ? "All " + length
                : draw::fit_text(session.current()->name, page.area.names - ImGui::GetFontSize());
        draw.AddText({room.min.x + ImGui::GetFontSize() * 0.5F,
                      std::floor(room.min.y + (MinimapView::height() - ImGui::GetFontSize()) / 2)},
                     theme::text_dim(), whole.c_str());
        name_timeline_items(*session.current(), page);
    }

    static float scrollbar_width() { return std::round(ImGui::GetFontSize() * 0.55F); }

    void paint_scrollbar(ImDrawList& draw, const TimelinePage& page) const {
        const TimelineArea& area = page.area;
        if (page.layout().height <= area.height() + 1) return;
        const float ratio = area.height() / page.layout().height;
        const float y = area.top() + area.scroll * ratio;
        draw.AddRectFilled({area.max.x + 1, y}, {area.outer - 1, y + area.height() * ratio},
                           parts_.gestures.dragging_scrollbar() ? theme::accent() : theme::hover(), 3);
    }

    void draw_side(model::Session& session, const TimelinePage& page, const Room& room) {
        if (!has_list()) return;
        const float gap = ImGui::GetFontSize() * 0.6F;
        ImGui::SetCursorScreenPos({room.main + gap, room.min.y});
        ImGui::BeginChild("side", {room.max.x - room.main - gap, room.max.y - room.min.y});
        if (on_->marks_view.shown) {
            draw::heading("Marks and ranges");
            const float height = parts_.find.list ? ImGui::GetContentRegionAvail().y / 2 : 0;
            ImGui::BeginChild("marks", {0, height});
            on_->marks_view.draw(session, page, on_->marks);
            ImGui::EndChild();
        }
        if (parts_.find.list) {
            draw::heading("Found events");
            parts_.find.draw_matches(session, on_->page);
        }
        ImGui::EndChild();
    }

    std::map<const traces::store::Trace*, std::unique_ptr<TraceOnPage>> traces_;
    TraceOnPage* on_ = nullptr;  // of the active trace
    TimelineParts parts_;
    ColumnsKeeper keeper_;
    std::optional<model::TimeAxis> axis_;
    std::optional<model::MarkedArea> seen_area_;  // of the last frame, as the selected event
    model::SelectedEvent seen_event_;
};

}  // namespace

std::unique_ptr<model::Panel> make_timeline_panel() {
    return std::make_unique<TimelinePanel>();
}

}  // namespace shardscope::viewer::timeline
