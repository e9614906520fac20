// See training_chart.h.
#include "viewer/panels/training/training_chart.h"

#include <algorithm>
#include <cmath>
#include <string>

#include <fmt/core.h>

#include "traces/schema/metric_kinds.h"
#include "viewer/draw/format.h"
#include "viewer/draw/items.h"
#include "viewer/draw/text.h"
#include "viewer/theme/theme.h"

namespace shardscope::viewer::panels {
namespace {

using traces::analysis::MetricPoint;

constexpr std::ptrdiff_t kDottedPoints = 80;  // more in sight have no dots on their line
constexpr std::size_t kTipRuns = 8;           // more runs are counted below those
constexpr float kDragged = 6;                 // pixels: a shorter drag is a click

float radius_of_point() {
    return std::max(2.0F, ImGui::GetFontSize() * 0.15F);
}

// How far from the end of a curve the mouse still points at it, in units of x.
double slack_of(const draw::Chart& chart) {
    return std::abs(chart.x.value(8) - chart.x.value(0));
}

std::string place_of_point(const MetricPoint& point, double time) {
    std::string text;
    if (point.step >= 0) text = place_text(Over::steps, static_cast<double>(point.step)) + ", ";
    if (point.sample >= 0) text += place_text(Over::samples, static_cast<double>(point.sample)) + ", ";
    return text + draw::format_duration(time) + " of the trace";
}

// The curve of the active run or, if it has none, of the first one; nullptr: the card has no curve.
const RunCurve* main_curve(const TrainingCard::Input& input) {
    const RunCurve* shown = nullptr;
    for (const RunCurve& curve : input.chart->curves) {
        if (shown == nullptr || curve.run == input.active) shown = &curve;
    }
    return shown;
}

// " (sum over ranks)"; empty for values of one rank, or that are the same on all.
std::string over_ranks(const MetricChart& chart) {
    const auto is_jobs = [](const RunCurve& curve) { return curve.rank < 0; };
    const std::string_view words = traces::schema::words_of(traces::schema::reduction_of(chart.metric));
    if (words.empty() || std::none_of(chart.curves.begin(), chart.curves.end(), is_jobs)) return "";
    return fmt::format(" ({})", words);
}

// What a curve comes to, in as many words as fit: the best as MetricLook says.
std::string summary_of(const RunCurve& curve, const MetricLook& look, float width) {
    std::string text = value_text(look, curve.y.back()) + " at last";
    if (curve.rank >= 0) text = fmt::format("rank {}: ", curve.rank) + text;
    if (curve.y.size() < 2) return text;
    const MetricPoint& best = curve.point(curve.best);
    for (const std::string& more :
         {fmt::format(", {} {}", look.highest ? "highest" : "lowest", value_text(look, best.value)),
          best.step >= 0 ? " at " + place_text(Over::steps, static_cast<double>(best.step))
                         : std::string()}) {
        if (draw::width_of(text + more) > width) break;
        text += more;
    }
    return text;
}

}  // namespace

float TrainingCard::y_pixel(const draw::Chart& chart, double y) const {
    return std::clamp(static_cast<float>(chart.y.pixel(log_ ? std::log10(y) : y)), chart.min.y, chart.max.y);
}

void TrainingCard::refresh(const Input& input, const MetricLook& look, int columns) {
    if (version_ == input.version && x_ == input.x && wanted_log_ == input.log && columns_ == columns) return;
    version_ = input.version;
    x_ = input.x;
    wanted_log_ = log_ = input.log;
    columns_ = columns;
    any_ = y_range(*input.chart, look, x_, log_, range_);
    if (!any_ && log_) {  // no value is positive
        log_ = false;
        any_ = y_range(*input.chart, look, x_, log_, range_);
    }
    folded_.clear();
    for (const RunCurve& curve : input.chart->curves) {
        Folded& folded = folded_.emplace_back();
        folded.raw = fold_curve_of(curve, curve.y, range_, log_, columns);
        if (!curve.smooth.empty()) folded.smooth = fold_curve_of(curve, curve.smooth, range_, log_, columns);
        folded.lost = columns_without_number(curve, x_, columns);
    }
}

// A strip at the bottom for each run, from its first to its last recorded step.
void TrainingCard::paint_profile(const Input& input, const draw::Chart& chart) const {
    const float height = std::max(2.0F, ImGui::GetFontSize() * 0.18F);
    float bottom = chart.max.y;
    for (const RunCurve& curve : input.chart->curves) {
        if (!curve.profile_from || bottom - height < chart.min.y) continue;
        const auto from = static_cast<float>(chart.x.pixel(*curve.profile_from));
        const auto to = static_cast<float>(chart.x.pixel(*curve.profile_to));
        chart.draw->AddRectFilled({std::floor(from), bottom - height},
                                  {std::max(std::ceil(to), from + 2), bottom},
                                  draw::faded(input.heads[curve.run].color, 0.55F));
        bottom -= height + 1;
    }
}

// A dot at each point, where there are few in sight.
void TrainingCard::paint_points(const RunCurve& curve, const draw::Chart& chart, ImU32 color) const {
    const auto from = std::lower_bound(curve.x.begin(), curve.x.end(), x_.low);
    const auto to = std::upper_bound(from, curve.x.end(), x_.high);
    if (to - from > kDottedPoints) return;
    for (auto at = from; at != to; ++at) {
        const double y = curve.y[static_cast<std::size_t>(at - curve.x.begin())];
        if (!std::isfinite(y) || (log_ && y <= 0)) continue;
        chart.draw->AddCircleFilled({static_cast<float>(chart.x.pixel(*at)), y_pixel(chart, y)},
                                    radius_of_point(), color, 8);
    }
}

void TrainingCard::paint(const Input& input, const draw::Chart& chart) const {
    paint_profile(input, chart);
    for (std::size_t c = 0; c < folded_.size(); ++c) {
        const RunCurve& curve = input.chart->curves[c];
        const ImU32 color = input.heads[curve.run].color;
        const bool is_smooth = !curve.smooth.empty();
        const ImU32 raw = is_smooth ? draw::faded(color, 0.35F) : color;
        folded_line(chart, folded_[c].raw, columns_, raw, is_smooth ? 1.0F : 1.5F);
        folded_line(chart, folded_[c].smooth, columns_, color, 1.8F);
        paint_points(curve, chart, raw);
        // What is not a number is a red mark at the bottom, as wide as the columns that it is in.
        const float radius = radius_of_point(), step = chart.width() / static_cast<float>(columns_);
        for (const ColumnsWithoutNumber& lost : folded_[c].lost) {
            const float from = chart.min.x + step * (static_cast<float>(lost.first) + 0.5F);
            const float to = chart.min.x + step * (static_cast<float>(lost.last) + 0.5F);
            chart.draw->AddRectFilled({from - radius, chart.max.y - 2 * radius}, {to + radius, chart.max.y},
                                      theme::bad(), radius);
        }
    }
    if (input.step) marker_line(chart, *input.step, theme::accent(), "");
}

void TrainingCard::paint_cursor(const Input& input, const MetricLook& look, const draw::Chart& chart,
                                double x, bool tip) const {
    const auto at = std::floor(static_cast<float>(chart.x.pixel(x)));
    chart.draw->AddRectFilled({at, chart.min.y}, {at + 1, chart.max.y}, draw::faded(theme::text(), 0.6F));
    if (tip) draw::begin_tip(look.title + over_ranks(*input.chart));
    std::size_t told = 0;
    for (const RunCurve& curve : input.chart->curves) {
        const auto i = curve.nearest(x, slack_of(chart));
        if (!i) continue;
        const RunHead& head = input.heads[curve.run];
        const double y = curve.y[*i];
        if (std::isfinite(y) && (!log_ || y > 0))
            chart.draw->AddCircleFilled({static_cast<float>(chart.x.pixel(curve.x[*i])), y_pixel(chart, y)},
                                        ImGui::GetFontSize() * 0.28F, head.color, 12);
        if (draw::items::kept()) {
            const std::string name = fmt::format("{}.{}", input.chart->metric, curve.run + 1);
            draw::items::value("training.value." + name, fmt::format("{}", y));
            draw::items::value("training.step." + name, fmt::format("{}", curve.point(*i).step));
            if (!curve.smooth.empty())
                draw::items::value("training.smooth." + name, fmt::format("{}", curve.smooth[*i]));
        }
        if (!tip || ++told > kTipRuns) continue;
        const std::string rank = curve.rank >= 0 ? fmt::format(", rank {}", curve.rank) : std::string();
        std::string value = value_text(look, y);
        if (!curve.smooth.empty()) value += ", smoothed " + value_text(look, curve.smooth[*i]);
        draw::tip_row(draw::shorten_middle(head.name, 44) + rank, value, head.color);
        draw::tip_row("", place_of_point(curve.point(*i), static_cast<double>(curve.point(*i).time)));
    }
    if (!tip) return;
    if (told > kTipRuns) draw::tip_row("", fmt::format("and {} more runs", told - kTipRuns));
    if (told == 0) draw::tip_row("No value here", place_text(input.over, x));
    draw::end_tip();
}

TrainingCard::Done TrainingCard::draw(const Input& input, ImVec2 size) {
    Done done;
    const MetricLook look = look_of(input.chart->metric);
    const float font = ImGui::GetFontSize();
    const ImVec2 corner = ImGui::GetCursorScreenPos();
    ImGui::GetWindowDrawList()->AddRectFilled(corner, {corner.x + size.x, corner.y + size.y},
                                              theme::surface(), font * 0.3F);
    ImGui::PushID(input.chart->metric.data(), input.chart->metric.data() + input.chart->metric.size());
    const ImVec2 inner{corner.x + font * 0.6F, corner.y + font * 0.4F};
    ImGui::SetCursorScreenPos(inner);
    const float room = std::max(font * 2, size.x - font * 1.2F);
    const std::string title = draw::fit_text(look.title, room);
    draw::text(title);
    const float beside = room - draw::width_of(title) - font;
    if (const RunCurve* curve = main_curve(input); curve != nullptr && beside > font * 6) {
        ImGui::SameLine(0, font);
        if (input.heads.size() > 1) draw::swatch(input.heads[curve->run].color);
        draw::text_dim(draw::fit_text(summary_of(*curve, look, beside - font), beside - font));
    }
    ImGui::SetCursorScreenPos({inner.x, ImGui::GetCursorScreenPos().y});
    refresh(input, look, std::clamp(static_cast<int>(room / 2), 16, 800));
    if (!any_) {
        draw::note(input.chart->placeless > 0 && input.chart->curves.empty()
                       ? "This metric is reported without a step or a number of samples; show it over time."
                       : "No value is in this part.");
    } else {
        draw::ChartAxes axes{input.x.low, input.x.high, range_.y_high * look.factor};
        axes.y_low = range_.y_low * look.factor;
        axes.x_unit = input.over == Over::time ? draw::AxisUnit::nanoseconds : draw::AxisUnit::count;
        axes.y_unit = look.axis;
        axes.x_whole = true;
        axes.y_log = log_;
        axes.label_room = draw::width_of("100,000");  // the cards of a column are aligned
        draw::Chart chart = begin_chart(
            "chart", {room, corner.y + size.y - ImGui::GetCursorScreenPos().y - font * 0.3F}, axes);
        draw::items::place("training.chart." + input.chart->metric, chart.min, chart.max,
                           fmt::format("{} curves", input.chart->curves.size()));
        // From here on y is in the metric's own unit.
        const auto y = [&](double value) { return log_ ? std::log10(value) : value; };
        chart.y = {y(range_.y_low), y(range_.y_high), chart.max.y, chart.min.y};
        const ImVec2 mouse = ImGui::GetIO().MousePos, from = ImGui::GetIO().MouseClickedPos[0];
        const double x = chart.x.value(std::clamp(mouse.x, chart.min.x, chart.max.x));
        chart.draw->PushClipRect({chart.min.x - font * 0.3F, chart.min.y},
                                 {chart.max.x + font * 0.3F, chart.max.y}, true);
        paint(input, chart);
        const bool held = ImGui::IsItemActive(), dragged = std::abs(mouse.x - from.x) > kDragged;
        const double x_from = chart.x.value(std::clamp(from.x, chart.min.x, chart.max.x));
        if (held && dragged) {
            chart.draw->AddRectFilled({std::clamp(from.x, chart.min.x, chart.max.x), chart.min.y},
                                      {std::clamp(mouse.x, chart.min.x, chart.max.x), chart.max.y},
                                      draw::faded(theme::accent(), 0.25F));
        }
        const bool released = ImGui::IsItemDeactivated() && ImGui::GetIO().MouseReleased[0];
        if (released && dragged && x != x_from) done.zoom = XRange{std::min(x, x_from), std::max(x, x_from)};
        if (released && !dragged && chart.hovered) {
            float best = 1e9F;
            for (const RunCurve& curve : input.chart->curves) {
                const auto i = curve.nearest(x, slack_of(chart));
                if (!i) continue;
                const bool finite = std::isfinite(curve.y[*i]) && (!log_ || curve.y[*i] > 0);
                const float off = finite ? std::abs(y_pixel(chart, curve.y[*i]) - mouse.y) : 1e8F;
                if (off >= best) continue;
                best = off;
                done.picked = Picked{curve.run, curve.point(*i)};
            }
        }
        if (chart.hovered) done.cursor = x;
        if (const auto cursor = chart.hovered ? std::optional(x) : input.cursor;
            cursor && *cursor >= input.x.low && *cursor <= input.x.high)
            paint_cursor(input, look, chart, *cursor, chart.hovered);
        chart.draw->PopClipRect();
    }
    ImGui::PopID();
    ImGui::SetCursorScreenPos(corner);
    ImGui::Dummy(size);
    return done;
}

}  // namespace shardscope::viewer::panels
