// See job_lanes.h.
#include "viewer/panels/job/job_lanes.h"

#include <algorithm>
#include <cmath>
#include <string>

#include <fmt/core.h>
#include <imgui.h>

#include "viewer/draw/axis.h"
#include "viewer/draw/chart.h"
#include "viewer/draw/format.h"
#include "viewer/draw/items.h"
#include "viewer/draw/text.h"
#include "viewer/theme/theme.h"

namespace shardscope::viewer::panels {
namespace {

using traces::analysis::Interval;

// All lanes in sight together: a software renderer draws no more in a sixtieth of a second.
constexpr float kMostBoxes = 8000;

std::string shown(std::optional<double> value, std::string_view unit) {
    return value ? draw::format_amount(*value, unit) : std::string("unknown");
}

// The ticks of the time below the lanes, since the start of the capture.
void draw_time(Interval time, float left, float width) {
    const float font = ImGui::GetFontSize();
    const ImVec2 at = ImGui::GetCursorScreenPos();
    ImDrawList* draw = ImGui::GetWindowDrawList();
    const draw::LinearScale x{static_cast<double>(time.start), static_cast<double>(time.end),
                              static_cast<double>(left), static_cast<double>(left + width)};
    const int most = std::max(1, static_cast<int>(width / (font * 7)));
    float free = left - font;
    for (const draw::Tick& tick : draw::make_ticks(x.low, x.high, most, draw::AxisUnit::nanoseconds)) {
        const auto place = static_cast<float>(x.pixel(tick.value));
        draw->AddLine({place, at.y}, {place, at.y + font * 0.3F}, theme::line());
        const float wide = draw::width_of(tick.label);
        const float from = std::min(place - wide / 2, left + width - wide);
        if (from < free) continue;
        draw->AddText({from, at.y + font * 0.35F}, theme::text_dim(), tick.label.c_str());
        free = from + wide + font * 0.5F;
    }
    ImGui::Dummy({left + width - at.x, font * 1.5F});
}

}  // namespace

struct JobLanes::Place {
    float label, bar, value, height;  // widths, and the row's height
    std::size_t columns;
    Interval time;
};

void JobLanes::forget() {
    of_.reset();
    folded_.clear();
}

const JobLanes::Columns& JobLanes::folded(const JobLane& lane, std::size_t columns) {
    const auto [it, is_new] = folded_.try_emplace(&lane);
    if (is_new) it->second = lane.curve.fold(columns);
    return it->second;
}

void JobLanes::draw(model::Session& session, const std::shared_ptr<const std::vector<JobMeasure>>& measures,
                    std::size_t measure, Interval time) {
    const JobMeasure& shown = (*measures)[measure];
    const float font = ImGui::GetFontSize();
    const float below = font * 1.8F;
    const ImVec2 room = ImGui::GetContentRegionAvail();
    std::size_t lanes = 0;
    float label = font * 4;
    for (const JobHost& host : shown.hosts) {
        lanes += host.lanes.size();
        for (const JobLane& lane : host.lanes) {
            const std::string text = lane.note.empty() ? lane.label : lane.label + "  " + lane.note;
            label = std::max(label, draw::width_of(text) + font);
        }
    }
    label = std::min(label, room.x * 0.35F);
    const float value = draw::width_of("mean 9,999.99 GB/s") + font * 0.6F;
    const float headings = font * 1.9F * static_cast<float>(shown.hosts.size());
    const float fitting = (room.y - below - headings) / static_cast<float>(std::max<std::size_t>(lanes, 1));
    const float height = std::clamp(fitting, std::round(font * 1.25F), std::round(font * 3));
    ImGui::BeginChild("lanes", {0, std::max(font * 3, room.y - below)});
    const float bar = std::max(font * 3, ImGui::GetContentRegionAvail().x - label - value);
    const float in_sight = std::max(1.0F, std::min(static_cast<float>(lanes), room.y / height));
    const auto columns =
        static_cast<std::size_t>(std::max(8.0F, std::min(bar / 2, kMostBoxes / (in_sight * 2))));
    if (of_ != measures || columns_ != columns) {
        folded_.clear();
        of_ = measures;
        columns_ = columns;
    }
    const Place place{label, bar, value, height, columns, time};
    const float left = ImGui::GetCursorScreenPos().x + label;
    for (const JobHost& host : shown.hosts) {
        draw::heading(host.name.empty() ? "Unknown host" : fmt::format("Host {}", host.name));
        for (const JobLane& lane : host.lanes) draw_lane(session, shown, host, lane, place);
    }
    ImGui::EndChild();
    draw_time(time, left, bar);
}

void JobLanes::draw_lane(model::Session& session, const JobMeasure& measure, const JobHost& host,
                         const JobLane& lane, const Place& place) {
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const float whole = place.label + place.bar + place.value;
    if (!ImGui::IsRectVisible({whole, place.height})) {
        ImGui::Dummy({whole, place.height - ImGui::GetStyle().ItemSpacing.y});
        return;
    }
    const float font = ImGui::GetFontSize();
    ImGui::PushID(&lane);
    const bool clicked = draw::place_button("lane", {whole, place.height - ImGui::GetStyle().ItemSpacing.y});
    ImGui::PopID();
    const bool hovered = ImGui::IsItemHovered();
    const std::string mean = "mean " + draw::format_amount(lane.curve.mean(), measure.unit);
    draw::items::mark(
        fmt::format("job.lane.{}/{}{}{}", host.name, lane.label, lane.note.empty() ? "" : " ", lane.note),
        mean);
    ImDrawList* draw = ImGui::GetWindowDrawList();
    const float height = place.height - 2, middle = at.y + (place.height - font) / 2 - 1;
    const bool chosen = lane.rank.known() && lane.rank == session.rank;
    const std::string name = draw::fit_text(lane.label, place.label - font * 0.5F);
    draw->AddText({at.x, middle}, chosen ? theme::accent() : theme::text(), name.c_str());
    const float used = draw::width_of(name) + font * 0.6F;
    if (!lane.note.empty() && used + font < place.label) {
        draw->AddText({at.x + used, middle}, theme::text_dim(),
                      draw::fit_text(lane.note, place.label - used - font * 0.5F).c_str());
    }
    // --- the curve: known time on a lighter ground, up to the mean solid, up to the highest pale
    const float left = at.x + place.label, bottom = at.y + height;
    const Columns& columns = folded(lane, place.columns);
    const float step = place.bar / static_cast<float>(columns.size());
    const auto tall = [&](float value) {
        if (!(measure.full > 0)) return 0.0F;
        return std::round(std::clamp(value / static_cast<float>(measure.full), 0.0F, 1.0F) * height * 2) / 2;
    };
    draw->AddRectFilled({left, at.y}, {left + place.bar, bottom}, theme::surface());
    for (std::size_t c = 0; c < columns.size();) {
        const auto& column = columns[c];
        const float high = tall(column.highest), solid = tall(column.mean);
        std::size_t end = c + 1;
        while (end < columns.size() && columns[end].known == column.known &&
               tall(columns[end].highest) == high && tall(columns[end].mean) == solid)
            ++end;
        const float x0 = left + step * static_cast<float>(c), x1 = left + step * static_cast<float>(end);
        c = end;
        if (!column.known) continue;
        draw->AddRectFilled({x0, at.y}, {x1, bottom}, theme::raised());
        if (high > solid)
            draw->AddRectFilled({x0, bottom - high}, {x1, bottom}, draw::faded(theme::accent(), 0.4F));
        if (solid > 0) draw->AddRectFilled({x0, bottom - solid}, {x1, bottom}, theme::accent());
    }
    const bool idle = measure.id == "utilization" && lane.curve.zero_percent() >= 100;
    draw->AddText({left + place.bar + place.value - draw::width_of(mean), middle},
                  idle ? theme::bad() : theme::text_dim(), mean.c_str());
    // --- the instant
    model::OpenTrace& entry = *session.current();
    const draw::LinearScale x{static_cast<double>(place.time.start), static_cast<double>(place.time.end),
                              static_cast<double>(left), static_cast<double>(left + place.bar)};
    const float mouse = ImGui::GetIO().MousePos.x;
    const bool over = hovered && mouse >= left && mouse < left + place.bar;
    if (over) entry.cursor = static_cast<std::int64_t>(x.value(static_cast<double>(mouse)));
    if (entry.cursor && *entry.cursor >= place.time.start && *entry.cursor <= place.time.end) {
        const auto line = static_cast<float>(x.pixel(static_cast<double>(*entry.cursor)));
        draw->AddLine({line, at.y}, {line, bottom}, theme::text_dim());
    }
    if (clicked && lane.rank.known()) session.rank = lane.rank;
    if (over && ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) {
        const std::int64_t around = std::max<std::int64_t>((place.time.end - place.time.start) / 50, 500);
        session.go_to({*entry.cursor - around, *entry.cursor + around}, lane.rank);
    }
    if (!hovered) return;
    draw::begin_tip(lane.note.empty() ? lane.label : fmt::format("{}, {}", lane.label, lane.note));
    if (over) {
        draw::tip_row("at", draw::format_duration(static_cast<double>(*entry.cursor)));
        draw::tip_row(measure.title, shown(value_at(lane.curve, *entry.cursor), measure.unit));
    }
    draw::tip_row("mean", draw::format_amount(lane.curve.mean(), measure.unit));
    draw::tip_row("95th percentile", draw::format_amount(lane.curve.percentile(0.95), measure.unit));
    draw::tip_row("highest", draw::format_amount(lane.curve.highest(), measure.unit));
    draw::tip_row("at 0", draw::format_percent(lane.curve.zero_percent()));
    draw::tip_row("sampled", draw::format_duration(lane.curve.seconds() * 1e9));
    if (!host.name.empty()) draw::tip_row("host", draw::shorten_middle(host.name, 60));
    draw::end_tip();
}

}  // namespace shardscope::viewer::panels
