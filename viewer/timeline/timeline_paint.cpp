// See timeline_parts.h.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "viewer/draw/format.h"
#include "viewer/draw/text.h"
#include "viewer/theme/theme.h"
#include "viewer/timeline/color_modes.h"
#include "viewer/timeline/painter.h"
#include "viewer/timeline/timeline_parts.h"

namespace shardscope::viewer::timeline {
namespace {

// --- The colours in the timeline of a trace, with their names. No Dear ImGui calls; any thread.

constexpr std::size_t kMost = 14;     // entries, so that they take a line or two
constexpr std::size_t kLongest = 18;  // letters

// The names in the trace; if there are many, those with the most time.
std::vector<draw::LegendItem> make_legend(const TrackPaints& paints) {
    std::vector<draw::LegendItem> items;
    for (const PaintName& name : paints.legend()) {
        if (items.size() == kMost) break;
        items.push_back({draw::shorten_middle(name.name, kLongest), paint_color(name.paint)});
    }
    return items;
}

// The windows of the chosen rank's kept steps.
std::vector<RulerStep> windows_of(const model::Session& session, const TimelinePage& page) {
    std::vector<RulerStep> windows;
    const std::size_t rank = session.rank.at();
    if (page.summary == nullptr || rank >= page.trace->ranks.size()) return windows;
    for (const traces::analysis::RankSummary& one : page.summary->ranks) {
        if (one.rank != page.trace->ranks[rank].number) continue;
        for (const traces::analysis::StepSummary& step : one.steps)
            windows.push_back({step.number, {step.window_start, step.window_end}});
    }
    return windows;
}

}  // namespace

RowHeights row_heights() {
    const float font = ImGui::GetFontSize();
    return {.rank = std::round(font * 1.5F),
            .memory = std::round(font * 2.8F),
            .lane = std::round(font * 1.35F),
            .counter = std::round(font * 2.3F),
            .gap = std::round(font * 0.3F)};
}

void fold_rows(model::Session& session, const TimelinePage& page, const model::TimeView& view,
               FoldedRows& folded, std::size_t most) {
    std::vector<const Row*> rows;
    for (const Row* row : page.rows_in_sight()) {
        const bool strip = row->kind == Row::Kind::group &&
                           page.layout().groups[static_cast<std::size_t>(row->group)].collapsed;
        if (row->kind == Row::Kind::lane || strip) rows.push_back(row);
    }
    const int levels = static_cast<int>(std::round(ImGui::GetFontSize() * 1.35F)) - 2;
    folded.update(
        {.tracks = *page.tracks,
         .layout = page.layout(),
         .rows = std::move(rows),
         .view = view,
         .levels = std::max(1, levels),
         .paints = page.paints,
         .busy_union =
             [&](const RowGroup& group) { return busy_of(session, page.trace, page.tracks, group); },
         .most = most});
}

std::shared_ptr<const TrackPaints> paints_of(
    model::Session& session, const model::TracePtr& trace, const std::shared_ptr<const Tracks>& tracks,
    const std::shared_ptr<const traces::analysis::TraceWaits>& waits) {
    if (session.color_by == model::ColorBy::cause && waits == nullptr) return nullptr;
    return session.analyses.derived<TrackPaints>(
        fmt::format("timeline paints {} {}", static_cast<int>(session.color_by), tracks->result), {trace},
        [tracks, waits, by = session.color_by](const auto& t) {
            return TrackPaints(*t.front(), *tracks, by, waits ? &waits->finder : nullptr);
        });
}

std::shared_ptr<const Lane> busy_of(model::Session& session, const model::TracePtr& trace,
                                    const std::shared_ptr<const Tracks>& tracks, const RowGroup& group) {
    return session.analyses.derived<Lane>(fmt::format("timeline busy {} {}", group.key, tracks->result),
                                          {trace}, [tracks, ids = group.tracks](const auto& t) {
                                              std::vector<const Track*> of;
                                              of.reserve(ids.size());
                                              for (const int id : ids)
                                                  of.push_back(&tracks->tracks[static_cast<std::size_t>(id)]);
                                              return busy_union(*t.front(), of);
                                          });
}

void update_paints(model::Session& session, TimelinePage& page) {
    if (page.tracks == nullptr) return;
    page.paints = paints_of(session, page.trace, page.tracks, page.waits);
    if (page.paints == nullptr || page.paints == page.legend_from) return;
    page.legend_from = page.paints;
    page.legend = make_legend(*page.paints);
}

void paint_timeline(ImDrawList& draw, model::Session& session, TimelinePage& page,
                    const OverlayScene& scene) {
    const model::OpenTrace& entry = scene.entry;
    const model::TimeView view = page.view(entry);
    const RowLayout& layout = page.layout();
    page.memory.update(session.analyses, page.trace, page.rows_in_sight(), view);
    page.counters.update(*page.tracks, page.rows_in_sight(), view);
    fold_rows(session, page, view, page.folded_rows, FoldedRows::kMostRectangles);
    const TimelinePicture picture{.trace = *page.trace,
                                  .tracks = *page.tracks,
                                  .layout = layout,
                                  .folded = page.folded_rows,
                                  .memory = page.memory.all(),
                                  .counters = page.counters,
                                  .paints = page.paints.get(),
                                  .waits = page.waits.get(),
                                  .gaps = page.gaps,
                                  .session = session,
                                  .view = view,
                                  .area = page.area,
                                  .limit = entry.limit,
                                  .hovered = page.hovered,
                                  .with_windows = page.has_windows(),
                                  .windows = windows_of(session, page),
                                  .lit = entry.lit};
    draw.AddRectFilled(page.area.min, page.area.max, theme::surface());
    paint_rows(draw, picture);
    paint_overlays(draw, scene);
    paint_ruler(draw, picture);
    paint_ruler_overlays(draw, scene);
    paint_names(draw, picture);
}

}  // namespace shardscope::viewer::timeline
