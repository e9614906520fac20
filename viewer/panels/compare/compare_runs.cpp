// See compare_runs.h.
#include "viewer/panels/compare/compare_runs.h"

#include <algorithm>

#include <fmt/core.h>
#include <imgui.h>

#include "viewer/draw/format.h"
#include "viewer/draw/items.h"
#include "viewer/draw/text.h"
#include "viewer/theme/theme.h"
#include "viewer/widgets/segmented.h"

namespace shardscope::viewer::panels {
namespace {

std::vector<const traces::store::Trace*> plain(const std::vector<model::TracePtr>& traces) {
    std::vector<const traces::store::Trace*> pointers;
    pointers.reserve(traces.size());
    for (const model::TracePtr& trace : traces) pointers.push_back(trace.get());
    return pointers;
}

}  // namespace

ComparedRuns RunChoice::runs(const model::Session& session) const {
    ComparedRuns runs;
    const model::TracePtr base = base_.lock();
    for (std::size_t i = 0; i < session.open.size(); ++i) {
        const model::OpenTrace& entry = session.open[i];
        if (entry.trace == nullptr || model::holds_only_plan(*entry.trace) || !shown(entry.trace)) continue;
        const auto at = static_cast<std::ptrdiff_t>(entry.trace == base ? 0 : runs.traces.size());
        runs.traces.insert(runs.traces.begin() + at, entry.trace);
        runs.entries.insert(runs.entries.begin() + at, i);
        runs.selections.insert(runs.selections.begin() + at, model::Session::selection(entry));
        runs.heads.insert(runs.heads.begin() + at, {entry.name, theme::run_color(entry.color)});
    }
    if (runs.traces.size() > kMostCompared) {
        runs.left_out = runs.traces.size() - kMostCompared;
        runs.traces.resize(kMostCompared);
        runs.entries.resize(kMostCompared);
        runs.selections.resize(kMostCompared);
        runs.heads.resize(kMostCompared);
    }
    for (const traces::analysis::Selection& selection : runs.selections) {
        runs.key += selection.from_ns ? fmt::format("/{}:{}", *selection.from_ns, *selection.to_ns) : "/-";
    }
    return runs;
}

bool RunChoice::shown(const model::TracePtr& trace) const {
    return std::none_of(hidden_.begin(), hidden_.end(), [&](const auto& h) { return h.lock() == trace; });
}

void RunChoice::show(const model::TracePtr& trace, bool on) {
    std::erase_if(hidden_, [&](const auto& h) { return h.expired() || h.lock() == trace; });
    if (!on) hidden_.push_back(trace);
}

void RunChoice::set_base(const model::TracePtr& trace) {
    base_ = trace;
    show(trace, true);
}

std::vector<bool> stepped_runs(const ComparedRuns& runs) {
    std::vector<bool> stepped;
    for (const model::TracePtr& trace : runs.traces) stepped.push_back(!trace->steps.empty());
    return stepped;
}

bool comparable_with_base(const ComparedRuns& runs, std::size_t r) {
    return runs.traces[r]->steps.empty() == runs.traces.front()->steps.empty();
}

std::shared_ptr<const traces::analysis::Comparison> comparison_of(model::Session& session,
                                                                  const ComparedRuns& runs) {
    return session.analyses.get<traces::analysis::Comparison>(
        "compare" + runs.key, runs.traces, [selections = runs.selections](const auto& traces) {
            return traces::analysis::compare(plain(traces), selections);
        });
}

std::shared_ptr<const traces::analysis::PartsComparison> parts_of(model::Session& session,
                                                                  const ComparedRuns& runs,
                                                                  traces::analysis::CompareBy by) {
    return session.analyses.get<traces::analysis::PartsComparison>(
        fmt::format("compare_parts/{}{}", static_cast<int>(by), runs.key), runs.traces,
        [selections = runs.selections, by](const auto& traces) {
            return traces::analysis::compare_parts(plain(traces), by, selections);
        });
}

void draw_run_legend(const ComparedRuns& runs) {
    std::vector<draw::LegendItem> entries;
    for (std::size_t r = 0; r < runs.heads.size(); ++r)
        entries.push_back({fmt::format("{}  {}", r + 1, runs.heads[r].name), runs.heads[r].color});
    legend(entries);
}

std::string title_of_entry(const model::Session& session, const ComparedRuns& runs, std::size_t entry) {
    const auto at = std::find(runs.entries.begin(), runs.entries.end(), entry);
    return at == runs.entries.end() ? session.open[entry].name
                                    : runs.heads[static_cast<std::size_t>(at - runs.entries.begin())].name;
}

void draw_run_checks(const model::Session& session, RunChoice& choice, const ComparedRuns& runs,
                     std::string_view item, bool beside) {
    const float font = ImGui::GetFontSize();
    std::size_t number = 0;
    for (std::size_t i = 0; i < session.open.size(); ++i) {
        const model::TracePtr& trace = session.open[i].trace;
        if (trace == nullptr) continue;
        const std::string label = draw::shorten_middle(title_of_entry(session, runs, i), 44);
        const float width = ImGui::CalcTextSize(label.c_str()).x + font * 3.2F;
        const float right = ImGui::GetWindowPos().x + ImGui::GetWindowContentRegionMax().x;
        if ((beside || number > 0) && ImGui::GetItemRectMax().x + font + width < right)
            ImGui::SameLine(0, font);
        ImGui::PushID(static_cast<int>(i));
        bool on = choice.shown(trace);
        ImGui::PushStyleColor(ImGuiCol_CheckMark, theme::run_color(session.open[i].color));
        if (ImGui::Checkbox(label.c_str(), &on)) choice.show(trace, on);
        ImGui::PopStyleColor();
        draw::items::mark(fmt::format("{}.{}", item, ++number), on ? "shown" : "hidden");
        ImGui::PopID();
    }
}

bool choice_button(const char* label, bool chosen, const std::string& item) {
    const bool clicked = widgets::on_button(label, chosen);
    draw::items::mark(item, chosen ? "chosen" : "");
    return clicked;
}

std::vector<std::string> names_of(const ComparedRuns& runs) {
    std::vector<std::string> names;
    for (const RunHead& head : runs.heads) names.push_back(head.name);
    return names;
}

}  // namespace shardscope::viewer::panels
