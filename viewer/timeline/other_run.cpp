// See other_run.h.
#include "viewer/timeline/other_run.h"

#include <algorithm>
#include <cmath>
#include <string>

#include <fmt/core.h>

#include "traces/store/columns/trace.h"
#include "viewer/draw/chart.h"
#include "viewer/draw/format.h"
#include "viewer/draw/items.h"
#include "viewer/draw/text.h"
#include "viewer/model/rank_steps.h"
#include "viewer/theme/theme.h"
#include "viewer/timeline/details.h"
#include "viewer/timeline/fold_lane.h"
#include "viewer/timeline/painter.h"
#include "viewer/timeline/timeline_parts.h"

namespace shardscope::viewer::timeline {
namespace {

constexpr std::size_t kMostParts = 40;  // more steps are too narrow to be compared
constexpr std::size_t kMostNames = 500;

float heading_height() {
    return std::round(ImGui::GetFontSize() * 1.6F);
}

// "step 3: 12.30 ms, 1.20 ms longer".
std::string step_text(const AlignedPart& part) {
    const auto duration = [](std::int64_t ns) { return draw::format_duration(static_cast<double>(ns)); };
    std::string text = fmt::format("step {}: {}", part.step, duration(part.length));
    if (part.longer != 0)
        text +=
            fmt::format(", {} {}", duration(std::abs(part.longer)), part.longer > 0 ? "longer" : "shorter");
    return text;
}

}  // namespace

model::OpenTrace* OtherRun::chosen(model::Session& session) const {
    const model::TracePtr wanted = trace_.lock();
    for (model::OpenTrace& entry : session.open) {
        if (wanted != nullptr && entry.trace == wanted && &entry != session.current()) return &entry;
    }
    return nullptr;
}

void OtherRun::choose_next(model::Session& session) {
    const model::TracePtr now = chosen(session) == nullptr ? nullptr : trace_.lock();
    bool passed = now == nullptr;
    for (const model::TracePtr& trace : session.ready()) {
        if (passed && trace != session.trace()) return choose(trace);
        passed = passed || trace == now;
    }
    choose(nullptr);
}

void OtherRun::draw_choice(model::Session& session, float width) {
    const model::OpenTrace* now = chosen(session);
    ImGui::SetNextItemWidth(width);
    const std::string shown = now == nullptr ? "No other run below" : "Below: " + now->name;
    const bool open = ImGui::BeginCombo("##other run", draw::fit_in_combo(shown, width).c_str());
    draw::items::mark("timeline.other", now == nullptr ? "" : now->name);
    if (!open) return;
    if (ImGui::Selectable("No other run", now == nullptr)) choose(nullptr);
    draw::items::mark("timeline.other.none");
    for (const model::OpenTrace& entry : session.open) {
        if (entry.trace == nullptr || &entry == session.current()) continue;
        if (ImGui::Selectable(entry.name.c_str(), &entry == now)) choose(entry.trace);
        draw::items::mark("timeline.other." + entry.name);
    }
    ImGui::EndCombo();
}

void OtherRun::forget(const traces::store::Trace& trace, const model::TracePtr& successor) {
    if (trace_.lock().get() == &trace) trace_ = successor;
    if (aligned_with_.get() == &trace) aligned_with_ = nullptr;
    if (page_ == nullptr || page_->trace.get() != &trace) return;
    page_ = nullptr;
    parts_.clear();
}

void OtherRun::begin(model::Session& session, const model::OpenTrace& entry, const TimelinePage& above) {
    if (page_ == nullptr || page_->trace != entry.trace) {
        page_ = std::make_unique<TimelinePage>(entry.trace);
        parts_.clear();
        aligned_with_ = nullptr;
    }
    page_->tracks = session.analyses.get<Tracks>("timeline tracks", {entry.trace},
                                                 [](const auto& t) { return make_tracks(*t.front()); });
    update_paints(session, *page_);
    if (aligned_with_ == above.trace && aligned_rank_ == session.rank) return;
    aligned_with_ = above.trace;
    aligned_rank_ = session.rank;
    rank_ = traces::store::RankIndex(0);
    if (session.rank.at() < above.trace->ranks.size()) {
        const auto same = entry.trace->rank_of_number(above.trace->ranks[session.rank.at()].number);
        if (same.known()) rank_ = same;
    }
    page_->scroll_to_rank = rank_;
    alignment_ =
        StepAlignment(model::steps_of(*above.trace, session.rank), model::steps_of(*entry.trace, rank_),
                      above.trace->first_ns - entry.trace->first_ns);
}

void OtherRun::lay_out(model::Session& session, model::OpenTrace& entry, const TimelinePage& above,
                       ImVec2 min, ImVec2 max) {
    TimelinePage& page = *page_;
    page.rows = &page.kept.update(*page.trace, page.tracks, entry.rows, row_heights());
    page.area = above.area;
    page.area.min = min;
    page.area.max = {above.area.max.x, max.y};
    page.area.ruler = heading_height() * 2;
    if (page.scroll_to_rank.known()) {
        for (const Row& row : page.layout().rows) {
            if (row.kind == Row::Kind::group && row.rank == page.scroll_to_rank)
                page.scroll = row.y - page.layout().pinned_height;
        }
        page.scroll_to_rank = {};
    }
    page.scroll = std::clamp(page.scroll, 0.0F, std::max(0.0F, page.layout().height - page.area.height()));
    page.area.scroll = std::floor(page.scroll);
    place_parts(*session.current(), above);
}

// A part covers whole pixels of the axis above, so that its view has the same scale.
void OtherRun::place_parts(const model::OpenTrace& active, const TimelinePage& above) {
    const model::TimeView axis = above.view(active);
    const auto [aligned, each_step] = alignment_.parts({axis.from, axis.to}, kMostParts);
    each_step_ = each_step;
    parts_.resize(aligned.size());
    nothing_.view = {axis.from, axis.to, 1};
    for (std::size_t i = 0; i < aligned.size(); ++i) {
        Part& part = parts_[i];
        part.aligned = aligned[i];
        const double from = std::floor(axis.pixel(aligned[i].here.from)),
                     to = std::max(from + 1, std::floor(axis.pixel(aligned[i].here.to)));
        part.view = {axis.time(from) - aligned[i].shift, axis.time(to) - aligned[i].shift, to - from};
        part.area = page_->area;
        part.area.min.x = page_->area.min.x + static_cast<float>(from);
        part.area.max.x = page_->area.left() + static_cast<float>(to);
    }
}

void OtherRun::draw(model::Session& session, const TimelinePage& above, ImVec2 min, ImVec2 max) {
    model::OpenTrace* entry = chosen(session);
    if (entry == nullptr) return;
    begin(session, *entry, above);
    if (page_->tracks == nullptr) {
        session.note_work();
        return;
    }
    lay_out(session, *entry, above, min, max);
    take_mouse(session, *entry, above);
    paint(session, *entry, above);
}

// --- mouse

void OtherRun::take_mouse(model::Session& session, model::OpenTrace& entry, const TimelinePage& above) {
    TimelinePage& page = *page_;
    const TimelineArea& area = page.area;
    const ImGuiIO& io = ImGui::GetIO();
    page.hovered = {};
    hit_.reset();
    ImGui::SetCursorScreenPos(area.min);
    draw::place_button("other run", {area.outer - area.min.x, area.max.y - area.min.y});
    const bool over = ImGui::IsItemHovered();
    const bool over_time = over && io.MousePos.x >= area.left() && io.MousePos.x < area.max.x;
    model::OpenTrace& active = *session.current();
    if (over && io.MouseWheel != 0) {
        if (!over_time || io.KeyShift) {
            page.scroll -= io.MouseWheel * ImGui::GetFontSize() * 4;
        } else {
            above.zoom(active, above.time_at(active, io.MousePos.x),
                       std::pow(model::kWheelStep, static_cast<double>(io.MouseWheel)));
        }
    }
    if (ImGui::IsItemActive() &&
        ImGui::IsMouseDragging(ImGuiMouseButton_Left, ImGui::GetFontSize() * 0.25F)) {
        above.pan_pixels(active, -static_cast<double>(io.MouseDelta.x));
        page.scroll -= io.MouseDelta.y;
    }
    if (over_time) active.cursor = above.time_at(active, io.MousePos.x);
    if (over_time && io.MousePos.y >= area.top()) find_hovered(io.MousePos);
    const Row* row = io.MousePos.y >= area.top() ? page.row_at(io.MousePos.y) : nullptr;
    if (over && row != nullptr && row->kind == Row::Kind::group && ImGui::IsMouseReleased(0) &&
        io.MouseDragMaxDistanceSqr[0] < io.MouseDragThreshold * io.MouseDragThreshold)
        entry.rows.toggle_collapsed(page.key_of(*row));
    if (page.hovered.kind == model::EventKind::none || !hit_) return;
    event_tip(*page.trace, page.hovered, *hit_);
    if (over && ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) make_active(session, page.hovered);
}

void OtherRun::find_hovered(ImVec2 mouse) {
    const Row* row = page_->row_at(mouse.y);
    if (row == nullptr || row->kind != Row::Kind::lane) return;
    for (const Part& part : parts_) {
        if (mouse.x < part.area.left() || mouse.x >= part.area.max.x) continue;
        const FoldedRow* folded = part.folded.find(row->track, row->lane);
        if (folded == nullptr) return;
        const Lane& lane = page_->lane_of(*row);
        hit_ = hit_lane(lane, folded->lane, part.view, static_cast<double>(mouse.x - part.area.left()));
        if (hit_) page_->hovered = lane.event(hit_->item);
    }
}

// The two runs change places, and the event is selected.
void OtherRun::make_active(model::Session& session, model::SelectedEvent event) {
    const model::TracePtr before = session.trace(), next = page_->trace;
    for (std::size_t i = 0; i < session.open.size(); ++i) {
        if (session.open[i].trace == next) session.set_active(i);
    }
    choose(before);
    const EventTime time = time_of(*next, event);
    session.go_to({time.start, time.end}, {}, event);
}

// --- picture

void OtherRun::paint(model::Session& session, const model::OpenTrace& entry, const TimelinePage& above) {
    const TimelineArea& area = page_->area;
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    draw.AddRectFilled(area.min, area.max, theme::ground());
    for (Part& part : parts_) paint_part(draw, session, part);
    if (parts_.empty()) {
        nothing_.memory.update(session.analyses, page_->trace, page_->rows_in_sight(), nothing_.view);
        name_items(nothing_);
    }
    paint_names(draw, picture_of(session, parts_.empty() ? nothing_ : parts_.back(), area));
    if (session.current()->cursor) {
        const float x = std::floor(above.x_of(above.view(*session.current()), *session.current()->cursor));
        if (x >= area.left() && x < area.max.x)
            draw.AddRectFilled({x, area.top()}, {x + 1, area.max.y}, draw::faded(theme::text(), 0.5F));
    }
    paint_heading(draw, session, entry);
    draw::items::place("timeline.other.rows", {area.left(), area.top()}, area.max,
                       fmt::format("{} rows", page_->layout().rows.size()));
}

void OtherRun::paint_part(ImDrawList& draw, model::Session& session, Part& part) {
    TimelinePage& page = *page_;
    const auto in_sight = page.rows_in_sight();
    const double share = part.view.width / static_cast<double>(std::max(1.0F, page.area.width()));
    fold_rows(session, page, part.view, part.folded,
              static_cast<std::size_t>(static_cast<double>(FoldedRows::kMostRectangles) * share));
    part.memory.update(session.analyses, page.trace, in_sight, part.view);
    part.counters.update(*page.tracks, in_sight, part.view);
    draw.AddRectFilled({part.area.left(), part.area.top()}, part.area.max, theme::surface());
    paint_rows(draw, picture_of(session, part, part.area));
    name_items(part);
}

TimelinePicture OtherRun::picture_of(model::Session& session, const Part& part, const TimelineArea& area) {
    TimelinePage& page = *page_;
    return {.trace = *page.trace,
            .tracks = *page.tracks,
            .layout = page.layout(),
            .folded = part.folded,
            .memory = part.memory.all(),
            .counters = part.counters,
            .paints = page.paints.get(),
            .waits = page.waits.get(),
            .gaps = page.gaps,
            .session = session,
            .view = part.view,
            .area = area,
            .limit = {},
            .hovered = page.hovered,
            .with_notes = !parts_.empty() && &part == &parts_.front(),
            .of_active = false};
}

// The run's name and what is done to its steps; below it each step's length against that of the run above.
void OtherRun::paint_heading(ImDrawList& draw, const model::Session& session,
                             const model::OpenTrace& entry) const {
    const TimelineArea& area = page_->area;
    const float font = ImGui::GetFontSize(), height = heading_height();
    const auto text_y = [&](float top) { return std::floor(top + (height - font) / 2); };
    draw.AddRectFilled(area.min, {area.outer, area.min.y + height}, theme::raised());
    draw.AddRectFilled(area.min, {area.outer, area.min.y + std::max(1.0F, std::round(font * 0.14F))},
                       theme::run_color(entry.color));
    draw.AddText({area.min.x + font * 0.5F, text_y(area.min.y)}, theme::text(),
                 draw::fit_text(entry.name, area.names - font).c_str());
    const std::string& there = session.current()->name;
    std::string said =
        !alignment_.has_steps()
            ? fmt::format("The runs have no step of the same number; both begin together.")
        : !each_step_ ? fmt::format("Step {} begins where it does in {}; zoom in to align each step.",
                                    parts_.front().aligned.step, there)
                      : fmt::format("Each step begins where it does in {} (above), rank {}.", there,
                                    page_->trace->ranks.empty() ? 0 : page_->trace->ranks[rank_.at()].number);
    if (parts_.empty()) said += " Its step has ended here, and its next one has not begun.";
    if (std::any_of(parts_.begin(), parts_.end(), [](const Part& part) { return part.aligned.cut > 0; }))
        said += " At an edge like this one the rest of a longer step is not shown:";
    const float room = area.width() - font * 2;
    draw.AddText({area.left() + font * 0.5F, text_y(area.min.y)}, theme::text_dim(),
                 draw::fit_text(said, room).c_str());
    if (said.ends_with(':')) {
        const float x = std::floor(area.left() + font + std::min(room, draw::width_of(said)));
        draw.AddRectFilled({x, area.min.y + font * 0.3F}, {x + 3, area.min.y + height - font * 0.3F},
                           theme::bad());
    }
    draw::items::place("timeline.other.heading", area.min, {area.max.x, area.min.y + height}, said);
    const float top = area.min.y + height, bottom = area.top();
    draw.AddText({area.min.x + font * 0.5F, text_y(top)}, theme::text_dim(), "Steps, against above");
    for (const Part& part : parts_) {
        if (part.aligned.step < 0) continue;
        const float from = part.area.left(), to = part.area.max.x;
        draw.AddRectFilled({from + 1, top + 1}, {to - 1, bottom - 1}, theme::hover());
        const std::string whole = step_text(part.aligned), number = fmt::format("{}", part.aligned.step);
        const bool fits = draw::width_of(whole) + font * 0.6F < to - from;
        const std::string& label = fits ? whole : number;
        const ImU32 color = !fits || part.aligned.longer == 0 ? theme::text()
                            : part.aligned.longer > 0         ? theme::bad()
                                                              : theme::good();
        if (draw::width_of(label) + 2 < to - from)
            draw.AddText({std::floor((from + to - draw::width_of(label)) / 2), text_y(top)}, color,
                         label.c_str());
        std::string tip = whole;
        if (part.aligned.cut > 0) {
            draw.AddRectFilled({to - 3, top}, {to, area.max.y}, theme::bad());
            tip += fmt::format("; the last {} are not shown, as the next step begins above",
                               draw::format_duration(static_cast<double>(part.aligned.cut)));
        }
        draw::items::place(fmt::format("timeline.other.step.{}", number), {from, top}, {to, bottom}, tip);
        if (ImGui::IsWindowHovered() && ImGui::IsMouseHoveringRect({from, top}, {to, bottom}))
            ImGui::SetTooltip("%s", tip.c_str());
    }
}

void OtherRun::name_items(const Part& part) const {
    if (!draw::items::kept()) return;
    const TimelinePage& page = *page_;
    std::size_t named = 0;
    for (const Row* row : page.rows_in_sight()) {
        const float y0 = std::max(page.y_of(*row), page.area.top());
        const float y1 = std::min(page.y_of(*row) + row->height, page.area.max.y);
        draw::items::place("timeline.other.row." + page.key_of(*row), {page.area.min.x, y0},
                           {page.area.left(), y1});
        const FoldedRow* folded =
            row->kind == Row::Kind::lane ? part.folded.find(row->track, row->lane) : nullptr;
        if (folded == nullptr) continue;
        for (const Bar& bar : folded->lane.bars) {
            // A part's first pixel may hold the end of the step before it.
            if (bar.x1 - bar.x0 < 2) continue;
            if (++named > kMostNames) return;
            const std::string label = bar_label(*page.trace, page.lane_of(*row).event(bar.item));
            draw::items::place("timeline.other.event." + label, {part.area.left() + bar.x0, y0},
                               {part.area.left() + bar.x1, y1}, label);
        }
    }
}

}  // namespace shardscope::viewer::timeline
