// Operators: what the host program calls, and the cost of each on the host and on the device. Kernels: the
// device's work by name, with durations and, if known, occupancy; launch sizes; and the copies. Both show the
// largest as a bar of shares, all in a table, and under it the place of the chosen row's events in the
// timeline.
//
// For scripts, with the panel's name as ID: "ID.shares", the table "ID"; "ID.longest", "ID.previous",
// "ID.next" and "ID.occurrence" ("3 of 32") of the line under it.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>
#include <imgui.h>

#include "traces/store/grouped.h"
#include "viewer/draw/chart.h"
#include "viewer/draw/format.h"
#include "viewer/draw/items.h"
#include "viewer/draw/short_name.h"
#include "viewer/draw/text.h"
#include "viewer/model/panel.h"
#include "viewer/model/session.h"
#include "viewer/panels/work/launch_view.h"
#include "viewer/panels/work/operator_rows.h"
#include "viewer/tables/table.h"
#include "viewer/widgets/segmented.h"
#include "viewer/widgets/toolbar.h"

namespace shardscope::viewer {
namespace {

using traces::KernelsReport;
using traces::OperatorsReport;
using traces::RankKernels;
using traces::RankOperators;

// --- The bar of shares.

// The name with its share if both fit, else as much of the name as fits.
std::string label_of(const NameShare& part, float room) {
    if (room < ImGui::GetFontSize() * 3) return {};
    const std::string share = fmt::format(" {:.0f} %", part.percent);
    const float left = room - ImGui::CalcTextSize(share.c_str()).x;
    const bool both = left > 0 && fit_text(part.name, left) == part.name;
    return both ? part.name + share : fit_text(part.name, room);
}

// As wide as the room left. Returns the table's row of the part that was clicked.
std::optional<std::size_t> draw_share_bar(const char* id, std::span<const NameShare> parts) {
    if (parts.empty()) return {};
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const ImVec2 size = {ImGui::GetContentRegionAvail().x, ImGui::GetFontSize() * 1.7F};
    std::vector<Segment> segments;
    double whole = 0;
    for (const NameShare& part : parts) {
        const float room = size.x * static_cast<float>(part.percent / 100) - ImGui::GetFontSize() * 0.8F;
        segments.push_back({part.us, part.color, label_of(part, room)});
        whole += part.us;
    }
    const int hovered = stacked_bar(at, size, segments, whole, true);
    place_button(id, size);
    const bool clicked = ImGui::IsItemClicked();
    items::mark(id);
    if (hovered < 0) return {};
    const NameShare& part = parts[static_cast<std::size_t>(hovered)];
    begin_tip(part.name);
    tip_row("Device time", format_duration(part.us * 1e3), part.color);
    tip_row("Share", format_percent(part.percent));
    end_tip();
    return clicked && part.row >= 0 ? std::optional(static_cast<std::size_t>(part.row)) : std::nullopt;
}

// --- The line under the table: buttons go to the longest of the chosen row's events, and to the previous and
// next one from the selected event.

// Rows of DeviceEvents or HostRanges, sorted by start.
using Occurrences = std::shared_ptr<const std::vector<std::uint32_t>>;

TimeRange time_of(const traces::Trace& trace, EventKind kind, std::uint32_t row) {
    if (kind == EventKind::device) return {trace.device.start[row], trace.device.end[row]};
    return {trace.ranges.start[row], trace.ranges.end[row]};
}

void go_to(Session& session, EventKind kind, std::uint32_t row) {
    session.go_to(time_of(*session.trace(), kind, row), session.rank, {kind, static_cast<std::int64_t>(row)});
}

bool button(const char* id, const char* name, const char* label) {
    return named_button(label, fmt::format("{}.{}", id, name));
}

void go_to_longest(Session& session, EventKind kind, const Occurrences& events) {
    if (events == nullptr || events->empty()) return;
    const traces::Trace& trace = *session.trace();
    go_to(session, kind,
          *std::max_element(events->begin(), events->end(), [&](std::uint32_t a, std::uint32_t b) {
              return time_of(trace, kind, a).length() < time_of(trace, kind, b).length();
          }));
}

// `events` is nullptr during the search for them.
void draw_occurrences(const char* id, Session& session, const std::string& name, EventKind kind,
                      const Occurrences& events) {
    const float font = ImGui::GetFontSize();
    ImGui::AlignTextToFramePadding();
    if (name.empty()) {
        return text_dim(
            "Click a row to step through its events in the timeline; double-click goes to the longest.");
    }
    const float buttons = font * 24;
    const std::string shown = fit_text(name, std::max(font * 8, ImGui::GetContentRegionAvail().x - buttons));
    text(shown);
    if (shown != name && ImGui::IsItemHovered()) full_text_tip(name);
    ImGui::SameLine(0, font);
    if (events == nullptr || events->empty())
        return text(events == nullptr ? "searching for its events ..."
                                      : "has no event in the current selection");
    const bool known = session.selected.kind == kind;
    const auto selected = static_cast<std::uint32_t>(std::max<std::int64_t>(0, session.selected.index));
    const auto next = known ? std::upper_bound(events->begin(), events->end(), selected) : events->begin();
    const auto here = known ? std::lower_bound(events->begin(), events->end(), selected) : events->end();
    const bool on_one = here != events->end() && *here == selected;
    if (button(id, "longest", "Longest")) go_to_longest(session, kind, events);
    ImGui::SameLine(0, font * 0.4F);
    ImGui::BeginDisabled(!known || here == events->begin());
    if (button(id, "previous", "Previous")) go_to(session, kind, *std::prev(here));
    ImGui::EndDisabled();
    ImGui::SameLine(0, font * 0.4F);
    ImGui::BeginDisabled(next == events->end());
    if (button(id, "next", known ? "Next" : "First")) go_to(session, kind, *next);
    ImGui::EndDisabled();
    ImGui::SameLine(0, font);
    const std::string count =
        on_one ? fmt::format("{} of {}", format_count(here - events->begin() + 1),
                             format_count(static_cast<std::int64_t>(events->size())))
               : traces::counted(static_cast<std::int64_t>(events->size()), "event", "events");
    text(count);
    items::mark(fmt::format("{}.occurrence", id), count);
}

// --- The panels.

// Shares, table and line of one rank of a report.
class NamedWork {
  public:
    struct Rows {
        std::shared_ptr<const TableModel> model;
        std::vector<NameShare> shares;
    };
    struct Chosen {
        std::string name;
        Occurrences events;  // nullptr: not found yet
    };

    explicit NamedWork(const char* id, EventKind kind) : id_(id), kind_(kind) {}

    // make() returns the Rows; called when the report or the rank changes.
    template <class Make>
    void take(const std::shared_ptr<const void>& report, const void* rank, const Make& make) {
        if (report_ == report && rank_ == rank) return;
        report_ = report;
        rank_ = rank;
        rows_ = make();
    }

    // `chosen`: asks for the row's events.
    void draw(Session& session, const std::function<Chosen(std::size_t row)>& chosen) {
        if (const auto row = draw_share_bar(fmt::format("{}.shares", id_).c_str(), rows_.shares)) {
            state_.chosen = row;
            state_.scroll_to_chosen = true;
        }
        const float below = ImGui::GetFrameHeightWithSpacing();
        const float height = ImGui::GetContentRegionAvail().y - below - ImGui::GetFrameHeightWithSpacing();
        const TableEvents events = draw_table(id_, rows_.model, state_, {.size = {0, height}});
        Chosen now;
        if (state_.chosen && *state_.chosen < rows_.model->rows()) now = chosen(*state_.chosen);
        if (events.opened) wants_longest_ = true;
        if (wants_longest_ && now.events != nullptr) {
            wants_longest_ = false;
            go_to_longest(session, kind_, now.events);
        }
        ImGui::PushID(id_);
        draw_occurrences(id_, session, now.name, kind_, now.events);
        ImGui::PopID();
        name_ = now.name;
    }

    const std::string& name() const { return name_; }  // of the chosen row; empty: none

  private:
    const char* id_;
    EventKind kind_;
    std::shared_ptr<const void> report_;
    const void* rank_ = nullptr;
    Rows rows_;
    TableState state_;
    std::string name_;
    bool wants_longest_ = false;
};

class OperatorsPanel final : public Panel {
  public:
    std::string_view name() const override { return "operators"; }

    void draw(Session& session, const Frame&) override {
        draw_choosers(session);
        toggle_button("operators.by_shape", "By input shapes", by_shape_);
        const TracePtr trace = session.trace();
        traces::Selection selection = Session::selection(*session.current());
        const auto report = session.analyses.analysis<OperatorsReport>(
            by_shape_ ? "operators by shape" : "operators", trace, selection,
            [by_shape = by_shape_](const traces::Trace& t, const traces::Selection& s) {
                return traces::operators_report(t, s, by_shape);
            });
        if (report == nullptr) return draw_waiting(session, "the operators");
        const RankOperators* rank = chosen_rank(report->ranks, session);
        if (rank == nullptr || rank->operators.empty()) {
            return note(
                "This trace holds no operators of this rank in the current selection. They are host ranges: "
                "record with NVTX ranges (torch.autograd.profiler.emit_nvtx) or with the profiler's CPU "
                "activity.");
        }
        draw_limit_note(session);
        const bool by_shape = report->by_shape;
        rows_.take(report, rank, [&] {
            return NamedWork::Rows{operator_table(*rank, by_shape), operator_shares(*rank)};
        });
        heading(fmt::format("Rank {}: {} of {}, {} on the device", rank->rank,
                            traces::counted(rank->calls, "call", "calls"),
                            traces::counted(rank->distinct, "operator", "operators"),
                            format_duration(static_cast<double>(rank->device_self))));
        selection.rank = rank->rank;
        rows_.draw(session, [&](std::size_t i) {
            const traces::OperatorStats& row = rank->operators[i];
            const std::string name =
                row.shapes.empty() ? std::string(row.name) : fmt::format("{} {}", row.name, row.shapes);
            return NamedWork::Chosen{
                name, session.analyses.analysis<std::vector<std::uint32_t>>(
                          fmt::format("calls of operator {} {}", by_shape, name), trace, selection,
                          [row, by_shape](const traces::Trace& t, const traces::Selection& s) {
                              return traces::operator_calls(t, s, row.name, row.shapes, by_shape);
                          })};
        });
    }

  private:
    bool by_shape_ = false;
    NamedWork rows_{"operators", EventKind::range};
};

class KernelsPanel final : public Panel {
  public:
    std::string_view name() const override { return "kernels"; }
    bool busy() const override { return details_.busy(); }

    void draw(Session& session, const Frame&) override {
        draw_choosers(session);
        static constexpr std::array<std::string_view, 3> kViews = {"By name", "By launch size", "Copies"};
        if (segmented("kernels.show", kViews, view_) && view_ == launches && !rows_.name().empty())
            details_.show_only(readable_name(rows_.name()));
        if (view_ != names) {
            draw_limit_note(session);
            note("A double-click shows the longest on the timeline.");
            return view_ == launches ? details_.draw_launches(session) : details_.draw_copies(session);
        }
        const TracePtr trace = session.trace();
        traces::Selection selection = Session::selection(*session.current());
        const auto report = session.analyses.analysis<KernelsReport>(
            "kernels", trace, selection,
            [](const traces::Trace& t, const traces::Selection& s) { return traces::kernels_report(t, s); });
        if (report == nullptr) return draw_waiting(session, "the kernels");
        const RankKernels* rank = chosen_rank(report->ranks, session);
        if (rank == nullptr || rank->kernels.empty()) {
            return note(
                "This trace holds no kernels of this rank in the current selection. They come from the "
                "device's side of the profiler: record with CUDA activity.");
        }
        draw_limit_note(session);
        rows_.take(report, rank, [&] { return NamedWork::Rows{kernel_table(*rank), kernel_shares(*rank)}; });
        heading(fmt::format("Rank {}: {} of {}, {}", rank->rank,
                            traces::counted(rank->count, "kernel", "kernels"),
                            traces::counted(rank->distinct, "name", "names"),
                            format_duration(static_cast<double>(rank->total))));
        selection.rank = rank->rank;
        rows_.draw(session, [&](std::size_t i) {
            const std::string name(rank->kernels[i].name);
            return NamedWork::Chosen{name, session.analyses.analysis<std::vector<std::uint32_t>>(
                                               "events of kernel " + name, trace, selection,
                                               [name](const traces::Trace& t, const traces::Selection& s) {
                                                   return traces::kernel_events(t, s, name);
                                               })};
        });
    }

  private:
    enum View { names, launches, copies };  // indices of the buttons
    int view_ = names;
    LaunchView details_;
    NamedWork rows_{"kernels", EventKind::device};
};

}  // namespace

std::unique_ptr<Panel> make_operators_panel() {
    return std::make_unique<OperatorsPanel>();
}

std::unique_ptr<Panel> make_kernels_panel() {
    return std::make_unique<KernelsPanel>();
}

}  // namespace shardscope::viewer
