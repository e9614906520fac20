// See schedule_chart.h.
#include "viewer/panels/schedule/schedule_chart.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "viewer/draw/axis.h"
#include "viewer/draw/chart.h"
#include "viewer/draw/format.h"
#include "viewer/draw/items.h"
#include "viewer/draw/text.h"
#include "viewer/theme/theme.h"

namespace shardscope::viewer::panels {
namespace {

using traces::analysis::ComputeKind;
using traces::analysis::IdleCause;
using traces::analysis::kComputeKinds;

constexpr int kMostSpanRectangles = 8000;
constexpr double kWidestSpanColumn = 16;               // pixels
constexpr float kLeastRow = 3, kLeastPlannedRow = 14;  // pixels
constexpr float kLeastStack = 6;

float row_height(const ScheduleChart::Input& input, float height) {
    const float font = ImGui::GetFontSize();
    const bool planned = input.planned && input.view->planned_ns > 0;
    const auto rows = static_cast<float>(std::max<std::size_t>(input.view->rows.size(), 1));
    return std::floor(std::clamp((height - ScheduleChart::ruler_height()) / rows,
                                 planned ? kLeastPlannedRow : kLeastRow, font * (planned ? 3.4F : 2.4F)));
}

// Rows with a name: each where it fits; of thin rows a place's together or, if even these are too thin, every
// n-th.
struct NamedRows {
    std::size_t first = 0, count = 1;
};
std::vector<NamedRows> named_rows(const std::vector<ScheduleRow>& rows, float height) {
    const auto stride = static_cast<std::size_t>(std::ceil(ImGui::GetFontSize() * 1.1F / height));
    std::vector<NamedRows> named;
    for (std::size_t begin = 0, end = 0; begin < rows.size(); begin = end) {
        while (end < rows.size() && rows[end].row->place == rows[begin].row->place) ++end;
        if (stride > 1 && end - begin >= stride) {
            named.push_back({begin, end - begin});
            continue;
        }
        for (std::size_t i = begin; i < end; ++i)
            if (i % std::max<std::size_t>(stride, 1) == 0) named.push_back({i, 1});
    }
    return named;
}

// The top of the name of a row: in its middle if it fits.
float name_top(float top, float height, std::size_t row) {
    return top + height * static_cast<float>(row) +
           std::max(0.0F, std::floor((height - ImGui::GetFontSize()) / 2));
}

model::TimeView time_view(const ScheduleChart::Input& input) {
    return {input.visible.from, input.visible.to,
            std::max(1.0, static_cast<double>(input.right - input.left))};
}

std::string cell_name(const std::vector<traces::analysis::PipelineAction>& actions) {
    std::string name;
    for (const auto& a : actions)
        name += fmt::format("{}{}{}{}", name.empty() ? "" : "+", a.stage, a.kind, a.micro_batch);
    return name;
}

std::string stages_text(const ScheduleRow& row) {
    return fmt::format("stage{} {}", row.stages.find(',') == std::string::npos ? "" : "s", row.stages);
}

// In the middle of the box, if it fits, in a smaller size if the box is low.
void put_label(ImVec2 min, ImVec2 max, ImU32 ink, const std::string& text) {
    const float font = ImGui::GetFontSize(), least = font * 0.62F;
    const float whole = ImGui::CalcTextSize(text.c_str()).x;
    const float size = std::floor(std::min({font, max.y - min.y - 1, (max.x - min.x - 2) * font / whole}));
    if (size < least) return;
    const float width = whole * size / font;
    ImGui::GetWindowDrawList()->AddText(
        ImGui::GetFont(), size,
        {std::floor((min.x + max.x - width) / 2), std::floor((min.y + max.y - size) / 2)}, ink, text.c_str());
}

std::string after_begin(const ScheduleChart::Input& input, std::int64_t time) {
    return draw::format_duration(static_cast<double>(time - input.view->makespan.from));
}

}  // namespace

ImU32 span_color(int kind, bool second) {
    if (kind >= kComputeKinds)
        return draw::faded(theme::idle_color(static_cast<IdleCause>(kind - kComputeKinds)), 0.5F);
    const ImU32 color = theme::compute_color(static_cast<ComputeKind>(kind));
    if (!second) return color;
    ImVec4 c = ImGui::ColorConvertU32ToFloat4(color);
    constexpr float kDarker = 0.62F;
    return ImGui::ColorConvertFloat4ToU32({c.x * kDarker, c.y * kDarker, c.z * kDarker, 1});
}

float ScheduleChart::ruler_height() {
    return ImGui::GetFontSize() * 1.5F;
}

float ScheduleChart::names_width(const ScheduleView& view) {
    float widest = ImGui::CalcTextSize("rank 99").x;
    for (const ScheduleRow& row : view.rows)
        widest = std::max(widest, draw::width_of(fmt::format("rank {}  {}", row.rank, stages_text(row))));
    return std::min(widest, ImGui::GetFontSize() * 14) + ImGui::GetFontSize() * 0.8F;
}

float ScheduleChart::used_height(const Input& input, float height) {
    const float rows = row_height(input, height) * static_cast<float>(input.view->rows.size());
    return std::min(height, ruler_height() + rows);
}

bool ScheduleChart::scrolls(const Input& input, float height) {
    return row_height(input, height) * static_cast<float>(input.view->rows.size()) >
           height - ruler_height() + 0.5F;
}

ScheduleChart::Events ScheduleChart::draw(const Input& input, float height) {
    Events events;
    if (seen_ != input.visible) least_ = 2;
    seen_ = input.visible;
    rectangles_ = 0;
    const ImVec2 at = ImGui::GetCursorScreenPos();
    draw_ruler(input, at);
    ImGui::SetCursorScreenPos({at.x, at.y + ruler_height()});
    const float inner = std::max(kLeastRow, height - ruler_height());
    constexpr ImGuiWindowFlags kFlags = ImGuiWindowFlags_NoScrollWithMouse | ImGuiWindowFlags_NoBackground;
    ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {0, 0});
    ImGui::BeginChild("rows", {0, inner}, false, kFlags);
    ImGui::PopStyleVar();  // tooltips keep their own spacing
    const ImGuiIO& io = ImGui::GetIO();
    const float row = row_height(input, height);
    const ImVec2 start = ImGui::GetCursorScreenPos();
    const float whole = row * static_cast<float>(input.view->rows.size());
    draw::place_button("lanes", {ImGui::GetContentRegionAvail().x, whole});
    draw::items::mark("schedule.lanes", fmt::format("{} rows", input.view->rows.size()));
    const bool hovered = ImGui::IsItemHovered(), active = ImGui::IsItemActive();
    const bool moved = io.MouseDragMaxDistanceSqr[0] > io.MouseDragThreshold * io.MouseDragThreshold;
    const bool in_lanes = io.MousePos.x >= input.left && io.MousePos.x < input.right;
    events.hovers_lanes = hovered && in_lanes;
    if (active && moved) {
        events.dragged = io.MouseDelta.x;
        ImGui::SetScrollY(ImGui::GetScrollY() - io.MouseDelta.y);
    }
    if (hovered && io.MouseWheel != 0 && (io.KeyShift || !in_lanes))
        ImGui::SetScrollY(ImGui::GetScrollY() - io.MouseWheel * std::max(row, ImGui::GetFontSize()) * 3);
    const bool released = ImGui::IsItemDeactivated() && !moved;

    const ImVec2 window = ImGui::GetWindowPos();
    const float bottom = window.y + ImGui::GetWindowHeight();
    for (std::size_t i = 0; i < input.view->rows.size(); ++i) {
        const float top = start.y + row * static_cast<float>(i);
        if (top + row < window.y || top > bottom) continue;
        draw_row(input, input.view->rows[i], top, row);
    }
    draw_names(input, window.x, start.y, row);
    draw_figures(input, start.y, row);
    if (hovered && !moved && io.MousePos.y >= start.y) {
        const auto i = static_cast<std::size_t>((io.MousePos.y - start.y) / row);
        if (i < input.view->rows.size()) {
            const ScheduleRow& under = input.view->rows[i];
            events.row = &under;
            const float share = (io.MousePos.y - start.y) / row - static_cast<float>(i);
            const bool in_plan = input.planned && !under.planned.empty() && share < 0.4F;
            if (in_lanes)
                draw_tip(input, under, time_view(input).time(static_cast<double>(io.MousePos.x - input.left)),
                         in_plan, events);
        }
    }
    events.clicked = released && events.row != nullptr;
    ImGui::EndChild();
    if (rectangles_ > kMostSpanRectangles && least_ < kWidestSpanColumn) least_ *= 2;
    return events;
}

// Ticks in time since the step began.
void ScheduleChart::draw_ruler(const Input& input, ImVec2 at) const {
    const float font = ImGui::GetFontSize();
    ImDrawList* draw = ImGui::GetWindowDrawList();
    const model::TimeView view = time_view(input);
    const auto zero = static_cast<double>(input.view->makespan.from);
    const int count = std::clamp(static_cast<int>(view.width / (font * 7)), 2, 14);
    for (const draw::Tick& tick :
         draw::make_ticks(static_cast<double>(view.from) - zero, static_cast<double>(view.to) - zero, count,
                          draw::AxisUnit::nanoseconds)) {
        const float x = std::floor(
            input.left + static_cast<float>(view.pixel(static_cast<std::int64_t>(tick.value + zero))));
        if (x < input.left || x >= input.right) continue;
        draw->AddRectFilled({x, at.y + font * 0.2F}, {x + 1, at.y + font * 1.4F},
                            draw::faded(theme::text_dim(), 0.4F));
        if (x + 4 + draw::width_of(tick.label) < input.right)
            draw->AddText({x + 4, at.y + font * 0.1F}, theme::text_dim(), tick.label.c_str());
    }
    draw->AddText({at.x, at.y + font * 0.1F}, theme::text_dim(), "Time in the step");
    if (!input.view->rows.empty())
        draw->AddText({input.right + font * 0.7F, at.y + font * 0.1F}, theme::text_dim(), "Bubble by cause");
}

void ScheduleChart::draw_row(const Input& input, const ScheduleRow& row, float top, float height) {
    const float gap = height < 5 ? 0 : height < 12 ? 1 : 3;
    Lane actual = {top, top + height - gap};
    ImDrawList* draw = ImGui::GetWindowDrawList();
    const model::TimeView view = time_view(input);
    if (input.planned && !row.planned.empty()) {
        const float split = std::round(top + (height - gap) * 0.4F);
        draw_spans(input, row.planned, {top, split - 1}, 0.55F);
        if (height > ImGui::GetFontSize() * 1.6F) draw_planned_labels(input, row, {top, split - 1});
        actual.top = split;
    }
    draw_spans(input, row.actual, actual, 1);
    draw_labels(input, row, actual);
    draw::items::place(fmt::format("schedule.row.{}", row.rank), {input.left, top},
                       {input.right, top + height}, draw::format_percent(row.bubble_percent()));
    // The ends of the pipeline's makespan.
    for (const std::int64_t end : {row.step->makespan.start, row.step->makespan.end}) {
        const auto x = std::floor(input.left + static_cast<float>(view.pixel(end)));
        if (x >= input.left && x < input.right)
            draw->AddRectFilled({x, top}, {x + 1, top + height}, draw::faded(theme::text_dim(), 0.5F));
    }
}

void ScheduleChart::draw_spans(const Input& input, std::span<const ScheduleSpan> spans, Lane lane,
                               float opacity) {
    ImDrawList* draw = ImGui::GetWindowDrawList();
    const FoldedSpans folded = fold_spans(spans, time_view(input), least_);
    const auto x = [&](double pixel) { return input.left + static_cast<float>(pixel); };
    const float height = lane.bottom - lane.top;
    for (const SpanBox& box : folded.boxes) {
        // A gap of a pixel separates neighbours of one colour.
        const float gap = box.kind < kComputeKinds && box.x1 - box.x0 > 4 ? 1.0F : 0.0F;
        draw->AddRectFilled({x(box.x0), lane.top}, {x(box.x1) - gap, lane.bottom},
                            draw::faded(span_color(box.kind, box.second), opacity));
    }
    rectangles_ += static_cast<int>(folded.boxes.size());
    if (height < kLeastStack) return draw_largest(folded.columns, input.left, lane, opacity);
    for (const SpanColumn& column : folded.columns) {
        float bottom = lane.bottom;
        for (int kind = 0; kind < kSpanKinds; ++kind) {
            const float part = column.pixels[static_cast<std::size_t>(kind)];
            if (part <= 0) continue;
            const float top = bottom - height * part / static_cast<float>(column.x1 - column.x0);
            draw->AddRectFilled({x(column.x0), top}, {x(column.x1), bottom},
                                draw::faded(span_color(kind), opacity));
            bottom = top;
            ++rectangles_;
        }
    }
}

// Of each column the kind that takes most of it: a lane this low cannot show parts.
void ScheduleChart::draw_largest(std::span<const SpanColumn> columns, float left, Lane lane, float opacity) {
    const auto largest = [](const SpanColumn& column) {
        return static_cast<int>(std::max_element(column.pixels.begin(), column.pixels.end()) -
                                column.pixels.begin());
    };
    for (std::size_t begin = 0, end = 0; begin < columns.size(); begin = end) {
        const int kind = largest(columns[begin]);
        for (end = begin + 1; end < columns.size(); ++end) {
            if (columns[end].x0 > columns[end - 1].x1 || largest(columns[end]) != kind) break;
        }
        ImGui::GetWindowDrawList()->AddRectFilled(
            {left + static_cast<float>(columns[begin].x0), lane.top},
            {left + static_cast<float>(columns[end - 1].x1), lane.bottom},
            draw::faded(span_color(kind), opacity));
        ++rectangles_;
    }
}

void ScheduleChart::draw_labels(const Input& input, const ScheduleRow& row, Lane lane) {
    if (lane.bottom - lane.top < ImGui::GetFontSize() * 0.62F + 1 && !draw::items::kept()) return;
    const model::TimeView view = time_view(input);
    for (const ScheduleSpan& span : row.actual) {
        if (span.is_idle() || span.end <= view.from) continue;
        if (span.start >= view.to) break;
        const traces::analysis::PipelineCell& cell = row.row->cells[static_cast<std::size_t>(span.cell)].cell;
        if (span.start > cell.start()) continue;  // of a cell in pieces the first
        const float x0 = input.left + static_cast<float>(std::max(view.pixel(cell.start()), 0.0));
        const float x1 = input.left + static_cast<float>(std::min(view.pixel(cell.end()), view.width));
        put_label({x0, lane.top}, {x1, lane.bottom}, draw::text_on(span_color(span.kind, span.second)),
                  micro_batch_text(cell.actions));
        if (draw::items::kept())
            draw::items::place(fmt::format("schedule.cell.{}.{}", row.rank, cell_name(cell.actions)),
                               {x0, lane.top}, {x1, lane.bottom},
                               draw::format_duration(static_cast<double>(cell.end() - cell.start())));
    }
}

void ScheduleChart::draw_planned_labels(const Input& input, const ScheduleRow& row, Lane lane) {
    const model::TimeView view = time_view(input);
    for (const ScheduleSpan& span : row.planned) {
        if (span.end <= view.from) continue;
        if (span.start >= view.to) break;
        const float x0 = input.left + static_cast<float>(std::max(view.pixel(span.start), 0.0));
        const float x1 = input.left + static_cast<float>(std::min(view.pixel(span.end), view.width));
        put_label({x0, lane.top}, {x1, lane.bottom}, theme::text(),
                  micro_batch_text(row.row->planned[static_cast<std::size_t>(span.cell)].actions));
    }
}

void ScheduleChart::draw_names(const Input& input, float left, float top, float height) {
    ImDrawList* draw = ImGui::GetWindowDrawList();
    const float font = ImGui::GetFontSize(), width = input.left - left - font * 0.6F;
    for (const NamedRows& named : named_rows(input.view->rows, height)) {
        const ScheduleRow& row = input.view->rows[named.first];
        const float at = name_top(top, height, named.first);
        if (named.count > 1) {
            const std::string name = fmt::format("{}: {} ranks", stages_text(row), named.count);
            draw->AddText({left, at}, theme::text(), draw::fit_text(name, width).c_str());
            if (named.first > 0) draw->AddRectFilled({left, at - 1}, {input.right, at}, theme::line());
            continue;
        }
        const std::string rank = fmt::format("rank {}", row.rank);
        draw->AddText({left, at}, row.rank == input.chosen_rank ? theme::accent() : theme::text(),
                      rank.c_str());
        const float next = draw::width_of(rank) + font * 0.6F;
        draw->AddText({left + next, at}, theme::text_dim(),
                      draw::fit_text(stages_text(row), width - next).c_str());
    }
}

// The bubble of each row: a bar by cause, the longest as wide as the room, and its share of the makespan.
void ScheduleChart::draw_figures(const Input& input, float top, float height) {
    const float font = ImGui::GetFontSize();
    const float left = input.right + font * 0.7F;
    const float value = draw::width_of("100.00 %") + font * 0.5F;
    const float room = ImGui::GetWindowPos().x + ImGui::GetWindowContentRegionMax().x - left - value;
    if (room < font) return;
    double most = 0;
    for (const ScheduleRow& row : input.view->rows) most = std::max(most, row.bubble_percent());
    const ImVec2 window = ImGui::GetWindowPos();
    for (std::size_t i = 0; i < input.view->rows.size(); ++i) {
        const ScheduleRow& row = input.view->rows[i];
        const float y = top + height * static_cast<float>(i);
        if (y + height < window.y || y > window.y + ImGui::GetWindowHeight()) continue;
        const auto idle = row.row->idle_ns();
        const auto whole = static_cast<double>(std::max<std::int64_t>(row.step->makespan.length(), 1));
        std::vector<draw::Segment> parts;
        parts.reserve(traces::analysis::kIdleCauses);
        for (int cause = 0; cause < traces::analysis::kIdleCauses; ++cause)
            parts.push_back({100 * static_cast<double>(idle[static_cast<std::size_t>(cause)]) / whole,
                             theme::idle_color(static_cast<IdleCause>(cause)),
                             {}});
        const float bar = std::min(height < 5 ? height : height - 1, font * 0.8F);
        stacked_bar({left, y + std::floor((height - bar) / 2)}, {room, bar}, parts, std::max(most, 1e-9),
                    false);
    }
    for (const NamedRows& named : named_rows(input.view->rows, height)) {
        double percent = 0;
        for (std::size_t i = 0; i < named.count; ++i)
            percent += input.view->rows[named.first + i].bubble_percent() / static_cast<double>(named.count);
        const std::string text = draw::format_percent(percent);
        ImGui::GetWindowDrawList()->AddText(
            {left + room + value - draw::width_of(text), name_top(top, height, named.first)}, theme::text(),
            text.c_str());
    }
}

void ScheduleChart::draw_tip(const Input& input, const ScheduleRow& row, std::int64_t time, bool in_plan,
                             Events& events) {
    const ScheduleSpan* span = span_at(in_plan ? row.planned : row.actual, time);
    if (span == nullptr) return;
    const auto tip_span = [&](std::int64_t start, std::int64_t end) {
        draw::tip_row("Begins", after_begin(input, start));
        draw::tip_row("Duration", draw::format_duration(static_cast<double>(end - start)));
    };
    if (in_plan) {
        const auto& cell = row.row->planned[static_cast<std::size_t>(span->cell)];
        draw::begin_tip(fmt::format("Planned on rank {}: {}", row.rank, action_text(cell.actions)));
        draw::tip_row("Place in the plan", fmt::format("{} of {}", span->cell + 1, row.row->planned.size()));
        tip_span(span->start, span->end);
        draw::tip_row("Drawn", "at the mean time of its stage and kind, without transfers");
        return draw::end_tip();
    }
    events.span = span;
    if (span->is_idle()) {
        const auto cause = static_cast<IdleCause>(span->kind - kComputeKinds);
        draw::begin_tip(fmt::format("Idle on rank {}: {}", row.rank, name(cause)));
        draw::tip_row("Cause", idle_meaning(cause), theme::idle_color(cause));
        tip_span(span->start, span->end);
        if (span->cell >= 0)
            draw::tip_row("Next",
                          action_text(row.row->cells[static_cast<std::size_t>(span->cell)].cell.actions));
        return draw::end_tip();
    }
    const traces::analysis::RowCell& c = row.row->cells[static_cast<std::size_t>(span->cell)];
    draw::begin_tip(fmt::format("{} on rank {}", action_text(c.cell.actions), row.rank));
    draw::tip_row("Kind", name(compute_kind(c.cell.actions)), span_color(span->kind, span->second));
    tip_span(c.cell.start(), c.cell.end());
    const std::int64_t busy = traces::analysis::length(c.cell.work);
    if (busy != c.cell.end() - c.cell.start())
        draw::tip_row("Device busy", draw::format_duration(static_cast<double>(busy)));
    if (!row.row->planned.empty()) {
        const auto ran = span->cell + 1;
        draw::tip_row("Place in the plan",
                      c.planned < 0
                          ? "not planned"
                          : fmt::format("{} of {}{}", c.planned + 1, row.row->planned.size(),
                                        ran == c.planned + 1 ? "" : fmt::format(", ran as {}", ran)));
        if (c.planned >= 0 && row.step->planned_ns > 0)
            draw::tip_row(
                "Planned begin",
                after_begin(input, row.row->planned[static_cast<std::size_t>(c.planned)].time.start));
    }
    draw::tip_row("Click", "show it in the timeline");
    draw::end_tip();
}

}  // namespace shardscope::viewer::panels
