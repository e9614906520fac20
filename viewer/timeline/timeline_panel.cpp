// The timeline: ranks x streams and threads over time, with pan, zoom, tooltips, selection and a limit range.
// Here are the mouse and the state of the page; what is where is arithmetic, painting is painter.h.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <imgui.h>

#include "viewer/app/session.h"
#include "viewer/app/theme.h"
#include "viewer/draw/format.h"
#include "viewer/draw/text.h"
#include "viewer/panels/panel.h"
#include "viewer/panels/toolbar.h"
#include "viewer/timeline/details.h"
#include "viewer/timeline/event_views.h"
#include "viewer/timeline/folded_rows.h"
#include "viewer/timeline/painter.h"
#include "viewer/timeline/rows.h"
#include "viewer/timeline/tracks.h"

namespace shardscope::viewer {
namespace {

TimeSpan whole_of(const traces::Trace& trace) {
    return {trace.first_ns, std::max(trace.last_ns, trace.first_ns + 1)};
}

// Other ranks' parts of the collective that an event is.
std::vector<SelectedEvent> counterparts(const traces::Trace& trace, SelectedEvent event) {
    std::vector<SelectedEvent> found;
    if (event.kind != EventKind::device) return found;
    const std::int32_t mine = trace.device.collective[static_cast<std::size_t>(event.index)];
    const traces::Collectives& c = trace.collectives;
    if (mine < 0 || static_cast<std::size_t>(mine) >= c.size()) return found;
    const auto m = static_cast<std::size_t>(mine);
    for (std::size_t i = 0; i < c.size(); ++i) {
        if (i != m && c.event[i] >= 0 && c.group[i] == c.group[m] && c.operation[i] == c.operation[m] &&
            c.sequence[i] == c.sequence[m] && c.rank[i] != c.rank[m]) {
            found.push_back({EventKind::device, c.event[i]});
        }
    }
    return found;
}

class TimelinePanel final : public Panel {
  public:
    std::string_view name() const override { return "timeline"; }
    std::string_view title() const override { return "Timeline"; }

    void draw(Session& session, const Frame& frame) override {
        const TracePtr trace = session.trace();
        tracks_ = session.analyses.get<Tracks>("timeline tracks", {trace},
                                               [](const auto& t) { return make_tracks(*t.front()); });
        if (trace_ != trace) start_over(trace);
        draw_toolbar(session);
        if (tracks_ == nullptr) return draw_waiting(session, "the timeline");
        if (tracks_->tracks.empty()) return note("This trace holds no events with a duration.");

        const float font = ImGui::GetFontSize();
        if (session.rank != shown_rank_) {
            if (shown_rank_ >= 0) scroll_to_rank_ = session.rank;
            shown_rank_ = session.rank;
        }
        const bool details = session.selected.kind != EventKind::none;
        const float details_height = details ? event_fields_height() : 0;
        layout_ = layout_rows(*trace, *tracks_, tracks_->has_memory, folded_,
                              {font * 1.5F, font * 2.8F, std::round(font * 1.35F), std::round(font * 0.3F)});
        place(ImGui::GetContentRegionAvail(), details_height);
        handle_mouse(session, *trace, frame);
        update_memory(session, *trace);
        paint(session, *trace);
        ImGui::SetCursorScreenPos({area_.min.x, area_.max.y});
        if (details) draw_event_fields(*trace, session.selected, area_.max.x);
    }

    void act(std::string_view action, Session& session) override {
        if (action == "scroll_up") scroll_ -= ImGui::GetFontSize() * 6;
        if (action == "scroll_down") scroll_ += ImGui::GetFontSize() * 6;
        if (action == "next_event") step_selection(session, 1);
        if (action == "previous_event") step_selection(session, -1);
        if (action == "fold_ranks" && trace_) {
            const bool fold = folded_.empty();
            folded_.clear();
            for (int r = 0; fold && r < static_cast<int>(trace_->ranks.size()); ++r) folded_.insert(r);
        }
    }

  private:
    void start_over(const TracePtr& trace) {
        trace_ = trace;
        legend_ = make_legend(*trace);
        folded_.clear();
        folded_rows_.clear();
        memory_.clear();
        scroll_ = 0;
        shown_rank_ = -1;
        hovered_ = {};
        links_of_ = {};
        related_.clear();
        launched_.clear();
    }

    // --- toolbar ---------------------------------------------------------------------------------------
    void draw_toolbar(Session& session) {
        draw_choosers(session);
        ImGui::AlignTextToFramePadding();
        const float right = ImGui::GetCursorScreenPos().x + ImGui::GetContentRegionAvail().x;
        legend(legend_);
        const OpenTrace& entry = *session.current();
        std::string shown = "shows " + format_duration(static_cast<double>(entry.visible.length()));
        if (entry.limit) {
            shown =
                fmt::format("limit range {}, ", format_duration(static_cast<double>(entry.limit->length()))) +
                shown;
        }
        const float width = ImGui::CalcTextSize(shown.c_str()).x;
        if (ImGui::GetItemRectMax().x + width + ImGui::GetFontSize() * 2 < right) {
            ImGui::SameLine();
            ImGui::SetCursorScreenPos({right - width, ImGui::GetCursorScreenPos().y});
            ImGui::PushStyleColor(ImGuiCol_Text, theme::text_dim());
            text(shown);
            ImGui::PopStyleColor();
        }
    }

    // Only kinds that the trace has.
    static std::vector<LegendItem> make_legend(const traces::Trace& trace) {
        std::array<bool, traces::kDeviceKinds> kinds{};
        for (const traces::DeviceKind kind : trace.device.kind) kinds[static_cast<std::size_t>(kind)] = true;
        std::array<bool, kRangeKinds> ranges{};
        for (const traces::RangeKind kind : trace.ranges.kind) ranges[static_cast<std::size_t>(kind)] = true;
        static constexpr std::array<const char*, kRangeKinds> kNames = {
            "range", "module", "backward", "step", "DataLoader", "NCCL call", "function"};
        std::vector<LegendItem> items;
        for (std::size_t k = 0; k < kinds.size(); ++k) {
            if (!kinds[k]) continue;
            items.push_back(
                {std::string(traces::kDeviceKindNames[k]), kind_color(static_cast<traces::DeviceKind>(k))});
        }
        for (std::size_t k = 0; k < ranges.size(); ++k) {
            if (ranges[k]) items.push_back({kNames[k], range_color(static_cast<traces::RangeKind>(k))});
        }
        if (trace.runtime.size() > 0) items.push_back({"runtime call", runtime_color()});
        return items;
    }

    // --- geometry --------------------------------------------------------------------------------------
    void place(ImVec2 available, float details_height) {
        const float font = ImGui::GetFontSize();
        area_.min = ImGui::GetCursorScreenPos();
        area_.min = {std::floor(area_.min.x), std::floor(area_.min.y)};
        area_.max = {std::floor(area_.min.x + available.x - scrollbar_width()),
                     std::floor(area_.min.y + std::max(available.y - details_height, font * 8))};
        area_.names = std::round(font * 11);
        area_.ruler = std::round(font * 3.1F);
        if (scroll_to_rank_) {
            for (const Row& row : layout_.rows) {
                if (row.kind == Row::Kind::rank && row.rank == *scroll_to_rank_) scroll_ = row.y;
            }
            scroll_to_rank_.reset();
        }
        scroll_ = std::clamp(scroll_, 0.0F, std::max(0.0F, layout_.height - area_.height()));
        area_.scroll = std::floor(scroll_);
    }

    TimeView view_of(const OpenTrace& entry) const {
        return {entry.visible.from, std::max(entry.visible.to, entry.visible.from + 1),
                std::max(1.0, static_cast<double>(std::floor(area_.width())))};
    }

    // --- mouse -----------------------------------------------------------------------------------------
    enum class Drag { none, pan, limit, scroll };

    void handle_mouse(Session& session, const traces::Trace& trace, const Frame& frame) {
        hovered_ = {};
        ImGui::InvisibleButton("timeline",
                               {area_.max.x + scrollbar_width() - area_.min.x, area_.max.y - area_.min.y});
        if (frame.headless) return;
        const ImGuiIO& io = ImGui::GetIO();
        OpenTrace& entry = *session.current();
        const bool over = ImGui::IsItemHovered();
        const ImVec2 mouse = io.MousePos;
        const bool in_names = mouse.x < area_.left(), in_ruler = mouse.y < area_.top();
        const bool in_bar = has_scrollbar() && mouse.x >= area_.max.x;
        if (over && io.MouseWheel != 0) turn_wheel(entry, trace, mouse, in_names || io.KeyShift);
        if (over && io.MouseWheelH != 0) pan(entry, trace, -io.MouseWheelH * 60);

        if (over && ImGui::IsMouseClicked(ImGuiMouseButton_Left)) {
            moved_ = false;
            drag_ = in_bar                    ? Drag::scroll
                    : in_names                ? Drag::none
                    : in_ruler || io.KeyShift ? Drag::limit
                                              : Drag::pan;
            drag_from_ = view_of(entry).time(static_cast<double>(mouse.x - area_.left()));
            pressed_in_names_ = in_names;
        }
        if (ImGui::IsItemActive()) go_on_dragging(entry, trace, mouse, io.MouseDelta);
        if (over && drag_ != Drag::limit && !in_ruler && !in_bar) hover(session, trace, mouse, in_names);
        if (ImGui::IsItemDeactivated()) {
            if (!moved_ && over && !in_ruler && !in_bar) click(session, mouse);
            drag_ = Drag::none;
        }
        if (over && ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left) && hovered_.kind != EventKind::none) {
            const EventTime time = time_of(trace, hovered_);
            show(entry, framed({time.start, time.end}, whole_of(trace)));
        }
    }

    static void show(OpenTrace& entry, TimeSpan span) { entry.visible = {span.from, span.to}; }

    void turn_wheel(OpenTrace& entry, const traces::Trace& trace, ImVec2 mouse, bool vertical) {
        const float turns = ImGui::GetIO().MouseWheel;
        if (vertical) {
            scroll_ -= turns * ImGui::GetFontSize() * 4;
            return;
        }
        const std::int64_t anchor = view_of(entry).time(static_cast<double>(mouse.x - area_.left()));
        show(entry, zoomed({entry.visible.from, entry.visible.to}, whole_of(trace), anchor,
                           std::pow(0.8, static_cast<double>(turns))));
    }

    void pan(OpenTrace& entry, const traces::Trace& trace, float pixels) {
        const double ns = static_cast<double>(pixels) * view_of(entry).ns_per_pixel();
        show(entry, panned({entry.visible.from, entry.visible.to}, whole_of(trace), std::llround(ns)));
    }

    void go_on_dragging(OpenTrace& entry, const traces::Trace& trace, ImVec2 mouse, ImVec2 delta) {
        if (ImGui::IsMouseDragging(ImGuiMouseButton_Left, 4)) moved_ = true;
        if (!moved_) return;
        if (drag_ == Drag::pan) {
            pan(entry, trace, -delta.x);
            scroll_ -= delta.y;
        } else if (drag_ == Drag::scroll) {
            scroll_ += delta.y * layout_.height / std::max(1.0F, area_.height());
        } else if (drag_ == Drag::limit) {
            const double x = std::clamp(static_cast<double>(mouse.x - area_.left()), 0.0,
                                        static_cast<double>(area_.width()));
            const std::int64_t to = view_of(entry).time(x);
            entry.limit = TimeRange{std::min(drag_from_, to), std::max(drag_from_, to) + 1};
        }
    }

    void hover(Session& session, const traces::Trace& trace, ImVec2 mouse, bool in_names) {
        const Row* row = layout_.at(mouse.y - area_.top() + area_.scroll);
        if (row == nullptr || in_names) return;
        const TimeView view = view_of(*session.current());
        const double x = static_cast<double>(mouse.x - area_.left());
        if (row->kind == Row::Kind::memory) {
            const auto memory = memory_.find(row->rank);
            if (memory != memory_.end()) memory_tip(*memory->second.points, view.time(x));
            return;
        }
        if (row->kind != Row::Kind::lane) return;
        const FoldedRow* folded = folded_rows_.find(row->track, row->lane);
        if (folded == nullptr) return;
        const Lane& lane = lane_of(*row);
        const auto hit = hit_lane(lane, folded->lane, view, x);
        if (!hit) return;
        hovered_ = lane.event(hit->item);
        event_tip(trace, hovered_, *hit);
    }

    const Lane& lane_of(const Row& row) const {
        return tracks_->tracks[static_cast<std::size_t>(row.track)].lanes[static_cast<std::size_t>(row.lane)];
    }

    void click(Session& session, ImVec2 mouse) {
        const Row* row = layout_.at(mouse.y - area_.top() + area_.scroll);
        if (row != nullptr && row->kind == Row::Kind::rank) {
            if (!folded_.erase(row->rank)) folded_.insert(row->rank);
            return;
        }
        if (!pressed_in_names_) select(session, hovered_);
    }

    void select(Session& session, SelectedEvent event) {
        session.selected = event;
        session.selected_module = event.kind == EventKind::none ? -1 : module_of(*trace_, event);
    }

    void step_selection(Session& session, int by) {
        if (!trace_ || !tracks_) return;
        const auto place = find_event(*trace_, *tracks_, session.selected);
        if (!place) return;
        const Lane& lane = tracks_->tracks[static_cast<std::size_t>(place->track)]
                               .lanes[static_cast<std::size_t>(place->lane)];
        if ((by < 0 && place->item == 0) || (by > 0 && place->item + 1 >= lane.size())) return;
        select(session, lane.event(by < 0 ? place->item - 1 : place->item + 1));
        const EventTime time = time_of(*trace_, session.selected);
        OpenTrace& entry = *session.current();
        if (time.start < entry.visible.from || time.end > entry.visible.to) {
            const std::int64_t middle = time.start + (time.end - time.start) / 2;
            const std::int64_t now = entry.visible.from + entry.visible.length() / 2;
            show(entry, panned({entry.visible.from, entry.visible.to}, whole_of(*trace_), middle - now));
        }
    }

    // --- picture ---------------------------------------------------------------------------------------
    void update_memory(Session& session, const traces::Trace& trace) {
        const TimeView view = view_of(*session.current());
        const bool moved = !(memory_range_ == TimeRange{view.from, view.to}) || memory_width_ != view.width;
        memory_range_ = {view.from, view.to};
        memory_width_ = view.width;
        const auto span = layout_.between(area_.scroll, area_.scroll + area_.height());
        for (std::size_t i = span.first; i < span.last; ++i) {
            const Row& row = layout_.rows[i];
            if (row.kind != Row::Kind::memory) continue;
            const auto points = session.analyses.curve(trace_, row.rank);
            if (points == nullptr) continue;
            MemoryRow& memory = memory_[row.rank];
            if (memory.points != points) {
                memory.points = points;
                memory.most = 0;
                for (const traces::MemoryPoint& point : *points)
                    memory.most = std::max(memory.most, point.total);
                memory.columns.clear();
            }
            if (moved || memory.columns.empty()) {
                memory.columns = fold_curve(*points, view.from, view.to, static_cast<int>(view.width));
                clear_outside(memory.columns, view, trace);
            }
        }
        if (moved) std::erase_if(memory_, [&](const auto& m) { return !is_shown(m.first, span); });
    }

    bool is_shown(int rank, RowLayout::Span span) const {
        return std::any_of(layout_.rows.begin() + static_cast<std::ptrdiff_t>(span.first),
                           layout_.rows.begin() + static_cast<std::ptrdiff_t>(span.last),
                           [rank](const Row& r) { return r.kind == Row::Kind::memory && r.rank == rank; });
    }

    // After the trace's end nothing is known of the memory.
    static void clear_outside(std::vector<FoldedColumn>& columns, const TimeView& view,
                              const traces::Trace& trace) {
        const int count = static_cast<int>(columns.size());
        for (std::int64_t c = std::max<std::int64_t>(0, view.column_of(trace.last_ns, count) + 1); c < count;
             ++c) {
            columns[static_cast<std::size_t>(c)] = {};
        }
    }

    // What belongs to the selected event; found once for each selection.
    void update_links(const Session& session, const traces::Trace& trace) {
        if (links_of_ == session.selected) return;
        links_of_ = session.selected;
        related_ = counterparts(trace, session.selected);
        launched_.clear();
        launch_ = {};
        const SelectedEvent selected = session.selected;
        if (selected.kind == EventKind::device) {
            const std::int32_t call = trace.device.launch[static_cast<std::size_t>(selected.index)];
            if (call < 0) return;
            launch_ = {EventKind::runtime, call};
            launched_.push_back(selected);
        } else if (selected.kind == EventKind::runtime) {
            launch_ = selected;
            for (const std::int64_t e : launched_by(trace, selected.index))
                launched_.push_back({EventKind::device, e});
        }
    }

    void paint(const Session& session, const traces::Trace& trace) {
        update_links(session, trace);
        const TimeView view = view_of(*session.current());
        const auto span = layout_.between(area_.scroll, area_.scroll + area_.height());
        const int levels = static_cast<int>(std::round(ImGui::GetFontSize() * 1.35F)) - 2;
        folded_rows_.update(*tracks_, layout_, span, view, std::max(1, levels));
        const TimelinePicture picture{trace,    *tracks_, layout_,   folded_rows_, memory_,
                                      session,  folded_,  view,      area_,        session.current()->limit,
                                      hovered_, related_, launched_, launch_};
        ImDrawList& draw = *ImGui::GetWindowDrawList();
        draw.AddRectFilled(area_.min, area_.max, theme::surface());
        paint_rows(draw, picture);
        paint_ruler(draw, picture);
        paint_names(draw, picture);
        paint_scrollbar(draw);
        paint_cursor(draw, view);
    }

    bool has_scrollbar() const { return layout_.height > area_.height() + 1; }
    static float scrollbar_width() { return std::round(ImGui::GetFontSize() * 0.55F); }

    void paint_scrollbar(ImDrawList& draw) const {
        if (!has_scrollbar()) return;
        const float x = area_.max.x;
        const float ratio = area_.height() / layout_.height;
        const float y = area_.top() + area_.scroll * ratio;
        draw.AddRectFilled({x + 1, y}, {x + scrollbar_width() - 1, y + area_.height() * ratio},
                           drag_ == Drag::scroll ? theme::accent() : theme::hover(), 3);
    }

    // The instant under the mouse, on the ruler.
    void paint_cursor(ImDrawList& draw, const TimeView& view) const {
        const ImVec2 mouse = ImGui::GetIO().MousePos;
        if (!ImGui::IsItemHovered() || mouse.x < area_.left() || mouse.x >= area_.max.x) return;
        const float x = std::floor(mouse.x), font = ImGui::GetFontSize();
        draw.AddRectFilled({x, area_.top()}, {x + 1, area_.max.y}, theme::line());
        const std::string label =
            format_decimal(static_cast<double>(view.time(static_cast<double>(mouse.x - area_.left()))) / 1e6,
                           3) +
            " ms";
        const float width = ImGui::CalcTextSize(label.c_str()).x + font * 0.6F;
        const float left = std::clamp(x - width / 2, area_.left(), area_.max.x - width);
        draw.AddRectFilled({left, area_.min.y}, {left + width, area_.min.y + font * 1.4F}, theme::accent(),
                           3);
        draw.AddText({left + font * 0.3F, area_.min.y + font * 0.2F}, theme::ground(), label.c_str());
    }

    TracePtr trace_;
    std::vector<LegendItem> legend_;
    std::shared_ptr<const Tracks> tracks_;
    RowLayout layout_;
    TimelineArea area_;
    FoldedRows folded_rows_;
    std::set<int> folded_;  // ranks shown by their heading alone
    std::map<int, MemoryRow> memory_;
    TimeRange memory_range_;
    double memory_width_ = 0;
    float scroll_ = 0;
    int shown_rank_ = -1;
    std::optional<int> scroll_to_rank_;

    Drag drag_ = Drag::none;
    bool moved_ = false, pressed_in_names_ = false;
    std::int64_t drag_from_ = 0;
    SelectedEvent hovered_;

    SelectedEvent links_of_, launch_;
    std::vector<SelectedEvent> related_, launched_;
};

}  // namespace

std::unique_ptr<Panel> make_timeline_panel() {
    return std::make_unique<TimelinePanel>();
}

}  // namespace shardscope::viewer
