// See shard_grid.h.
#include "viewer/panels/shardmap/shard_grid.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include <fmt/core.h>

#include "traces/store/columns/trace.h"
#include "viewer/draw/chart.h"
#include "viewer/draw/format.h"
#include "viewer/draw/items.h"
#include "viewer/draw/text.h"
#include "viewer/theme/theme.h"

namespace shardscope::viewer::panels {
namespace {

using traces::analysis::ShardChange;
using traces::analysis::ShardState;
using traces::analysis::UnitHistory;
using traces::store::RankIndex;
using traces::store::UnitIndex;

constexpr int kMostRectangles = 7000;  // for all visible lanes together
constexpr int kWidestColumn = 16;      // pixels

float cell_width(std::size_t ranks) {
    const float font = ImGui::GetFontSize();
    return std::clamp(font * 16 / static_cast<float>(std::max<std::size_t>(ranks, 1)), font * 0.7F,
                      font * 2.2F);
}

// The rows of many units shrink until they fit, down to a few pixels, before they scroll.
float least_row() {
    return ImGui::GetFontSize() * 0.32F;
}
// The height that a row needs to show a text.
float text_row() {
    return ImGui::GetFontSize() * 1.05F;
}
// Room between a row's edge and what it shows; thin rows have none to spare.
float inset(float row_height, float wanted) {
    return row_height < text_row() ? 0.5F : wanted;
}
float numbers_height() {  // the numbers of the ranks, above the rows
    return ImGui::GetFontSize() * 1.5F;
}

float name_width(const traces::analysis::ShardStates& states) {
    float widest = ImGui::CalcTextSize("Unit").x;
    for (const std::string& unit : states.units)
        widest = std::max(widest, ImGui::CalcTextSize(unit.data(), unit.data() + unit.size()).x);
    return std::min(widest, ImGui::GetFontSize() * 13) + ImGui::GetFontSize() * 0.8F;
}

std::string_view letter(ShardState state) {
    constexpr std::array<std::string_view, traces::analysis::kShardStates> kLetters = {"",  "G",      "F",
                                                                                       "C", "\u00b7", "R"};
    return kLetters[static_cast<std::size_t>(state)];
}

void put_centered(ImVec2 min, ImVec2 max, ImU32 color, std::string_view text) {
    const ImVec2 size = ImGui::CalcTextSize(text.data(), text.data() + text.size());
    ImGui::GetWindowDrawList()->AddText(
        {std::floor((min.x + max.x - size.x) / 2), std::floor((min.y + max.y - size.y) / 2)}, color,
        text.data(), text.data() + text.size());
}

// The tooltip of a unit that only other stages hold.
void elsewhere_tip(const ShardGrid::Input& input, RankIndex rank, UnitIndex unit) {
    draw::begin_tip(fmt::format("{} is not on rank {}", input.states->units[unit.at()],
                                input.trace->ranks[rank.at()].number));
    draw::tip_row("Held by", input.shares->holders(unit));
    for (const ShardShares::Part& part : input.shares->parts(rank)) draw::tip_row(part.axis, part.text);
    draw::end_tip();
}

// "all_gather 12 of group 0: 3.01 MiB in 1.20 ms".
std::string collective_text(const traces::store::Trace& trace, std::int32_t event) {
    const auto at = static_cast<std::size_t>(event);
    const std::int32_t row = trace.device.collective[at];
    std::string text;
    if (row >= 0) {
        const auto c = static_cast<std::size_t>(row);
        text = fmt::format("{} {}, {}", draw::spaced(name(trace.collectives.operation[c])),
                           trace.collectives.sequence[c], draw::format_size(trace.collectives.bytes[c]));
    } else {
        text = std::string(trace.strings[trace.device.name[at]]);
    }
    return fmt::format(
        "{} in {}", text,
        draw::format_duration(static_cast<double>(trace.device.end[at] - trace.device.start[at])));
}

void state_tip(const ShardGrid::Input& input, RankIndex rank, UnitIndex unit, std::int64_t time) {
    constexpr std::int64_t kFirst = std::numeric_limits<std::int64_t>::min(),
                           kLast = std::numeric_limits<std::int64_t>::max();
    const UnitHistory& history = input.states->of(rank, unit);
    const ShardChange& now = history.at(time);
    const traces::analysis::Interval span = history.span(time);
    draw::begin_tip(fmt::format("{} on rank {} at {}", input.states->units[unit.at()],
                                input.trace->ranks[rank.at()].number,
                                draw::format_duration(static_cast<double>(time))));
    draw::tip_row("State", name(now.state), theme::shard_color(now.state));
    if (span.start != kFirst)
        draw::tip_row("For", draw::format_duration(static_cast<double>(time - span.start)));
    if (span.end != kLast)
        draw::tip_row("Still for", draw::format_duration(static_cast<double>(span.end - time)));
    if (input.states->bytes[unit.at()] >= 0)
        draw::tip_row("Whole unit", draw::format_size(input.states->bytes[unit.at()]));
    for (const ShardShares::Part& part : input.shares->parts(rank)) draw::tip_row(part.axis, part.text);
    draw::tip_row("Whole on the device", now.whole ? "yes" : "no");
    if (input.states->allocations)
        draw::tip_row("Held by the host program",
                      traces::analysis::holds(history.allocated, time) ? "yes" : "no");
    if (now.event >= 0) {
        const bool to_come = now.state == ShardState::freed;
        draw::tip_row(to_come ? "Waits for" : "By", collective_text(*input.trace, now.event));
    }
    draw::end_tip();
}

}  // namespace

float ShardGrid::left_width(const Input& input, float panel_width) {
    const float wanted = name_width(*input.states) +
                         cell_width(input.states->ranks) * static_cast<float>(input.states->ranks) +
                         ImGui::GetFontSize();
    return std::min(wanted, panel_width * 0.5F);
}

bool ShardGrid::scrolls(std::size_t units, float height) {
    return std::floor(least_row()) * static_cast<float>(units) > height - numbers_height();
}

ShardGrid::Events ShardGrid::draw(const Input& input, float height) {
    Events events;
    const float font = ImGui::GetFontSize();
    const std::size_t units = input.states->units.size();
    if (folded_.size() != units) folded_.assign(units, {});
    if (input.from != from_ || input.to != to_) column_pixels_ = 1;
    from_ = input.from;
    to_ = input.to;
    rectangles_ = 0;
    const float name = name_width(*input.states), cell = cell_width(input.states->ranks);
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const float room = input.lanes_left - font * 0.6F - at.x - name;
    const int ranks = static_cast<int>(input.states->ranks);
    shown_ranks_ = std::clamp(static_cast<int>(room / cell), 1, std::max(1, ranks));
    // Keeps the chosen rank in sight.
    first_rank_ = std::clamp(first_rank_, std::max(0, input.rank.value - shown_ranks_ + 1), input.rank.value);
    first_rank_ = std::clamp(first_rank_, 0, std::max(0, ranks - shown_ranks_));

    ImGui::SetCursorScreenPos({at.x + name, at.y});
    draw_rank_numbers(input, cell, events);
    ImGui::SetCursorScreenPos({at.x, at.y + numbers_height()});
    const float inner = std::max(font * 2, height - numbers_height());
    constexpr ImGuiWindowFlags kFlags = ImGuiWindowFlags_NoScrollWithMouse | ImGuiWindowFlags_NoBackground;
    ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {0, 0});
    ImGui::BeginChild("units", {0, inner}, false, kFlags);
    ImGui::PopStyleVar();  // tooltips keep their own spacing
    const float row_height = std::floor(
        std::clamp(inner / static_cast<float>(std::max<std::size_t>(units, 1)), least_row(), font * 3));
    if (ImGui::IsWindowHovered() && ImGui::GetIO().MousePos.x < input.lanes_left &&
        ImGui::GetIO().MouseWheel != 0)
        ImGui::SetScrollY(ImGui::GetScrollY() - ImGui::GetIO().MouseWheel * row_height * 3);
    ImGuiListClipper clipper;
    clipper.Begin(static_cast<int>(units), row_height);
    const ImVec2 start = ImGui::GetCursorScreenPos();
    while (clipper.Step()) {
        for (int u = clipper.DisplayStart; u < clipper.DisplayEnd; ++u) {
            const Row row{UnitIndex(u), start.y + row_height * static_cast<float>(u), row_height, cell};
            draw_name(input, row, name, events);
            draw_cells(input, row, start.x + name, events);
            draw_lane(input, row, events);
        }
    }
    ImGui::SetCursorScreenPos({start.x, start.y + row_height * static_cast<float>(units)});
    ImGui::Dummy({1, 0});
    const float cursor =
        std::floor(input.lanes_left + (input.lanes_right - input.lanes_left) *
                                          static_cast<float>(static_cast<double>(input.cursor - input.from) /
                                                             static_cast<double>(input.to - input.from)));
    if (cursor >= input.lanes_left && cursor <= input.lanes_right) {
        ImGui::GetWindowDrawList()->AddRectFilled(
            {cursor, start.y}, {cursor + 1.5F, start.y + row_height * static_cast<float>(units)},
            theme::peak());
    }
    ImGui::EndChild();
    if (rectangles_ > kMostRectangles && column_pixels_ < kWidestColumn) column_pixels_ *= 2;
    return events;
}

void ShardGrid::draw_rank_numbers(const Input& input, float cell, Events& events) const {
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const float height = ImGui::GetFontSize() * 1.4F;
    const float number = ImGui::CalcTextSize(fmt::format("{}", input.trace->ranks.back().number).c_str()).x;
    const int stride =
        std::max(1, static_cast<int>(std::ceil((number + ImGui::GetFontSize() * 0.3F) / cell)));
    for (int i = 0; i < shown_ranks_; ++i) {
        const RankIndex rank(first_rank_ + i);
        const bool chosen = rank == input.rank;
        const ImVec2 min = {at.x + cell * static_cast<float>(i), at.y}, max = {min.x + cell, at.y + height};
        ImGui::SetCursorScreenPos(min);
        ImGui::PushID(rank.value);
        if (draw::place_button("rank", {cell, height})) events.rank = rank;
        ImGui::PopID();
        const std::string text = fmt::format("{}", input.trace->ranks[rank.at()].number);
        draw::items::mark("shardmap.rank." + text, text);
        if (ImGui::IsItemHovered()) ImGui::SetTooltip("Rank %s", text.c_str());
        if (chosen || i % stride == 0)
            put_centered(min, max, chosen ? theme::text() : theme::text_dim(), text);
        if (chosen)
            ImGui::GetWindowDrawList()->AddRectFilled({min.x + 1, max.y - 2}, {max.x - 1, max.y},
                                                      theme::accent());
    }
}

void ShardGrid::draw_name(const Input& input, const Row& row, float width, Events& events) const {
    const float font = ImGui::GetFontSize();
    const std::string& unit = input.states->units[row.unit.at()];
    const ImVec2 at = {ImGui::GetWindowPos().x, row.top};
    ImDrawList* draw = ImGui::GetWindowDrawList();
    if (input.selected_unit == row.unit)
        draw->AddRectFilled(at, {input.lanes_right, at.y + row.height}, draw::faded(theme::accent(), 0.22F));
    ImGui::SetCursorScreenPos(at);
    ImGui::PushID(row.unit.value);
    if (draw::place_button("unit", {width, row.height})) events.unit = row.unit;
    ImGui::PopID();
    draw::items::mark("shardmap.unit." + unit, unit);
    const std::string shown = draw::fit_text(unit, width - font * 0.6F);
    // Of rows thinner than a text every few are named.
    const int stride = static_cast<int>(std::ceil(text_row() / row.height));
    const bool named = row.unit.value % stride == 0;
    if ((!named || shown.size() != unit.size()) && ImGui::IsItemHovered())
        ImGui::SetTooltip("%s", unit.c_str());
    if (!named) return;
    const float top = std::max(std::floor(at.y + (row.height - font) / 2), ImGui::GetWindowPos().y);
    draw->AddText({at.x, top}, theme::text(), shown.c_str());
}

void ShardGrid::draw_cells(const Input& input, const Row& row, float left, Events& events) const {
    ImDrawList* draw = ImGui::GetWindowDrawList();
    const ImVec2 mouse = ImGui::GetIO().MousePos;
    for (int i = 0; i < shown_ranks_; ++i) {
        const RankIndex rank(first_rank_ + i);
        const UnitHistory& history = input.states->of(rank, row.unit);
        const ShardChange& now = history.at(input.cursor);
        const float edge = inset(row.height, 1);
        const ImVec2 min = {std::floor(left + row.cell * static_cast<float>(i)) + 1, row.top + edge};
        const ImVec2 max = {std::floor(left + row.cell * static_cast<float>(i + 1)),
                            row.top + row.height - edge};
        const bool held = input.shares->holds(rank, row.unit);
        const ImU32 color = theme::shard_color(now.state);
        if (held) {
            draw->AddRectFilled(min, max, color, 2);
        } else {
            draw->AddRect(min, max, draw::faded(theme::line(), 0.7F), 2);
        }
        // A bar below marks memory that the host program holds, whatever the device does with it.
        if (traces::analysis::holds(history.allocated, input.cursor)) {
            const float thick = std::max(row.height < text_row() ? 1.0F : 2.0F, row.height * 0.12F);
            draw->AddRectFilled({min.x, max.y - thick}, max, theme::text(), 1);
        }
        if (row.cell > ImGui::GetFontSize() * 1.1F && row.height >= text_row())
            put_centered(min, max, draw::text_on(color), letter(now.state));
        if (draw::items::kept())
            draw::items::place(fmt::format("shardmap.cell.{}.{}", input.states->units[row.unit.at()],
                                           input.trace->ranks[rank.at()].number),
                               min, max, held ? name(now.state) : "elsewhere");
        const bool hovered = ImGui::IsWindowHovered() && mouse.x >= min.x && mouse.x < max.x &&
                             mouse.y >= min.y && mouse.y < max.y;
        if (!hovered) continue;
        if (held) {
            state_tip(input, rank, row.unit, input.cursor);
        } else {
            elsewhere_tip(input, rank, row.unit);
        }
        if (ImGui::IsMouseClicked(ImGuiMouseButton_Left)) {
            events.rank = rank;
            events.unit = row.unit;
        }
        if (ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left) && now.event >= 0) events.opened = now.event;
    }
}

void ShardGrid::draw_lane(const Input& input, const Row& row, Events& events) {
    ImDrawList* draw = ImGui::GetWindowDrawList();
    const float width = input.lanes_right - input.lanes_left;
    if (width < 1) return;
    const int columns = std::max(1, static_cast<int>(width) / column_pixels_);
    auto& [key, runs] = folded_[row.unit.at()];
    const StateLane& lane = (*input.lanes)[row.unit.at()];
    if (const Folded wanted{&lane, input.from, input.to, columns}; key != wanted) {
        runs = lane.fold(input.from, input.to, columns);
        key = wanted;
    }
    const float edge = inset(row.height, 2);
    const float top = row.top + edge, bottom = row.top + row.height - edge;
    if (!input.shares->holds(input.rank, row.unit)) {
        if (row.height < text_row()) return;
        draw->AddText({input.lanes_left + 4, std::floor((top + bottom - ImGui::GetFontSize()) / 2)},
                      theme::text_dim(), ("on " + input.shares->holders(row.unit)).c_str());
        return;
    }
    draw->AddRectFilled({input.lanes_left, top}, {input.lanes_right, bottom},
                        theme::shard_color(ShardState::sharded));
    const float step = width / static_cast<float>(columns);
    rectangles_ += static_cast<int>(runs.size());
    for (const StateRun& run : runs) {
        const float x0 = input.lanes_left + step * static_cast<float>(run.first);
        const float x1 = std::max(x0 + 1, x0 + step * static_cast<float>(run.count));
        const float height = (bottom - top) * std::max(0.25F, run.share);
        draw->AddRectFilled({x0, bottom - height}, {x1, bottom}, theme::shard_color(run.state));
    }
    draw_allocated(input, row);
    draw::items::place("shardmap.lane." + input.states->units[row.unit.at()], {input.lanes_left, top},
                       {input.lanes_right, bottom});
    // The lane catches the mouse, so that a drag scrubs outside of it too.
    ImGui::SetCursorScreenPos({input.lanes_left, row.top});
    ImGui::PushID(row.unit.value);
    draw::place_button("lane", {width, row.height});
    ImGui::PopID();
    const auto time = input.from + static_cast<std::int64_t>(
                                       static_cast<double>(ImGui::GetIO().MousePos.x - input.lanes_left) /
                                       width * static_cast<double>(input.to - input.from));
    if (ImGui::IsItemActive()) events.scrub = time;
    if (!ImGui::IsItemHovered()) return;
    events.hovers_lanes = true;
    if (ImGui::IsItemClicked()) events.unit = row.unit;
    state_tip(input, input.rank, row.unit, time);
    if (ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) {
        const ShardChange& now = input.states->of(input.rank, row.unit).at(time);
        if (now.event >= 0) events.opened = now.event;
    }
}

// When the host program held the whole parameters: a thin line below the lane, merged where gaps are below a
// pixel.
void ShardGrid::draw_allocated(const Input& input, const Row& row) {
    const traces::analysis::IntervalSet& held = input.states->of(input.rank, row.unit).allocated;
    const double per_ns = static_cast<double>(input.lanes_right - input.lanes_left) /
                          static_cast<double>(input.to - input.from);
    const auto x_of = [&](std::int64_t time) {
        const std::int64_t shown = std::clamp(time, input.from, input.to) - input.from;
        return input.lanes_left + static_cast<float>(static_cast<double>(shown) * per_ns);
    };
    auto next = std::partition_point(
        held.begin(), held.end(), [&](const traces::analysis::Interval& i) { return i.end <= input.from; });
    const float bottom = row.top + row.height - inset(row.height, 2);
    const float thick = std::max(1.0F, row.height * 0.08F);
    while (next != held.end() && next->start < input.to) {
        const float x0 = x_of(next->start);
        std::int64_t end = next->end;
        const auto pixel = static_cast<std::int64_t>(1.0 / per_ns);
        for (++next; next != held.end() && next->start <= end + pixel; ++next) end = next->end;
        ImGui::GetWindowDrawList()->AddRectFilled({x0, bottom - thick}, {std::max(x0 + 1, x_of(end)), bottom},
                                                  theme::text());
    }
}

}  // namespace shardscope::viewer::panels
