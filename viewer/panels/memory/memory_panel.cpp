// Memory: the curve of one rank by category, or of all ranks, or beside another run, over the timeline's
// visible range; below it what was allocated when, and every allocation (memory_views.h).
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <imgui.h>

#include "traces/schema/sort_rows.h"
#include "traces/store/grouped.h"
#include "viewer/draw/chart.h"
#include "viewer/draw/format.h"
#include "viewer/draw/items.h"
#include "viewer/draw/text.h"
#include "viewer/model/panel.h"
#include "viewer/model/session.h"
#include "viewer/model/why_empty.h"
#include "viewer/panels/memory/memory_chart.h"
#include "viewer/panels/memory/memory_views.h"
#include "viewer/panels/memory/memory_words.h"
#include "viewer/theme/theme.h"
#include "viewer/widgets/segmented.h"
#include "viewer/widgets/toolbar.h"

namespace shardscope::viewer::panels {
namespace {

using traces::analysis::RankMemory;
using traces::schema::MemoryCategory;
using traces::schema::MemorySpace;

constexpr std::size_t kMostLines = 8;  // ranks drawn together: more lines cannot be told apart
constexpr int kPlum = 5;               // a run's colour that is less prominent than the others

// Which memory spaces have events in a trace.
using Spaces = std::array<bool, traces::schema::kMemorySpaces>;
Spaces spaces_of(const traces::store::Trace& trace, const traces::analysis::Selection&) {
    Spaces told{};
    for (const MemorySpace space : trace.memory.space) told[static_cast<std::size_t>(space)] = true;
    return told;
}

struct PoolLines {
    draw::LineCurve reserved, active, allocated;
};

class MemoryPanel final : public model::Panel {
  public:
    std::string_view name() const override { return "memory"; }

    void closed(const traces::store::Trace& trace, const model::TracePtr& successor) override {
        views_.forget(trace, successor);
    }

    void draw(model::Session& session, const model::Frame& frame) override {
        MemoryFacts facts;
        facts.trace = session.trace();
        facts.entry = session.current();
        facts.rank_index = session.rank;
        widgets::draw_choosers(session);
        const auto spaces = session.analyses.analysis<Spaces>("memory spaces", facts.trace, {}, spaces_of);
        if (spaces == nullptr) {
            gather(session, facts);  // all requests are made immediately, so that none waits for its turn
            ImGui::NewLine();
            return widgets::draw_waiting(session, "the memory curve");
        }
        draw_controls(session, *spaces);
        facts.space = space_;
        if (!gather(session, facts)) return widgets::draw_waiting(session, "the memory curve");
        if (facts.memory == nullptr || facts.curve->points.empty()) {
            return draw::note(model::why_empty("memory"));
        }
        // In a low pane on the timeline's axis the chart, which names the peak, comes first.
        const bool low = frame.axis && frame.height < ImGui::GetFontSize() * 26;
        if (!low) draw_headline(facts);
        widgets::draw_limit_note(session);
        const std::vector<MemoryLine> lines = lines_of(session, facts);
        draw_legend(facts, lines);
        for (const traces::analysis::MemoryFailure& failure : facts.memory->failures) draw_failure(failure);

        const float font = ImGui::GetFontSize();
        // Scrolls if the window is too small for both halves.
        // Its scrollbar is as narrow as the timeline's, where the two share their axis.
        ImGui::PushStyleVar(ImGuiStyleVar_ScrollbarSize,
                            frame.axis ? std::round(font * 0.55F) : ImGui::GetStyle().ScrollbarSize);
        ImGui::BeginChild("page");
        ImGui::PopStyleVar();
        const float room = ImGui::GetContentRegionAvail().y - ImGui::GetStyle().ItemSpacing.y;
        const float below = std::max(std::min(font * 19, room * 0.52F), font * 12);
        const std::optional<std::int64_t> cursor = facts.entry->cursor;
        draw_charts(facts, lines, std::max(font * 10, low ? room : room - below), frame.axis);
        if (facts.entry->cursor != cursor) views_.show_cursor();
        ImGui::BeginChild("views", {0, std::max(below, ImGui::GetContentRegionAvail().y)});
        views_.draw(session, facts);
        ImGui::EndChild();
        ImGui::EndChild();
    }

  private:
    // --- what is shown ---

    void draw_controls(model::Session& session, const Spaces& spaces) {
        const float gap = ImGui::GetFontSize() * 1.2F;
        if (session.trace()->ranks.size() > 1) {
            widgets::toggle_button("memory.all_ranks", "All ranks", all_ranks_);
            ImGui::SameLine(0, gap);
        } else {
            all_ranks_ = false;
        }
        std::vector<std::string_view> names;
        std::vector<MemorySpace> told;
        constexpr std::array<std::string_view, traces::schema::kMemorySpaces> kNames = {"Device", "Pinned",
                                                                                        "Host", "Disk"};
        for (std::size_t s = 0; s < spaces.size(); ++s) {
            if (!spaces[s]) continue;
            names.push_back(kNames[s]);
            told.push_back(static_cast<MemorySpace>(s));
        }
        auto at = std::find(told.begin(), told.end(), space_);
        if (at == told.end()) {
            space_ = told.empty() ? MemorySpace::device : told.front();
            at = told.begin();
        }
        if (told.size() > 1) {
            int chosen = static_cast<int>(at - told.begin());
            if (widgets::segmented("memory.space", names, chosen))
                space_ = told[static_cast<std::size_t>(chosen)];
            ImGui::SameLine(0, gap);
        }
        choose_other(session);
        // Ends the line if other controls left it open.
        const bool open = session.trace()->ranks.size() > 1 || told.size() > 1;
        if (open && session.ready().size() < 2) ImGui::NewLine();
    }

    // The choice of the run that this one is compared with: another open run, or none.
    void choose_other(model::Session& session) {
        const model::OpenTrace* other = other_of(session);
        if (session.ready().size() < 2) return;
        draw::flow(ImGui::GetFontSize() * 16);
        const float width = std::min(ImGui::GetFontSize() * 16, ImGui::GetContentRegionAvail().x);
        ImGui::SetNextItemWidth(width);
        const std::string shown = other != nullptr ? "against " + other->name : "against no other run";
        if (ImGui::BeginCombo("##other", draw::fit_in_combo(shown, width).c_str())) {
            if (ImGui::Selectable("no other run", other == nullptr)) other_.reset();
            for (const model::OpenTrace& entry : session.open) {
                if (entry.trace == nullptr || &entry == session.current()) continue;
                ImGui::PushID(&entry);
                if (ImGui::Selectable(entry.name.c_str(), &entry == other)) other_ = entry.trace;
                draw::items::mark("memory.other." + entry.name);
                ImGui::PopID();
            }
            ImGui::EndCombo();
        }
        draw::items::mark("memory.other", other != nullptr ? other->name : "");
    }

    const model::OpenTrace* other_of(const model::Session& session) const {
        const model::TracePtr wanted = other_.lock();
        for (const model::OpenTrace& entry : session.open) {
            if (wanted != nullptr && entry.trace == wanted && &entry != session.current()) return &entry;
        }
        return nullptr;
    }

    // --- the data to draw ---

    using ReportPtr = std::shared_ptr<const traces::analysis::MemoryReport>;
    static ReportPtr report_of(model::Session& session, const model::OpenTrace& entry, MemorySpace space) {
        const traces::analysis::Selection selection = model::Session::selection(entry);
        if (space == MemorySpace::device) return session.analyses.memory(entry.trace, selection);
        return session.analyses.analysis<traces::analysis::MemoryReport>(
            fmt::format("memory of space {}", static_cast<int>(space)), entry.trace, selection,
            [space](const traces::store::Trace& trace, const traces::analysis::Selection& s) {
                return traces::analysis::memory_report(trace, s, space);
            });
    }

    static std::shared_ptr<const draw::LineCurve> total_of(model::Session& session,
                                                           const model::TracePtr& trace,
                                                           traces::store::RankIndex rank, MemorySpace space) {
        return session.analyses.get<draw::LineCurve>(
            fmt::format("total curve/{}/{}", rank.value, static_cast<int>(space)), {trace},
            [=](const auto& t) {
                return draw::line_curve(traces::analysis::allocated_curve(*t.front(), rank, space));
            });
    }

    // False while the report or the curve is being computed.
    bool gather(model::Session& session, MemoryFacts& facts) {
        facts.report = report_of(session, *facts.entry, space_);
        facts.curve = session.analyses.category_curve(facts.trace, facts.rank_index, space_);
        if (space_ == MemorySpace::device) {
            facts.explanation = session.analyses.analysis<traces::analysis::MemoryExplanation>(
                "memory explained", facts.trace, model::Session::selection(*facts.entry),
                traces::analysis::explain_memory);
        }
        if (facts.report == nullptr || facts.curve == nullptr) return false;
        facts.memory = widgets::chosen_rank(facts.report->ranks, session);
        if (facts.memory == nullptr) return true;
        if (facts.explanation != nullptr) {
            for (const traces::analysis::RankExplanation& rank : facts.explanation->ranks) {
                if (rank.memory.rank == facts.memory->rank) facts.explained = &rank;
            }
        }
        facts.other = other_of(session);
        if (facts.other == nullptr) return true;
        facts.other_report = report_of(session, *facts.other, space_);
        if (facts.other_report == nullptr || facts.other_report->ranks.empty()) return true;
        facts.other_memory = &facts.other_report->ranks.front();
        for (const RankMemory& rank : facts.other_report->ranks) {
            if (rank.rank == facts.memory->rank) facts.other_memory = &rank;
        }
        return true;
    }

    std::vector<MemoryLine> lines_of(model::Session& session, const MemoryFacts& facts) {
        std::vector<MemoryLine> lines;
        kept_.clear();
        if (all_ranks_) {
            add_ranks(session, facts, lines);
        } else if (space_ == MemorySpace::device) {
            add_pool(session, facts, lines);
        }
        if (facts.other_memory != nullptr) add_other(session, facts, lines);
        return lines;
    }

    // Adds the ranks that use the most memory, and the chosen one in any case.
    void add_ranks(model::Session& session, const MemoryFacts& facts, std::vector<MemoryLine>& lines) {
        std::vector<const RankMemory*> ranks;
        for (const RankMemory& rank : facts.report->ranks) ranks.push_back(&rank);
        traces::schema::sort_rows(ranks, [&](const RankMemory* a, const RankMemory* b) {
            if ((a == facts.memory) != (b == facts.memory)) return a == facts.memory;
            return a->peak_bytes > b->peak_bytes;
        });
        if (ranks.size() > kMostLines) ranks.resize(kMostLines);
        std::sort(ranks.begin(), ranks.end(),
                  [](const RankMemory* a, const RankMemory* b) { return a->rank < b->rank; });
        for (const RankMemory* rank : ranks) {
            const traces::store::RankIndex index = facts.trace->rank_of_number(rank->rank);
            if (index.known())
                add_line(lines, total_of(session, facts.trace, index, space_),
                         theme::run_color(static_cast<int>(lines.size())), fmt::format("rank {}", rank->rank),
                         0, rank == facts.memory ? 2.5F : 1.5F);
        }
    }

    void add_pool(model::Session& session, const MemoryFacts& facts, std::vector<MemoryLine>& lines) {
        const traces::store::RankIndex rank = facts.rank_index;
        const auto pool = session.analyses.get<PoolLines>(
            fmt::format("pool lines/{}", rank.value), {facts.trace}, [=](const auto& t) {
                traces::analysis::PoolCurves curves = traces::analysis::pool_curves(*t.front(), rank);
                return PoolLines{draw::line_curve(std::move(curves.reserved)),
                                 draw::line_curve(std::move(curves.active)),
                                 draw::line_curve(std::move(curves.allocated))};
            });
        if (pool == nullptr) return;
        const auto add = [&](const draw::LineCurve& line, theme::Color color, const char* label) {
            if (line.curve.empty()) return;
            add_line(lines, std::shared_ptr<const draw::LineCurve>(pool, &line), color, label);
        };
        // The reserved bytes may be far above; then they appear only in the text, so that the curve keeps its
        // height.
        if (facts.memory->reserved_bytes < 2 * facts.memory->peak_bytes)
            add(pool->reserved, theme::text_dim(), "reserved");
        if (!facts.memory->until_last_use) add(pool->active, theme::run_color(kPlum), "active");
        add(pool->allocated, theme::text(), "allocated");
    }

    void add_other(model::Session& session, const MemoryFacts& facts, std::vector<MemoryLine>& lines) {
        const traces::store::Trace& there = *facts.other->trace;
        const traces::store::RankIndex rank = there.rank_of_number(facts.other_memory->rank);
        add_line(lines, total_of(session, facts.other->trace, rank, space_),
                 theme::run_color(facts.other->color), facts.other->name,
                 alignment(*facts.trace, facts.rank_index, there, rank), 2);
    }

    void add_line(std::vector<MemoryLine>& lines, std::shared_ptr<const draw::LineCurve> line,
                  theme::Color color, std::string label, std::int64_t shift = 0, float thickness = 1.5F) {
        if (line == nullptr) return;  // it is still being computed
        lines.push_back({line.get(), color, std::move(label), shift, thickness});
        kept_.push_back(std::move(line));
    }

    // --- drawing ---

    void draw_headline(const MemoryFacts& facts) {
        const RankMemory& memory = *facts.memory;
        const float font = ImGui::GetFontSize();
        const ImVec2 at = ImGui::GetCursorPos();
        widgets::big_number(draw::format_mb(memory.peak_bytes));
        draw::items::mark("memory.value.peak", draw::format_mb(memory.peak_bytes));
        const float right = ImGui::GetItemRectSize().x + font;
        ImGui::SetCursorPos({at.x + right, at.y + font * 0.05F});
        draw::wrapped(fmt::format(
            "peak {} {} memory of rank {}: {} bytes, {}", memory.until_last_use ? "active" : "allocated",
            traces::schema::name(space_), memory.rank, draw::format_count(memory.peak_bytes),
            moment(*facts.trace, facts.rank_index, memory.peak_time_ns)));
        draw::items::mark("memory.value.peak_bytes", fmt::format("{}", memory.peak_bytes));
        ImGui::SetCursorPosX(at.x + right);
        draw::note(space_ == MemorySpace::device ? prediction(*facts.trace, memory) + other_facts(memory)
                                                 : "Counted in the order of the host's program.");
        ImGui::SetCursorPos({at.x, std::max(at.y + font * 2.4F, ImGui::GetCursorPosY())});
        if (draw::items::kept()) {
            draw::items::value("memory.value.peak_time_ns", fmt::format("{}", memory.peak_time_ns));
            for (std::size_t c = 0; c < memory.at_peak.size(); ++c)
                draw::items::value(
                    fmt::format("memory.value.at_peak.{}", traces::schema::kMemoryCategoryNames[c]),
                    fmt::format("{}", memory.at_peak[c]));
        }
    }

    static void draw_failure(const traces::analysis::MemoryFailure& failure) {
        ImGui::PushStyleColor(ImGuiCol_Text, theme::bad());
        draw::text_fit(
            fmt::format("{}: {}", draw::format_duration(static_cast<double>(failure.time_ns)), failure.text));
        ImGui::PopStyleColor();
    }

    // The categories that are ever used, in the order of the stack; then the lines.
    void draw_legend(const MemoryFacts& facts, const std::vector<MemoryLine>& lines) const {
        std::vector<draw::LegendItem> items;
        for (std::size_t c = 0; !all_ranks_ && c < facts.curve->most.size(); ++c) {
            if (facts.curve->most[c] > 0)
                items.push_back({draw::spaced(traces::schema::kMemoryCategoryNames[c]),
                                 theme::category_color(static_cast<MemoryCategory>(c))});
        }
        for (const MemoryLine& line : lines)
            items.push_back({line.shift != 0 ? line.label + " (from the same step)"
                             : all_ranks_    ? line.label
                                             : line.label + " (line)",
                             line.color});
        if (all_ranks_ && facts.report->ranks.size() > kMostLines)
            items.push_back({fmt::format("the fullest of {} ranks", facts.report->ranks.size()), 0});
        legend(items);
    }

    // The whole time on the left; on the right, if there is room, one step allocation by allocation. On the
    // timeline's axis, the whole time alone.
    void draw_charts(const MemoryFacts& facts, const std::vector<MemoryLine>& lines, float height,
                     const std::optional<model::TimeAxis>& axis) {
        const float font = ImGui::GetFontSize(), gap = font * 1.2F;
        const float line = ImGui::GetTextLineHeightWithSpacing();
        const float width = ImGui::GetContentRegionAvail().x;
        const bool beside = !all_ranks_ && !axis && width > font * 66;
        constexpr ImGuiWindowFlags kStill = ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoScrollWithMouse;
        MemoryTimeChart chart;
        chart.entry = facts.entry;
        chart.rank_index = facts.rank_index;
        chart.stack = all_ranks_ ? nullptr : facts.curve.get();
        chart.lines = lines;
        chart.peak = {facts.memory->peak_time_ns, facts.memory->peak_bytes};
        ImGui::BeginChild("time", {beside ? (width - gap) * 0.62F : 0, height}, false, kStill);
        draw::text_dim(all_ranks_ ? "All ranks over time" : "Over time");
        chart.axis = axis;
        draw_memory_over_time("memory.chart", chart, {ImGui::GetContentRegionAvail().x, height - line});
        ImGui::EndChild();
        if (!beside) return;
        ImGui::SameLine(0, gap);
        ImGui::BeginChild("order", {0, height}, false, kStill);
        draw_in_order(facts, height - line);
        ImGui::EndChild();
    }

    void draw_in_order(const MemoryFacts& facts, float height) {
        // The step at the cursor, if there is one.
        std::int64_t time = facts.memory->peak_time_ns;
        if (facts.entry->cursor && draw::point_at(facts.curve->points, *facts.entry->cursor) != nullptr)
            time = *facts.entry->cursor;
        const CurvePart part = part_of_peak(*facts.trace, facts.rank_index, facts.curve->points, time);
        MemoryChart::Input input{facts.trace.get(), facts.rank_index,
                                 std::span(facts.curve->points).subspan(part.first, part.count),
                                 facts.memory};
        input.cursor = facts.entry->cursor;
        const bool at_peak = time == facts.memory->peak_time_ns;
        draw::text_dim(fmt::format("{}: {}, in their order",
                                   part.step >= 0 ? fmt::format("Step {}", part.step)
                                   : at_peak      ? "Around the peak"
                                                  : "Around the cursor",
                                   traces::store::counted(static_cast<std::int64_t>(part.count),
                                                          "allocation or free", "allocations and frees")));
        const auto clicked = in_order_.draw_in_order(input, {ImGui::GetContentRegionAvail().x, height});
        if (clicked) facts.entry->cursor = clicked;
        shown_curve_ = facts.curve;  // kept until the chart has folded the next one
    }

    bool all_ranks_ = false;
    MemorySpace space_ = MemorySpace::device;
    std::weak_ptr<const traces::store::Trace> other_;
    MemoryChart in_order_;
    MemoryViews views_;
    std::shared_ptr<const draw::CategoryCurve> shown_curve_;
    std::vector<std::shared_ptr<const draw::LineCurve>> kept_;  // of this frame's lines
};

}  // namespace

std::unique_ptr<model::Panel> make_memory_panel() {
    return std::make_unique<MemoryPanel>();
}

}  // namespace shardscope::viewer::panels
