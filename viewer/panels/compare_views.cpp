// See compare_views.h.
#include "viewer/panels/compare_views.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <imgui.h>

#include "traces/analysis/steps.h"
#include "viewer/app/theme.h"
#include "viewer/draw/chart.h"
#include "viewer/draw/format.h"
#include "viewer/draw/items.h"
#include "viewer/draw/text.h"
#include "viewer/panels/compare_places.h"
#include "viewer/panels/toolbar.h"

namespace shardscope::viewer {
namespace {

using traces::CompareBy;

constexpr int kBins = 48;
constexpr std::size_t kColumns = 400;  // of the durations in their order

// One of several ways to look: highlighted where it is the one.
bool choice(const char* label, bool chosen, const std::string& item) {
    ImGui::PushStyleColor(ImGuiCol_Button, chosen ? theme::accent() : theme::raised());
    ImGui::PushStyleColor(ImGuiCol_Text, chosen ? theme::ground() : theme::text());
    const bool clicked = ImGui::Button(label);
    ImGui::PopStyleColor(2);
    items::mark(item, chosen ? "chosen" : "");
    return clicked;
}

std::vector<std::string> names_of(const ComparedRuns& runs) {
    std::vector<std::string> names;
    for (const RunHead& head : runs.heads) names.push_back(head.name);
    return names;
}

std::string_view plural_of(CompareBy by) {
    switch (by) {
        case CompareBy::module:
            return "modules";
        case CompareBy::kernel:
            return "kernels";
        case CompareBy::collective:
            return "collectives";
        case CompareBy::unit:
            return "FSDP units";
        case CompareBy::operation:
            return "operators";
    }
    return {};
}

std::string_view what_to_record(CompareBy by) {
    switch (by) {
        case CompareBy::module:
            return "ranges \"nn.Module: Class_n\" name them";
        case CompareBy::kernel:
            return "the profiler must record the device's activity";
        case CompareBy::collective:
            return "only runs on several ranks communicate";
        case CompareBy::unit:
            return "FSDP's own ranges, or shardscope-train's units, name them";
        case CompareBy::operation:
            return "the profiler must record host ranges";
    }
    return {};
}

}  // namespace

void draw_run_legend(const ComparedRuns& runs) {
    std::vector<LegendItem> entries;
    for (std::size_t r = 0; r < runs.heads.size(); ++r)
        entries.push_back({fmt::format("{}  {}", r + 1, runs.heads[r].name), runs.heads[r].color});
    legend(entries);
}

// --- parts -----------------------------------------------------------------------------------------

void ComparePartsView::take(Page& page, const std::shared_ptr<const traces::PartsComparison>& parts,
                            const ComparedRuns& runs, bool per_step) {
    const std::vector<std::string> names = names_of(runs);
    if (page.of == parts && page.per_step == per_step && page.names == names) return;
    page.of = parts;
    page.per_step = per_step;
    page.names = names;
    if (parts->by == CompareBy::module) {
        const bool first = page.tree == nullptr;
        page.tree = std::make_shared<ComparedModules>(parts, runs.heads, per_step);
        if (first) {  // as much as the window has room for
            const float line = ImGui::GetTextLineHeight() + 2 * ImGui::GetStyle().CellPadding.y;
            const float rows = std::max(1.0F, ImGui::GetContentRegionAvail().y / line - 4);
            page.tree_state.open_levels(levels_that_fit(*page.tree, static_cast<std::size_t>(rows * 1.5F)));
        }
    } else {
        page.table = std::make_shared<PartsModel>(parts, runs.heads, per_step);
    }
}

void ComparePartsView::draw(Session& session, const ComparedRuns& runs, CompareBy by, bool per_step) {
    const auto parts = parts_of(session, runs, by);
    if (parts == nullptr) return draw_waiting(session, fmt::format("the {} of each run", plural_of(by)));
    if (parts->parts.empty()) {
        return note(fmt::format("None of these traces holds {}: {}.", plural_of(by), what_to_record(by)));
    }
    Page& page = pages_[by];
    take(page, parts, runs, per_step);
    const std::string id = fmt::format("compare.{}", traces::kCompareByNames[static_cast<std::size_t>(by)]);
    draw_run_legend(runs);
    std::optional<std::size_t> opened;
    std::string name;
    if (by == CompareBy::module) {
        draw_tree_controls(id.c_str(), *page.tree, page.tree_state);
        opened = draw_tree(id.c_str(), page.tree, page.tree_state, {.name = "compare-modules"}).opened;
        if (opened) name = page.tree->node(*opened).path;
    } else {
        TableOptions options;
        options.name = fmt::format("compare-{}s", traces::kCompareByNames[static_cast<std::size_t>(by)]);
        opened = draw_table(id.c_str(), page.table, page.state, options).opened;
        if (opened) name = parts->parts[*opened].name;
    }
    if (opened) {
        by_ = by;
        part_ = name;
        ImGui::OpenPopup("go");
    }
    draw_go(session, runs);
}

// Which run to show the part in; then its longest event is looked for off this thread.
void ComparePartsView::draw_go(Session& session, const ComparedRuns& runs) {
    if (ImGui::BeginPopup("go")) {
        note(fmt::format("The longest of {} in", shorten_middle(part_, 48)));
        for (std::size_t r = 0; r < runs.heads.size(); ++r) {
            ImGui::PushID(static_cast<int>(r));
            swatch(runs.heads[r].color);
            if (ImGui::Selectable(fmt::format("Timeline of {}", runs.heads[r].name).c_str())) {
                going_ = r;
                to_module_ = false;
            }
            items::mark(fmt::format("compare.go.{}", r + 1), runs.heads[r].name);
            if (by_ == CompareBy::module) {
                swatch(runs.heads[r].color);
                if (ImGui::Selectable(fmt::format("Module View of {}", runs.heads[r].name).c_str())) {
                    going_ = r;
                    to_module_ = true;
                }
                items::mark(fmt::format("compare.go_module.{}", r + 1), runs.heads[r].name);
            }
            ImGui::PopID();
        }
        ImGui::EndPopup();
    }
    if (!going_) return;
    if (*going_ >= runs.traces.size()) return going_.reset();
    const auto place = session.analyses.analysis<Place>(
        fmt::format("place/{}/{}", static_cast<int>(by_), part_), runs.traces[*going_],
        runs.selections[*going_],
        [by = by_, part = part_](const traces::Trace& trace, const traces::Selection& selection) {
            return longest_of_part(trace, by, part, selection);
        });
    if (place == nullptr) return;
    session.set_active(runs.entries[*going_]);
    going_.reset();
    if (!place->found) return;
    if (to_module_) {
        session.selected_module = place->module;
        session.rank = place->rank;
        session.wanted_panel = "modules";
    } else {
        session.go_to(place->time, place->rank, place->event);
    }
}

// --- how steps and kernels spread --------------------------------------------------------------------

bool CompareSpreadView::choose_kernel(Session& session, const ComparedRuns& runs) {
    const auto parts = parts_of(session, runs, CompareBy::kernel);
    if (parts == nullptr) {
        draw_waiting(session, "the kernels' names");
        return false;
    }
    if (parts->parts.empty()) {
        note("None of these traces holds kernels.");
        return false;
    }
    const auto time = [](const traces::ComparedPart& part) {
        double most = 0;
        for (const traces::PartFigures& run : part.runs) most = std::max(most, run.us);
        return most;
    };
    const bool known = std::any_of(parts->parts.begin(), parts->parts.end(),
                                   [&](const auto& part) { return part.name == kernel_; });
    if (!known) {  // the one that takes most
        kernel_ =
            std::max_element(parts->parts.begin(), parts->parts.end(), [&](const auto& a, const auto& b) {
                return time(a) < time(b);
            })->name;
    }
    ImGui::SameLine(0, ImGui::GetFontSize());
    ImGui::SetNextItemWidth(std::min(ImGui::GetFontSize() * 30, ImGui::GetContentRegionAvail().x));
    const bool open = ImGui::BeginCombo("##kernel", shorten_middle(kernel_, 70).c_str());
    items::mark("compare.kernel_name", kernel_);
    if (open) {
        ImGuiListClipper clipper;
        clipper.Begin(static_cast<int>(parts->parts.size()));
        while (clipper.Step()) {
            for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
                const std::string& name = parts->parts[static_cast<std::size_t>(i)].name;
                ImGui::PushID(i);
                if (ImGui::Selectable(shorten_middle(name, 90).c_str(), name == kernel_)) kernel_ = name;
                ImGui::PopID();
            }
        }
        ImGui::EndCombo();
    }
    return true;
}

namespace {

void draw_histogram(const Histogram& histogram, const ComparedRuns& runs, ImVec2 size) {
    ChartAxes axes{histogram.low * 1e3, histogram.high * 1e3, axis_top(histogram.largest)};
    axes.y_unit = AxisUnit::percent;
    const Chart chart = begin_chart("histogram", size, axes);
    items::mark("compare.histogram");
    const float width = chart.width() / static_cast<float>(kBins);
    for (std::size_t r = 0; r < histogram.percent.size(); ++r) {
        const ImU32 color = runs.heads[r].color;
        float before = chart.max.y;
        for (int bin = 0; bin < kBins; ++bin) {
            const double percent = histogram.percent[r][static_cast<std::size_t>(bin)];
            const float left = chart.min.x + width * static_cast<float>(bin);
            const auto top = static_cast<float>(chart.y.pixel(percent));
            if (percent > 0)
                chart.draw->AddRectFilled({left, top}, {left + width, chart.max.y}, faded(color, 0.28F));
            // The outline tells a run's shape where several lie over each other.
            if (top != before)
                chart.draw->AddRectFilled({left - 0.75F, std::min(top, before)},
                                          {left + 0.75F, std::max(top, before)}, color);
            if (percent > 0)
                chart.draw->AddRectFilled({left, top - 0.75F}, {left + width, top + 0.75F}, color);
            before = top;
        }
        if (before < chart.max.y)
            chart.draw->AddRectFilled({chart.max.x - 0.75F, before}, {chart.max.x + 0.75F, chart.max.y},
                                      color);
        if (!std::isnan(histogram.medians[r])) marker_line(chart, histogram.medians[r] * 1e3, color, "");
    }
    if (!chart.hovered) return;
    const auto bin =
        std::clamp(static_cast<int>((ImGui::GetIO().MousePos.x - chart.min.x) / width), 0, kBins - 1);
    const double step = (histogram.high - histogram.low) / kBins;
    begin_tip(fmt::format("{} to {}", format_duration((histogram.low + step * bin) * 1e3),
                          format_duration((histogram.low + step * (bin + 1)) * 1e3)));
    for (std::size_t r = 0; r < histogram.percent.size(); ++r)
        tip_row(runs.heads[r].name, format_percent(histogram.percent[r][static_cast<std::size_t>(bin)]),
                runs.heads[r].color);
    end_tip();
}

// Every step's duration by its place in the run, as a line for each run.
void draw_in_order(const std::vector<Durations>& durations,
                   const std::vector<std::vector<DurationColumn>>& folded, const ComparedRuns& runs,
                   ImVec2 size) {
    std::size_t most = 1;
    double longest = 0;
    for (std::size_t r = 0; r < durations.size(); ++r) {
        most = std::max(most, durations[r].us.size());
        for (const DurationColumn& column : folded[r]) longest = std::max(longest, column.longest);
    }
    ChartAxes axes{0, static_cast<double>(most), axis_top(longest * 1e3)};
    axes.x_unit = AxisUnit::count;
    axes.y_unit = AxisUnit::nanoseconds;
    const Chart chart = begin_chart("in order", size, axes);
    for (std::size_t r = 0; r < folded.size(); ++r) {
        const ImU32 color = runs.heads[r].color;
        ImVec2 before{};
        for (std::size_t c = 0; c < folded[r].size(); ++c) {
            const DurationColumn& column = folded[r][c];
            const auto x = static_cast<float>(chart.x.pixel(static_cast<double>(column.first) + 0.5));
            const ImVec2 top{x, static_cast<float>(chart.y.pixel(column.longest * 1e3))};
            const ImVec2 bottom{x, static_cast<float>(chart.y.pixel(column.shortest * 1e3))};
            if (c > 0) chart.draw->AddLine(before, top, color, 1.5F);
            if (bottom.y > top.y) chart.draw->AddLine(top, bottom, color, 1.5F);
            if (folded[r].size() <= 100) chart.draw->AddCircleFilled(top, 2.5F, color, 8);
            before = bottom;
        }
    }
    crosshair(chart);
    if (!chart.hovered) return;
    const auto at = static_cast<std::size_t>(std::max(0.0, chart.x.value(ImGui::GetIO().MousePos.x)));
    begin_tip(fmt::format("{}. of the run", at + 1));
    for (std::size_t r = 0; r < durations.size(); ++r) {
        if (at < durations[r].us.size())
            tip_row(runs.heads[r].name, format_duration(durations[r].us[at] * 1e3), runs.heads[r].color);
    }
    end_tip();
}

}  // namespace

void CompareSpreadView::draw(Session& session, const ComparedRuns& runs) {
    draw_run_legend(runs);
    if (choice("Steps", !kernels_, "compare.of_steps")) kernels_ = false;
    ImGui::SameLine(0, 2);
    if (choice("One kernel", kernels_, "compare.of_kernel")) kernels_ = true;
    if (kernels_ && !choose_kernel(session, runs)) return;

    std::vector<std::shared_ptr<const Durations>> of;
    for (std::size_t r = 0; r < runs.traces.size(); ++r) {
        const std::string name = kernels_ ? "kernel durations/" + kernel_ : std::string("step durations");
        of.push_back(session.analyses.analysis<Durations>(
            name, runs.traces[r], runs.selections[r],
            [kernels = kernels_, kernel = kernel_](const traces::Trace& trace,
                                                   const traces::Selection& selection) {
                return kernels ? kernel_durations(trace, selection, kernel)
                               : step_durations(trace, traces::steps_report(trace, selection));
            }));
    }
    if (std::find(of.begin(), of.end(), nullptr) != of.end()) return draw_waiting(session, "the durations");
    if (of != of_ || table_ == nullptr || table_->rows() != of.size() ||
        table_->text(0, 0) != runs.heads[0].name) {
        of_ = of;
        durations_.clear();
        for (const auto& one : of) durations_.push_back(*one);
        histogram_ = make_histogram(durations_, kBins);
        folded_.clear();
        for (const Durations& run : durations_) folded_.push_back(fold_durations(run, kColumns));
        table_ = durations_table(runs.heads, durations_, kernels_ ? "Kernels" : "Steps");
    }
    const bool any =
        std::any_of(durations_.begin(), durations_.end(), [](const auto& d) { return !d.us.empty(); });
    if (!any) return note("No kept step of these runs lies in what is looked at.");
    const float font = ImGui::GetFontSize();
    const float table =
        ImGui::GetTextLineHeightWithSpacing() * (static_cast<float>(runs.traces.size()) + 3.5F);
    const float height = std::max(font * 9, ImGui::GetContentRegionAvail().y - table - font * 2.5F);
    const float width = ImGui::GetContentRegionAvail().x, gap = font * 1.5F;
    const bool both = width > font * 60;
    const float left = both ? (width - gap) * 0.55F : width;
    ImGui::BeginGroup();
    ImGui::TextDisabled("%s", kernels_
                                  ? "How long the kernel takes, share of each run's calls; lines: medians"
                                  : "How long a step takes, share of each run's steps; lines: medians");
    draw_histogram(histogram_, runs, {left, height});
    ImGui::EndGroup();
    if (both) {
        ImGui::SameLine(0, gap);
        ImGui::BeginGroup();
        ImGui::TextDisabled("%s", kernels_ ? "Call after call" : "Step after step");
        draw_in_order(durations_, folded_, runs, {width - left - gap, height});
        ImGui::EndGroup();
    }
    TableOptions options;
    options.filter = false;
    options.name = kernels_ ? "compare-kernel-durations" : "compare-steps";
    const TableEvents events = draw_table("compare.spread", table_, state_, options);
    if (!events.opened || *events.opened >= durations_.size()) return;
    const Durations& run = durations_[*events.opened];
    if (run.us.empty()) return;
    session.set_active(runs.entries[*events.opened]);
    session.go_to(run.longest, run.longest_rank, run.longest_event);
}

// --- memory ------------------------------------------------------------------------------------------

// The curve of each run's rank with the largest peak, and the part of it that is shown.
void CompareMemoryView::take_curves(Session& session, const ComparedRuns& runs) {
    curves_.resize(runs.traces.size());
    for (std::size_t r = 0; r < runs.traces.size(); ++r) {
        Curve& curve = curves_[r];
        const TracePtr& trace = runs.traces[r];
        if (ranks_[r] == nullptr) {
            curve = {};
            continue;
        }
        const auto rank = std::find_if(trace->ranks.begin(), trace->ranks.end(),
                                       [&](const traces::Rank& k) { return k.number == ranks_[r]->rank; });
        if (rank == trace->ranks.end()) continue;
        curve.trace = trace;
        curve.rank = static_cast<int>(rank - trace->ranks.begin());
        curve.points = session.analyses.curve(trace, curve.rank);
        curve.peak = static_cast<double>(ranks_[r]->peak_bytes);
        const traces::Selection& selection = runs.selections[r];
        curve.time = {selection.from_ns.value_or(trace->first_ns), selection.to_ns.value_or(trace->last_ns)};
        if (whole_) continue;
        const auto step = std::find_if(trace->steps.begin(), trace->steps.end(), [&](const traces::Step& s) {
            return s.rank == curve.rank && s.start <= ranks_[r]->peak_time_ns &&
                   ranks_[r]->peak_time_ns < s.end;
        });
        if (step != trace->steps.end()) curve.time = {step->start, step->end};
    }
}

void CompareMemoryView::draw_curves(const ComparedRuns& runs, float height) {
    std::int64_t longest = 1;
    double highest = 0;
    for (const Curve& curve : curves_) {
        if (curve.points == nullptr) continue;
        longest = std::max(longest, curve.time.length());
        highest = std::max(highest, curve.peak);
    }
    const ChartAxes axes{0, static_cast<double>(longest), axis_top(highest)};
    const Chart chart = begin_chart("curves", {ImGui::GetContentRegionAvail().x, height}, axes);
    items::mark("compare.curves");
    for (std::size_t r = 0; r < curves_.size(); ++r) {
        Curve& curve = curves_[r];
        if (curve.points == nullptr || curve.time.length() <= 0) continue;
        const auto right = static_cast<float>(chart.x.pixel(static_cast<double>(curve.time.length())));
        const int count = std::max(1, static_cast<int>((right - chart.min.x) / 2));
        if (curve.folded_of != curve.points.get() || curve.folded_time != curve.time ||
            static_cast<int>(curve.columns.size()) != count) {
            curve.columns = fold_curve(*curve.points, curve.time.from, curve.time.to, count);
            curve.folded_of = curve.points.get();
            curve.folded_time = curve.time;
        }
        const float width = (right - chart.min.x) / static_cast<float>(count);
        const ImU32 color = runs.heads[r].color;
        float before = chart.max.y;
        for (int c = 0; c < count; ++c) {
            const FoldedColumn& column = curve.columns[static_cast<std::size_t>(c)];
            const auto top = static_cast<float>(chart.y.pixel(static_cast<double>(column.highest)));
            const auto low = static_cast<float>(chart.y.pixel(static_cast<double>(column.lowest)));
            const float x = chart.min.x + width * static_cast<float>(c);
            chart.draw->AddRectFilled({x, top}, {x + width, chart.max.y}, faded(color, 0.10F));
            chart.draw->AddRectFilled({x, std::min(top, before) - 0.75F},
                                      {x + width, std::max(low, std::min(before, low)) + 0.75F}, color);
            before = low;
        }
        level_line(chart, curve.peak, faded(color, 0.6F), format_mb(static_cast<std::int64_t>(curve.peak)),
                   r % 2 == 0);
    }
    crosshair(chart);
    if (!chart.hovered) return;
    const auto after = static_cast<std::int64_t>(chart.x.value(ImGui::GetIO().MousePos.x));
    begin_tip(format_duration(static_cast<double>(after)) + " after the start");
    for (std::size_t r = 0; r < curves_.size(); ++r) {
        if (curves_[r].points == nullptr || after > curves_[r].time.length()) continue;
        const auto* point = point_at(*curves_[r].points, curves_[r].time.from + after);
        tip_row(runs.heads[r].name, format_mb(point != nullptr ? point->total : 0), runs.heads[r].color);
    }
    end_tip();
}

void CompareMemoryView::draw(Session& session, const ComparedRuns& runs) {
    std::vector<std::shared_ptr<const traces::MemoryReport>> of;
    for (std::size_t r = 0; r < runs.traces.size(); ++r)
        of.push_back(session.analyses.memory(runs.traces[r], runs.selections[r]));
    if (std::find(of.begin(), of.end(), nullptr) != of.end())
        return draw_waiting(session, "the memory of each run");
    const std::vector<std::string> names = names_of(runs);
    if (of != of_ || table_ == nullptr || table_by_ != by_ || names_ != names) {
        of_ = of;
        table_by_ = by_;
        names_ = names;
        ranks_.clear();
        for (const auto& report : of_) ranks_.push_back(largest_rank(*report));
        table_ = std::make_shared<MemoryModel>(runs.heads, ranks_, by_);
    }
    if (std::all_of(ranks_.begin(), ranks_.end(), [](const auto* rank) { return rank == nullptr; })) {
        return note(
            "None of these traces holds allocations. shardscope-train records them; PyTorch's profiler does "
            "with profile_memory=True, and memory snapshots hold nothing else.");
    }
    draw_run_legend(runs);
    if (choice("Step of the peak", !whole_, "compare.memory_step")) whole_ = false;
    ImGui::SameLine(0, 2);
    if (choice("Whole run", whole_, "compare.memory_whole")) whole_ = true;
    ImGui::SameLine(0, ImGui::GetFontSize() * 1.5F);
    ImGui::AlignTextToFramePadding();
    ImGui::TextDisabled("Table by");
    for (const auto& [label, by] :
         {std::pair("category", MemoryBy::category), std::pair("unit", MemoryBy::unit),
          std::pair("module", MemoryBy::module), std::pair("buffer", MemoryBy::buffer)}) {
        ImGui::SameLine(0, by == MemoryBy::category ? ImGui::GetFontSize() * 0.5F : 2);
        if (choice(label, by_ == by, fmt::format("compare.memory_by.{}", label))) by_ = by;
    }
    take_curves(session, runs);
    draw_curves(runs, std::max(ImGui::GetFontSize() * 8, ImGui::GetContentRegionAvail().y * 0.46F));
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
        if (ranks_[r] == nullptr) note(fmt::format("{} holds no allocations.", runs.heads[r].name));
    }
    TableOptions options;
    options.filter = by_ != MemoryBy::category;
    options.name = "compare-memory";
    const TableEvents events = draw_table("compare.memory", table_, state_, options);
    if (!events.opened) return;
    // To the instant of the peak, in the run that holds most.
    const auto most = std::max_element(ranks_.begin(), ranks_.end(), [](const auto* a, const auto* b) {
        return (a != nullptr ? a->peak_bytes : -1) < (b != nullptr ? b->peak_bytes : -1);
    });
    const auto run = static_cast<std::size_t>(most - ranks_.begin());
    session.set_active(runs.entries[run]);
    if (OpenTrace* entry = session.current()) entry->cursor = (*most)->peak_time_ns;
    session.rank = curves_[run].rank;
    session.wanted_panel = "memory";
}

}  // namespace shardscope::viewer
