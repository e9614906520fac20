// See path_view.h. A what-if is computed when a slider is released: each is an analysis of its own.
#include "viewer/panels/idle/path_view.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/core.h>
#include <imgui.h>

#include "traces/store/grouped.h"
#include "viewer/draw/format.h"
#include "viewer/draw/items.h"
#include "viewer/draw/text.h"
#include "viewer/model/why_empty.h"
#include "viewer/panels/idle/label_bars.h"
#include "viewer/theme/theme.h"
#include "viewer/widgets/segmented.h"
#include "viewer/widgets/toolbar.h"

namespace shardscope::viewer::panels {
namespace {

using traces::analysis::CriticalPathReport;
using traces::analysis::PathKind;
using traces::analysis::RankPath;

constexpr int kScalable = static_cast<int>(PathKind::earlier_step);  // this kind cannot be scaled

LabelBar bar_of(const RankPath& path, bool chosen) {
    LabelBar bar{path_title(path), draw::format_duration(path.average_step_us * 1e3), {}, chosen};
    for (int k = 0; k < traces::analysis::kPathKinds; ++k) {
        const auto kind = static_cast<PathKind>(k);
        bar.segments.push_back({path.average_us[static_cast<std::size_t>(k)], path_kind_color(kind),
                                std::string(path_kind_title(kind))});
    }
    return bar;
}

void path_tip(const RankPath& path, bool stepped, std::size_t kind) {
    const double us = path.average_us[kind];
    draw::begin_tip(fmt::format("{}: {}", path_title(path), path_kind_title(static_cast<PathKind>(kind))));
    const std::string whole = stepped ? "a step" : "the whole trace";
    draw::tip_row("Time of " + whole, draw::format_duration(us * 1e3),
                  path_kind_color(static_cast<PathKind>(kind)));
    draw::tip_row("Share of " + whole,
                  draw::format_percent(path.average_step_us > 0 ? 100 * us / path.average_step_us : 0));
    draw::end_tip();
}

std::string waits_text(const RankPath& path, bool stepped, bool alone) {
    std::string text;
    const std::string who = path.rank < 0 ? std::string("the path") : fmt::format("rank {}", path.rank);
    for (std::size_t i = 0; i < std::min<std::size_t>(path.ranks.size(), 4); ++i) {
        const traces::analysis::RankTime& other = path.ranks[i];
        text += fmt::format("{}{} {} rank {}", i > 0 ? ", " : "", draw::format_duration(other.us * 1e3),
                            path.rank < 0 ? "on" : "for", other.rank);
    }
    if (text.empty())
        return path.rank < 0 || alone ? "" : fmt::format("On its path {} waits for no other.", who);
    const std::string_view rest = path.ranks.size() <= 4 ? ""
                                  : path.rank < 0        ? " and less on others"
                                                         : " and less for others";
    return fmt::format("Of {} {} {} {}{}.", stepped ? "a step" : "the whole trace", who,
                       path.rank < 0 ? "runs" : "waits", text, rest);
}

}  // namespace

const RankPath* PathView::chosen(const Report& report, const model::Session& session) const {
    if (job_ && report->job && !report->job->steps.empty()) return &*report->job;
    return widgets::chosen_rank(report->ranks, session);
}

void PathView::draw(model::Session& session) {
    const auto report = session.analyses.analysis<CriticalPathReport>(
        "critical path with pieces", session.trace(), model::Session::selection(*session.current()),
        [](const traces::store::Trace& t, const traces::analysis::Selection& s) {
            return traces::analysis::critical_path(t, s, {}, true);
        });
    if (report == nullptr) return widgets::draw_waiting(session, "the critical path");
    if (last_rank_.known() && session.rank != last_rank_) job_ = false;  // the user chose a rank
    last_rank_ = session.rank;
    const RankPath* path = chosen(report, session);
    if (path == nullptr || path->steps.empty()) {
        return draw::note(model::why_empty("path"));
    }
    widgets::draw_limit_note(session);
    const float font = ImGui::GetFontSize(), width = ImGui::GetContentRegionAvail().x;
    const bool wide = width > font * 66;
    const float sliders = wide ? font * 27 : 0;
    const float height = font * 18.5F;
    if (wide) {
        ImGui::BeginChild("paths", {width - sliders - font * 1.5F, height});
        draw_paths(session, report, *path, font * 12);
        ImGui::EndChild();
        ImGui::SameLine(0, font * 1.5F);
        ImGui::BeginChild("what if", {0, height});
        draw_what_if(session, *path);
        ImGui::EndChild();
    } else {
        draw_paths(session, report, *path, font * 8.5F);
        draw_what_if(session, *path);
        ImGui::Dummy({0, font * 0.3F});
    }
    draw_table_of(session, report, *path);
}

// The bars have at most `most` pixels of height, and scroll if they need more.
void PathView::draw_paths(model::Session& session, const Report& report, const RankPath& path, float most) {
    const float font = ImGui::GetFontSize();
    draw::heading(report->stepped
                      ? fmt::format("Critical path of a step: average over {}",
                                    traces::store::counted(static_cast<std::int64_t>(path.steps.size()),
                                                           "step", "steps"))
                      : std::string("Critical path of the whole run"));
    std::vector<const RankPath*> all;
    if (report->job && !report->job->steps.empty()) all.push_back(&*report->job);
    for (const RankPath& rank : report->ranks) all.push_back(&rank);
    std::vector<draw::LegendItem> kinds;
    for (int k = 0; k < traces::analysis::kPathKinds; ++k) {
        const bool any = std::any_of(all.begin(), all.end(), [k](const RankPath* one) {
            return one->average_us[static_cast<std::size_t>(k)] > 0;
        });
        if (any)
            kinds.push_back({std::string(path_kind_title(static_cast<PathKind>(k))),
                             path_kind_color(static_cast<PathKind>(k))});
    }
    legend(kinds);
    std::vector<LabelBar> bars;
    double longest = 0;
    for (const RankPath* one : all) {
        bars.push_back(bar_of(*one, one == &path));
        longest = std::max(longest, one->average_step_us);
    }
    const float wanted = font * (1.6F * static_cast<float>(bars.size()) + 0.2F);
    const LabelBarsHit hit = draw_label_bars("idle.path", bars, longest, std::min(wanted, most));
    if (hit.row) path_tip(*all[*hit.row], report->stepped, *hit.segment);
    if (hit.clicked) {
        const RankPath& clicked = *all[*hit.clicked];
        job_ = clicked.rank < 0;
        if (session.choose_rank(clicked.rank)) last_rank_ = session.rank;
    }
    draw::note(fmt::format(
        "{} {}", waits_text(path, report->stepped, report->ranks.size() == 1),
        report->clocks_disagree > 0
            ? fmt::format(
                  "{} not overlap on the ranks' clocks; there, waiting is computed from durations.",
                  traces::store::counted(report->clocks_disagree, "collective does", "collectives do"))
            : std::string()));
}

void PathView::draw_what_if(model::Session& session, const RankPath& path) {
    draw::heading("What if a kind of time were scaled");
    draw_sliders();
    draw_prediction(session, path);
}

void PathView::draw_sliders() {
    const float font = ImGui::GetFontSize();
    const bool wide = ImGui::GetContentRegionAvail().x > font * 50;
    for (int k = 0; k < kScalable; ++k) {
        const auto kind = static_cast<PathKind>(k);
        auto value = static_cast<float>(sliders_[static_cast<std::size_t>(k)]);
        const float left = wide && k % 2 == 1 ? ImGui::GetContentRegionAvail().x * 0.5F : 0;
        if (left > 0) ImGui::SameLine(left);
        const float start = ImGui::GetCursorPosX();
        ImGui::AlignTextToFramePadding();
        draw::swatch(path_kind_color(kind));
        draw::text(path_kind_title(kind));
        if (ImGui::IsItemHovered()) ImGui::SetTooltip("%s", std::string(path_kind_help(kind)).c_str());
        ImGui::SameLine(start + font * 9.5F);
        ImGui::SetNextItemWidth(font * (wide ? 12.0F : 15.0F));
        ImGui::PushID(k);
        // The factor is drawn over the grab.
        ImGui::PushStyleColor(ImGuiCol_SliderGrab, draw::faded(theme::accent(), 0.45F));
        if (ImGui::SliderFloat("##factor", &value, 0, 2, "x %.2f", ImGuiSliderFlags_None))
            sliders_[static_cast<std::size_t>(k)] = std::clamp(value, 0.0F, 1000.0F);
        ImGui::PopStyleColor();
        draw::items::mark(
            fmt::format("idle.what_if.{}", traces::analysis::kPathKindNames[static_cast<std::size_t>(k)]),
            fmt::format("{:.2f}", value));
        if (ImGui::IsItemDeactivatedAfterEdit()) asked_ = sliders_;
        ImGui::PopID();
    }
}

void PathView::draw_prediction(model::Session& session, const RankPath& path) {
    const float font = ImGui::GetFontSize();
    if (draw::named_button("Nothing scaled", "idle.what_if.reset"))
        sliders_ = asked_ = traces::analysis::kUnscaled;
    ImGui::SameLine(0, font * 0.4F);
    if (draw::named_button("Communication half", "idle.what_if.communication_half")) {
        sliders_ = traces::analysis::kUnscaled;
        sliders_[static_cast<std::size_t>(PathKind::communication)] = 0.5;
        asked_ = sliders_;
    }
    if (asked_ == traces::analysis::kUnscaled) {
        draw::note("Move a slider (Ctrl+click: type a factor) to see what the step would take.");
        return;
    }
    const traces::analysis::PathFactors factors = asked_;
    const auto found = session.analyses.analysis<CriticalPathReport>(
        "critical path what if " + factors_key(factors), session.trace(),
        model::Session::selection(*session.current()),
        [factors](const traces::store::Trace& t, const traces::analysis::Selection& s) {
            return traces::analysis::critical_path(t, s, factors);
        });
    if (found == nullptr) return draw::note("Computing the what-if ...");
    const RankPath* scaled = nullptr;
    if (path.rank < 0 && found->job) scaled = &*found->job;
    for (const RankPath& rank : found->ranks)
        if (rank.rank == path.rank) scaled = &rank;
    if (scaled == nullptr) return;
    const std::string change = predicted_change(*scaled);
    const double before = scaled->whole_step_us, after = scaled->predicted_step_us;
    const std::string said = fmt::format(
        "{}: {} instead of {}{} ({})", path_title(*scaled), draw::format_duration(after * 1e3),
        draw::format_duration(before * 1e3), session.trace()->steps.empty() ? "" : " per step", change);
    draw::text_in(after <= before ? theme::good() : theme::bad(), said);
    draw::items::mark("idle.what_if.prediction", said);
}

void PathView::draw_table_of(model::Session& session, const Report& report, const RankPath& path) {
    static constexpr std::array<std::string_view, 3> kViews = {"By name", "By module", "Every piece"};
    widgets::segmented("idle.path_view", kViews, view_);
    const auto view = static_cast<std::size_t>(view_);
    const auto model = models_[view].of(
        report, fmt::format("{}", path.rank), [&]() -> std::shared_ptr<const tables::TableModel> {
            const bool stepped = !session.trace()->steps.empty();
            if (view == 0) return path_share_table(path, stepped);
            if (view == 1) return path_module_table(path, stepped);
            return std::make_shared<PathPieceTable>(session.trace(), report, path);
        });
    if (model->rows() == 0) return draw::note("No module lies on this path: the trace names none.");
    static constexpr std::array<const char*, 3> kIds = {"idle.path_names", "idle.path_modules",
                                                        "idle.path_pieces"};
    ImGui::SameLine(0, ImGui::GetFontSize());
    const tables::TableEvents events = draw_table(kIds[view], model, states_[view]);
    if (view == 2) {
        if (const auto row = events.go_to()) go_to(session, path.pieces[*row]);
        return;
    }
    if (view == 0 && events.opened) wanted_share_ = *events.opened;
    if (view == 0 && wanted_share_) go_to_longest(session, report, path);
}

// Finds the longest piece of the name that was opened: there may be millions, so the search runs off this
// thread.
void PathView::go_to_longest(model::Session& session, const Report& report, const RankPath& path) {
    // The report is kept alive because its address identifies it.
    using Longest = std::pair<Report, std::vector<std::int64_t>>;
    const auto found = session.analyses.derived<Longest>(
        fmt::format("longest pieces of the path of {} in {}", path.rank,
                    static_cast<const void*>(report.get())),
        {session.trace()}, [report, &path](const auto&) { return Longest(report, longest_pieces(path)); });
    if (found == nullptr) return;
    const std::vector<std::int64_t>* longest = &found->second;
    const std::size_t share = *std::exchange(wanted_share_, std::nullopt);
    if (share >= longest->size() || (*longest)[share] < 0) return;
    go_to(session, path.pieces[static_cast<std::size_t>((*longest)[share])]);
}

void PathView::go_to(model::Session& session, const traces::analysis::PathPiece& piece) {
    model::SelectedEvent event;
    if (piece.event >= 0) event = {model::EventKind::device, piece.event};
    if (piece.call >= 0) event = {model::EventKind::runtime, piece.call};
    if (piece.range >= 0) event = {model::EventKind::range, piece.range};
    last_rank_ = piece.rank;
    session.go_to({piece.from, piece.to}, piece.rank, event);
}

}  // namespace shardscope::viewer::panels
