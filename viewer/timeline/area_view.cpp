// See area_view.h.
#include "viewer/timeline/area_view.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

#include <fmt/core.h>
#include <imgui.h>

#include "viewer/draw/chart.h"
#include "viewer/draw/format.h"
#include "viewer/draw/items.h"
#include "viewer/draw/text.h"
#include "viewer/theme/theme.h"
#include "viewer/timeline/area_table.h"
#include "viewer/timeline/details.h"
#include "viewer/widgets/segmented.h"

namespace shardscope::viewer::timeline {
namespace {

using traces::analysis::GroupBy;

constexpr std::array<std::string_view, 5> kBy = {"Name", "Kind", "Module", "Unit", "Rank"};
constexpr std::size_t kBins = 40;

std::string duration(double ns) {
    return draw::format_duration(ns);
}

// "Area: 12.3 ms on 4 rows", "Statistics of relu", with the time if it is not all of the trace.
std::string title_of(const model::MarkedArea& area, const ResolvedArea& resolved, const TimelinePage& page) {
    const std::string length = duration(static_cast<double>(area.time.length()));
    if (area.name.empty())
        return fmt::format("Area: {} on {} row{}", length, resolved.rows, resolved.rows == 1 ? "" : "s");
    const bool all = area.time.from <= page.whole().from && area.time.to >= page.whole().to;
    return fmt::format("Statistics of {}{}", draw::shorten_middle(area.name, 60), all ? "" : " in " + length);
}

}  // namespace

float AreaView::height(float room) {
    return std::round(std::clamp(room * 0.42F, ImGui::GetFontSize() * 12, ImGui::GetFontSize() * 24));
}

void AreaView::forget(const traces::store::Trace& trace, bool replaced) {
    bin_.forget(trace);
    spread_.forget(trace);
    if (!report_.forget(trace)) return;
    walk_.reset();
    if (replaced) return;  // the old figures stay until the new ones are there
    shown_.reset();
    durations_.reset();
    model_.reset();
    table_.forget_model();
}

void AreaView::update(const model::MarkedArea& marked, const TimelinePage& page) {
    // The events of one name are one row by name.
    if (of_name_ != !marked.name.empty()) {
        of_name_ = !of_name_;
        std::swap(by_, by_other_);
    }
    const auto by = static_cast<GroupBy>(by_);
    const std::string key =
        fmt::format("{} {} {}", static_cast<const void*>(page.trace.get()), page.kept_area.serial(), by_);
    if (key != key_) {
        key_ = key;
        group_.reset();
        table_.chosen.reset();
        chosen_bin_.reset();
    }
    const traces::analysis::Area& area = page.marked_area->area;
    const auto report = report_.of(
        page.trace, key, [area, by](const traces::store::Trace& trace, const std::atomic<bool>& cancel) {
            return traces::analysis::area_report(trace, area, by, cancel);
        });
    // Of a trace that was read again, the old figures stay until the new ones are there.
    const bool same = shown_of_ == marked && shown_by_ == by_;
    if (report != nullptr ? report != shown_ : !same) {
        shown_ = report;
        model_ = report == nullptr
                     ? nullptr
                     : std::make_shared<AreaTable>(report, std::string(kBy[static_cast<std::size_t>(by_)]));
    }
    shown_of_ = marked;
    shown_by_ = by_;
    const std::string of = group_ ? fmt::format("{} group {}", key, *group_) : key;
    const auto durations = spread_.of(
        page.trace, of,
        [area, by, group = group_](const traces::store::Trace& trace, const std::atomic<bool>& cancel) {
            Spread spread{traces::analysis::area_events(trace, area, by, group, cancel), {}};
            spread.bins = traces::analysis::duration_bins(trace, spread.events, kBins);
            return spread;
        });
    if (durations != nullptr || !same) durations_ = durations;
    walk_.reset();
    if (!chosen_bin_ || durations == nullptr) return;
    walk_ = bin_.of(page.trace, fmt::format("{} bin {}", of, *chosen_bin_),
                    [all = durations, bin = *chosen_bin_](const traces::store::Trace& trace,
                                                          const std::atomic<bool>& cancel) {
                        traces::store::EventList events;
                        for (std::size_t i = 0; i < all->events.size() && !cancel; ++i) {
                            const EventTime time = time_of(trace, all->events.event(i));
                            if (all->bins.bin_of(time.end - time.start) == bin)
                                events.add(all->events.event(i));
                        }
                        return events;
                    });
}

std::string AreaView::draw(model::Session& session, TimelinePage& page, ImVec2 size, bool with_event) {
    update(*session.current()->area, page);
    const float font = ImGui::GetFontSize();
    ImGui::PushStyleColor(ImGuiCol_ChildBg, theme::raised());
    ImGui::BeginChild("area", size, false, ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoScrollWithMouse);
    ImGui::PopStyleColor();
    ImGui::SetCursorPos({font * 0.6F, font * 0.4F});
    std::string action = draw_head(session, page, with_event);
    const ImVec2 top = ImGui::GetCursorPos();
    const float height = size.y - top.y - font * 0.3F;
    const float left = std::floor(size.x * 0.66F);
    ImGui::SetCursorPos({font * 0.6F, top.y});
    draw_groups({left - font * 0.6F, height});
    ImGui::SetCursorPos({left + font, top.y});
    draw_histogram(session, page, {size.x - left - font * 1.6F, height});
    ImGui::EndChild();
    return action;
}

std::string AreaView::draw_head(const model::Session& session, const TimelinePage& page, bool with_event) {
    struct Button {
        const char *label, *action, *help;
        bool shown;
    };
    const std::array buttons = {
        Button{"Event", "show_event", "Fields of the selected event", with_event},
        Button{"Zoom", "zoom_to_area", "Zoom to the area's time", true},
        Button{"Limit", "limit_to_area", "Filter all panels by the area's time", true},
        Button{"Copy", "copy_area",
               "Copy the table with tabs between the cells, for a spreadsheet ( Ctrl+C, unless a row is "
               "chosen )",
               true},
        Button{"Copy CSV", "copy_area_csv", "Copy the table as CSV", true},
        Button{"x", "no_area", "Close, and unmark the area ( Escape )", true},
    };
    const float font = ImGui::GetFontSize();
    float width = 0;
    for (const Button& button : buttons) {
        if (button.shown) width += draw::button_width(button.label) + font * 0.3F;
    }
    const model::MarkedArea& area = *session.current()->area;
    const float line = ImGui::GetCursorPosY(), room = ImGui::GetWindowWidth() - width - font * 1.5F;
    const std::string title = title_of(area, *page.marked_area, page);
    ImGui::AlignTextToFramePadding();
    draw::text(draw::fit_text(title, room));
    draw::items::mark("timeline.area.title", title);
    if (ImGui::IsItemHovered()) {
        draw::full_text_tip(
            "An event counts if any part of it lies in the area. Sum, union and exposed are of the parts "
            "inside; "
            "mean, min, max and the histogram are of whole events.");
    }
    const std::string sums = shown_ == nullptr ? "adding up ..." : area_text(shown_->all);
    draw::items::value("timeline.area.sums", sums);
    const float left = room - draw::width_of(title) - font;
    if (left > font * 8) {
        ImGui::SameLine(0, font);
        draw::text_dim(draw::fit_text(sums, left));
    }
    std::string action;
    float x = ImGui::GetWindowWidth() - width - font * 0.3F;
    for (const Button& button : buttons) {
        if (!button.shown) continue;
        ImGui::SetCursorPos({x, line});
        if (draw::named_button(button.label, fmt::format("timeline.area.{}", button.action)))
            action = button.action;
        if (ImGui::IsItemHovered()) draw::full_text_tip(button.help);
        x += ImGui::GetItemRectSize().x + font * 0.3F;
    }
    return action;
}

void AreaView::draw_groups(ImVec2 size) {
    ImGui::BeginChild("groups", size, false, ImGuiWindowFlags_NoScrollbar);
    widgets::segmented("timeline.area.by", kBy, by_);
    if (model_ == nullptr) {
        draw::note("Adding up ...");
    } else if (shown_->groups.empty()) {
        draw::note("No event lies in this area.");
    } else {
        const auto events =
            draw_table("timeline.area.groups", model_, table_, {.filter = false, .name = "area"});
        if (events.clicked) {
            const int group = shown_->groups[*events.clicked].group;
            const bool again = group_ == group && !events.by_key;
            group_ = again ? std::nullopt : std::optional(group);
            if (again) table_.chosen.reset();
            chosen_bin_.reset();
            durations_.reset();
        }
    }
    ImGui::EndChild();
}

void AreaView::draw_histogram(model::Session& session, TimelinePage& page, ImVec2 size) {
    ImGui::BeginChild("durations", size, false, ImGuiWindowFlags_NoScrollbar);
    const float line = ImGui::GetFrameHeightWithSpacing();
    std::string of = "all events";
    if (group_ && shown_ != nullptr) {
        for (const traces::analysis::AreaGroup& group : shown_->groups) {
            if (group.group == *group_) of = group.name.empty() ? "(none)" : group.name;
        }
    }
    ImGui::AlignTextToFramePadding();
    draw::text_dim(draw::fit_text("Durations of " + of, size.x));
    draw::items::mark("timeline.area.of", of);
    if (durations_ == nullptr) {
        draw::note("Adding up ...");
    } else if (durations_->events.size() > 0) {
        const traces::analysis::DurationBins& bins = durations_->bins;
        const std::int64_t most = *std::max_element(bins.counts.begin(), bins.counts.end());
        draw::ChartAxes axes{bins.low, bins.high, draw::axis_top(static_cast<double>(most))};
        axes.x_log = bins.logarithmic;
        axes.y_unit = draw::AxisUnit::count;
        const draw::Chart chart =
            begin_chart("histogram", {size.x, std::max(line * 2, size.y - 2 * line)}, axes);
        draw::items::mark("timeline.area.histogram", fmt::format("{} bins", bins.counts.size()));
        const float step = chart.width() / static_cast<float>(bins.counts.size());
        for (std::size_t bin = 0; bin < bins.counts.size(); ++bin) {
            if (bins.counts[bin] == 0) continue;
            const float x = chart.min.x + step * static_cast<float>(bin);
            const auto y = static_cast<float>(chart.y.pixel(static_cast<double>(bins.counts[bin])));
            const ImVec2 min{x + 1, std::min(y, chart.max.y - 2)},
                max{std::max(x + 2, x + step), chart.max.y};
            const float mouse = ImGui::GetIO().MousePos.x;
            const bool hovered = chart.hovered && mouse >= x && mouse < x + step;
            const bool on = chosen_bin_ == bin;
            chart.draw->AddRectFilled(min, max,
                                      on        ? theme::peak()
                                      : hovered ? theme::accent()
                                                : draw::faded(theme::accent(), 0.7F));
            const std::string range =
                fmt::format("{} to {}", duration(bins.edge(bin)), duration(bins.edge(bin + 1)));
            draw::items::place(fmt::format("timeline.area.bin.{}", bin), {min.x, chart.min.y}, max,
                               draw::format_count(bins.counts[bin]));
            if (!hovered) continue;
            draw::begin_tip(range);
            draw::tip_row("Events", draw::format_count(bins.counts[bin]), theme::accent());
            draw::tip_row("", "click to walk them");
            draw::end_tip();
            if (ImGui::IsMouseClicked(ImGuiMouseButton_Left)) chosen_bin_ = bin;
        }
        draw_walk(session, page);
    }
    ImGui::EndChild();
}

std::string AreaView::bin_text() const {
    const traces::analysis::DurationBins& bins = durations_->bins;
    return fmt::format("{} to {}", duration(bins.edge(*chosen_bin_)), duration(bins.edge(*chosen_bin_ + 1)));
}

void AreaView::draw_walk(model::Session& session, TimelinePage& page) {
    const float font = ImGui::GetFontSize();
    if (!chosen_bin_) {
        ImGui::AlignTextToFramePadding();
        draw::text_dim(draw::fit_text("Click a bar to walk its events ( X, Shift+X )",
                                      ImGui::GetContentRegionAvail().x));
        return;
    }
    if (draw::named_button("<##bin", "timeline.area.previous")) walk(session, page, false);
    ImGui::SameLine(0, font * 0.2F);
    if (draw::named_button(">##bin", "timeline.area.next")) walk(session, page, true);
    ImGui::SameLine(0, font * 0.5F);
    ImGui::AlignTextToFramePadding();
    std::string text = bin_text();
    if (walk_ != nullptr) {
        const std::string count = draw::format_count(static_cast<std::int64_t>(walk_->size()));
        const auto place = walk_->place_of(*page.trace, session.selected);
        text = place ? fmt::format("{} of {}, {}", draw::format_count(static_cast<std::int64_t>(*place) + 1),
                                   count, duration([&] {
                                       const EventTime time = time_of(*page.trace, session.selected);
                                       return static_cast<double>(time.end - time.start);
                                   }()))
                     : fmt::format("{} events of {}", count, text);
    }
    draw::text_dim(draw::fit_text(text, ImGui::GetContentRegionAvail().x));
    draw::items::mark("timeline.area.walk", text);
}

void AreaView::walk(model::Session& session, TimelinePage& page, bool forwards) {
    if (walk_ == nullptr || walk_->size() == 0) return;
    const std::int64_t from = session.current()->visible.from;
    // The first step of a walk goes to the bin's first event, not to the next one in sight.
    const bool begun = walk_->place_of(*page.trace, session.selected).has_value();
    const auto next = !begun     ? std::optional(forwards ? std::size_t{0} : walk_->size() - 1)
                      : forwards ? walk_->after(*page.trace, session.selected, from)
                                 : walk_->before(*page.trace, session.selected, from);
    if (!next) return;
    walked_ = walk_->event(*next);
    page.go_to(session, walked_);
    page.show_closely(*session.current(), walked_);
}

std::string AreaView::copied(bool csv) const {
    if (model_ == nullptr) return "";
    const auto order = table_.order.shared();
    return csv ? tables::table_csv(*model_, order.get()) : tables::table_tsv(*model_, order.get());
}

}  // namespace shardscope::viewer::timeline
