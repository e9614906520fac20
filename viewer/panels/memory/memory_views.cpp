// See memory_views.h.
#include "viewer/panels/memory/memory_views.h"

#include <algorithm>
#include <vector>

#include <fmt/core.h>
#include <imgui.h>

#include "traces/store/grouped.h"
#include "viewer/draw/format.h"
#include "viewer/draw/items.h"
#include "viewer/draw/text.h"
#include "viewer/panels/memory/allocation_table.h"
#include "viewer/widgets/segmented.h"
#include "viewer/widgets/toolbar.h"

namespace shardscope::viewer::panels {
namespace {

using traces::analysis::Allocations;
using traces::analysis::MemoryReport;
using traces::analysis::RankMemory;

void dim_line(const std::string& line) {
    ImGui::AlignTextToFramePadding();
    draw::text_fit_dim(line);
}

std::string choice_title(HolderKind kind) {
    return kind == HolderKind::stack ? std::string("By requesting line")
                                     : fmt::format("By {}", holder_title(kind));
}

// On this line if there is room, else on one of its own.
void dim_sentence(const std::string& sentence) {
    draw::flow(ImGui::CalcTextSize(sentence.c_str()).x);
    dim_line(sentence);
}

// An instant without a change, in the same state as `time`: just after the last change, so that one report
// answers for every cursor up to the next change.
std::int64_t quiet_instant(const draw::CategoryCurve& curve, std::int64_t time) {
    const traces::analysis::MemoryPoint* point = draw::point_at(curve.points, time);
    if (point == nullptr) return time;
    const traces::analysis::MemoryPoint* next = point + 1;
    const bool room = next == curve.points.data() + curve.points.size() || next->time > point->time + 1;
    return room ? point->time + 1 : point->time;
}

const RankMemory* of_rank(const MemoryReport& report, int rank) {
    const auto at = std::find_if(report.ranks.begin(), report.ranks.end(),
                                 [&](const RankMemory& r) { return r.rank == rank; });
    return at != report.ranks.end() ? &*at : nullptr;
}

}  // namespace

void MemoryViews::draw(model::Session& session, const MemoryFacts& facts) {
    const bool device = facts.space == traces::schema::MemorySpace::device;
    std::vector<View> views = {View::live};
    std::vector<std::string_view> names = {"Live memory"};
    const auto offer = [&](View view, std::string_view name) {
        views.push_back(view);
        names.push_back(name);
    };
    if (device && facts.explained != nullptr && !facts.explained->steps.empty()) offer(View::steps, "Steps");
    offer(View::allocations, "Allocations");
    if (facts.report->ranks.size() > 1) offer(View::ranks, "Ranks");
    if (device) offer(View::pool, "Pool");
    if (facts.other != nullptr) offer(View::other_run, "Other run");
    if (std::find(views.begin(), views.end(), view_) == views.end()) view_ = View::live;
    int chosen = static_cast<int>(std::find(views.begin(), views.end(), view_) - views.begin());
    if (widgets::segmented("memory.view", names, chosen)) view_ = views[static_cast<std::size_t>(chosen)];
    ImGui::SameLine(0, ImGui::GetFontSize() * 1.5F);
    switch (view_) {
        case View::live:
            return draw_live(session, facts);
        case View::steps:
            return draw_steps(session, facts);
        case View::allocations:
            return draw_allocations(session, facts);
        case View::ranks:
            return draw_ranks(session, facts);
        case View::pool:
            return draw_pool(facts);
        case View::other_run:
            return draw_other_run(facts);
    }
}

std::shared_ptr<const MemoryReport> MemoryViews::at_cursor(model::Session& session,
                                                           const MemoryFacts& facts) {
    const Instant wanted{facts.trace, facts.memory->rank, facts.space,
                         quiet_instant(*facts.curve, *facts.entry->cursor)};
    // One request at a time: a moving cursor does not queue a hundred.
    if (!waiting_ && wanted != shown_) {
        asked_ = wanted;
        waiting_ = true;
    }
    // Asked for in every frame, so that it is made for the successor of a growing trace, too.
    if (asked_.trace != nullptr) {
        const traces::analysis::Selection instant{
            .rank = asked_.rank, .from_ns = asked_.time, .to_ns = asked_.time + 1};
        const auto space = asked_.space;
        const auto report = session.analyses.analysis<MemoryReport>(
            fmt::format("memory at/{}", static_cast<int>(space)), asked_.trace, instant,
            [space](const traces::store::Trace& trace, const traces::analysis::Selection& selection) {
                return traces::analysis::memory_report(trace, selection, space);
            });
        if (report != nullptr) {
            instant_ = report;
            shown_ = asked_;
            waiting_ = false;
        } else if (!session.analyses.failure().empty()) {
            waiting_ = false;
        }
    }
    const bool fits =
        shown_.trace == wanted.trace && shown_.rank == wanted.rank && shown_.space == wanted.space;
    return fits ? instant_ : nullptr;
}

void MemoryViews::forget(const traces::store::Trace& trace, const model::TracePtr& successor) {
    if (asked_.trace.get() == &trace) asked_ = {};
    if (shown_.trace.get() == &trace) {
        shown_.trace = successor;  // its report stays until that of the successor is there
        shown_.time = -1;
    }
    if (asked_.trace == nullptr) waiting_ = false;
    if (shown_.trace == nullptr) instant_.reset();
    // The table of allocations reads the trace.
    allocations_model_.forget();
    allocations_.forget_model();
}

bool MemoryViews::choose_kind(const char* id, const std::vector<HolderKind>& told, HolderKind& kind) {
    bool changed = false;
    ImGui::SetNextItemWidth(ImGui::GetFontSize() * 9);
    if (ImGui::BeginCombo(fmt::format("##{}", id).c_str(), choice_title(kind).c_str())) {
        for (const HolderKind other : told) {
            if (ImGui::Selectable(choice_title(other).c_str(), other == kind)) {
                kind = other;
                changed = true;
            }
            draw::items::mark(fmt::format("{}.{}", id, holder_title(other)));
        }
        ImGui::EndCombo();
    }
    draw::items::mark(id, holder_title(kind));
    return changed;
}

void MemoryViews::draw_live(model::Session& session, const MemoryFacts& facts) {
    constexpr std::string_view kWhen[] = {"At the peak", "At the cursor"};
    widgets::segmented("memory.at", kWhen, at_cursor_);
    ImGui::SameLine(0, ImGui::GetFontSize());
    std::shared_ptr<const MemoryReport> report = facts.report;
    const RankMemory* memory = facts.memory;
    if (at_cursor_ == 1 && !facts.entry->cursor) {
        dim_line("Click on a curve to put the cursor there.");
        return;
    }
    if (at_cursor_ == 1) {
        report = at_cursor(session, facts);
        memory = report != nullptr ? of_rank(*report, facts.memory->rank) : nullptr;
        if (memory == nullptr) return widgets::draw_waiting(session, "what is allocated at the cursor");
        dim_line(fmt::format("{} live at {}", draw::format_mb(memory->peak_bytes),
                             draw::format_duration(static_cast<double>(*facts.entry->cursor))));
    } else {
        dim_sentence(facts.explained != nullptr ? moment_sentence(*facts.explained) : "");
    }
    draw::items::value("memory.value.live_bytes", fmt::format("{}", memory->peak_bytes));

    const float font = ImGui::GetFontSize(), gap = font * 1.2F;
    const ImVec2 left = ImGui::GetContentRegionAvail();
    const std::string variant = fmt::format("{}/{}", memory->rank, static_cast<int>(facts.space));
    const bool predicted = has_prediction(*memory);
    const float least_categories = font * (predicted ? 40.0F : 31.0F), least_holders = font * 24;
    const bool two = left.x > least_categories + 2 * (gap + least_holders);
    const bool one = left.x > font * 50;
    const float categories =
        !one ? left.x : std::max(two ? least_categories : 0.0F, left.x * (two ? 0.34F : 0.5F));
    ImGui::BeginChild("categories", {categories, left.y});
    draw_table("memory.categories",
               categories_model_.of(report, variant, [&] { return category_table(*memory); }), categories_,
               {.filter = false, .name = "memory by category"});
    ImGui::EndChild();
    if (!one) return;
    ImGui::SameLine(0, gap);
    ImGui::BeginChild("holders", {two ? (left.x - categories - 2 * gap) / 2 : 0, left.y});
    draw_holders(facts, report, *memory, 0);
    ImGui::EndChild();
    if (!two) return;
    ImGui::SameLine(0, gap);
    ImGui::BeginChild("more holders", {0, left.y});
    draw_holders(facts, report, *memory, 1);
    ImGui::EndChild();
}

void MemoryViews::draw_holders(const MemoryFacts& facts, const std::shared_ptr<const MemoryReport>& report,
                               const RankMemory& memory, std::size_t place) {
    Holders& holders = holders_[place];
    const std::vector<HolderKind> told = told_kinds(memory);
    if (told.empty()) {
        return draw::note(
            "This trace does not record what these bytes are for. A memory snapshot of PyTorch with stacks, "
            "or a run of ours, names modules, units or the lines that requested them.");
    }
    const bool here = std::find(told.begin(), told.end(), holders.kind) != told.end();
    if (!holders.chosen || !here) holders.kind = told[std::min(place, told.size() - 1)];
    const std::string id = place == 0 ? "memory.holders" : "memory.more_holders";
    if (choose_kind((id + ".by").c_str(), told, holders.kind)) holders.chosen = true;
    const bool filter = ImGui::GetContentRegionAvail().x > ImGui::GetFontSize() * 26;
    if (filter) ImGui::SameLine();
    const std::string variant =
        fmt::format("{}/{}/{}", memory.rank, static_cast<int>(facts.space), static_cast<int>(holders.kind));
    const tables::TableEvents events = draw_table(
        id.c_str(), holders.model.of(report, variant, [&] { return holder_table(memory, holders.kind); }),
        holders.state, {.filter = filter, .name = fmt::format("memory by {}", holder_title(holders.kind))});
    const auto& rows = holders_of(memory, holders.kind);
    if (events.hovered && *events.hovered < rows.size() && !rows[*events.hovered].stack.empty()) {
        ImGui::SetTooltip("%s", rows[*events.hovered].stack.c_str());
    }
}

void MemoryViews::draw_steps(model::Session& session, const MemoryFacts& facts) {
    dim_line("Double-click a step to see it on the timeline.");
    const auto model = steps_model_.of(facts.explanation, fmt::format("{}", facts.memory->rank),
                                       [&] { return step_table(*facts.explained); });
    const tables::TableEvents events =
        draw_table("memory.steps", model, steps_, {.filter = false, .name = "memory by step"});
    const auto row = events.opened ? events.opened : events.clicked;
    if (!row) return;
    const std::int64_t number = facts.explained->steps[*row].step;
    for (const traces::store::Step& step : facts.trace->steps) {
        if (step.rank != facts.rank_index || step.number != number) continue;
        if (events.opened) return session.go_to({step.start, step.end}, facts.rank_index);
        facts.entry->visible = {step.start, std::max(step.end, step.start + 1)};
    }
}

void MemoryViews::draw_allocations(model::Session& session, const MemoryFacts& facts) {
    traces::analysis::Selection selection = model::Session::selection(*facts.entry);
    selection.rank = facts.memory->rank;
    const auto allocations = session.analyses.analysis<Allocations>("allocations", facts.trace, selection,
                                                                    traces::analysis::find_allocations);
    if (allocations == nullptr) return widgets::draw_waiting(session, "the lifetimes of the allocations");
    const auto model = allocations_model_.of(
        allocations, "", [&] { return std::make_shared<AllocationTable>(facts.trace, allocations); });
    const auto& table = static_cast<const AllocationTable&>(*model);
    ImGui::AlignTextToFramePadding();
    draw::text_dim(
        traces::store::counted(static_cast<std::int64_t>(table.rows()), "allocation", "allocations"));
    ImGui::SameLine(0, ImGui::GetFontSize());
    const tables::TableEvents events =
        draw_table("memory.allocations", model, allocations_, {.name = "allocations"});
    const auto row = events.opened ? events.opened : events.clicked;
    if (!row || *row >= table.rows()) return;
    const std::int64_t time = facts.trace->memory.time[table.memory_row(*row)];
    const std::int64_t end = std::min(table.freed_ns(*row), facts.trace->last_ns);
    facts.entry->cursor = time;
    if (events.opened) session.go_to({time, std::max(end, time + 1)}, facts.rank_index);
}

void MemoryViews::draw_ranks(model::Session& session, const MemoryFacts& facts) {
    dim_line("Each rank at its own peak; a click chooses the rank.");
    const auto model = ranks_model_.of(facts.report, "", [&] { return rank_table(*facts.report); });
    const tables::TableEvents events =
        draw_table("memory.ranks", model, ranks_, {.filter = false, .name = "memory by rank"});
    if (events.clicked) session.choose_rank(facts.report->ranks[*events.clicked].rank);
}

void MemoryViews::draw_pool(const MemoryFacts& facts) {
    if (facts.explained == nullptr) {
        ImGui::NewLine();
        return draw::note("Computing the pool's memory ...");
    }
    if (!facts.explained->pool.reserved_peak_bytes) {
        dim_line("This trace does not record the memory of the allocator's pool.");
    } else {
        dim_line("Allocated, active and reserved device memory.");
    }
    const auto model = pool_model_.of(facts.explanation, fmt::format("{}", facts.memory->rank),
                                      [&] { return pool_table(*facts.explained); });
    draw_table("memory.pool", model, pool_,
               {.size = {std::min(ImGui::GetContentRegionAvail().x, ImGui::GetFontSize() * 50), 0},
                .filter = false,
                .name = "memory pool"});
}

void MemoryViews::draw_other_run(const MemoryFacts& facts) {
    if (facts.other_memory == nullptr) {
        ImGui::NewLine();
        return draw::note("Computing the other run ...");
    }
    const RankMemory& here = *facts.memory;
    const RankMemory& there = *facts.other_memory;
    dim_line(fmt::format(
        "At the peaks of rank {}: {} here, {} in {} ({}).", here.rank, draw::format_mb(here.peak_bytes),
        draw::format_mb(there.peak_bytes), facts.other->name,
        draw::format_change(static_cast<double>(there.peak_bytes), static_cast<double>(here.peak_bytes))));
    const float font = ImGui::GetFontSize(), gap = font * 1.2F;
    const ImVec2 left = ImGui::GetContentRegionAvail();
    const bool two = left.x > font * 60;
    const std::string variant = fmt::format("{}/{}/{}", here.rank, static_cast<int>(facts.space),
                                            static_cast<const void*>(facts.other_report.get()));
    ImGui::BeginChild("categories", {two ? left.x * 0.45F : 0, left.y});
    draw_table("memory.other_categories",
               compared_categories_model_.of(facts.report, variant,
                                             [&] { return compared_categories(here, there); }),
               compared_categories_, {.filter = false, .name = "memory against another run"});
    ImGui::EndChild();
    if (!two) return;
    ImGui::SameLine(0, gap);
    ImGui::BeginChild("holders", {0, left.y});
    std::vector<HolderKind> told = told_kinds(here);
    for (const HolderKind kind : told_kinds(there)) {
        if (std::find(told.begin(), told.end(), kind) == told.end()) told.push_back(kind);
    }
    if (told.empty()) {
        draw::note("Neither run records what these bytes are for.");
    } else {
        if (std::find(told.begin(), told.end(), compared_kind_) == told.end()) compared_kind_ = told.front();
        choose_kind("memory.other_holders.by", told, compared_kind_);
        ImGui::SameLine();
        draw_table("memory.other_holders",
                   compared_holders_model_.of(facts.report,
                                              fmt::format("{}/{}", variant, static_cast<int>(compared_kind_)),
                                              [&] { return compared_holders(here, there, compared_kind_); }),
                   compared_holders_, {.name = "holders against another run"});
    }
    ImGui::EndChild();
}

}  // namespace shardscope::viewer::panels
