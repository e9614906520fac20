// See compare_pages.h.
#include <algorithm>

#include <fmt/core.h>
#include <imgui.h>

#include "viewer/draw/format.h"
#include "viewer/draw/items.h"
#include "viewer/draw/text.h"
#include "viewer/panels/compare/compare_pages.h"
#include "viewer/panels/compare/compare_places.h"
#include "viewer/panels/compare/compare_runs.h"
#include "viewer/theme/theme.h"
#include "viewer/widgets/toolbar.h"

namespace shardscope::viewer::panels {
namespace {

using traces::analysis::CompareBy;

std::string measured(CompareBy by, bool per_step, bool on_host) {
    return fmt::format(
        "{}; mean of the ranks, {}.",
        on_host ? "Host time of each alone, as nothing is recorded on a device" : words_of(by).measured,
        per_step ? "per step" : "all steps");
}

}  // namespace

void ComparePartsView::take(Page& page, const std::shared_ptr<const traces::analysis::PartsComparison>& parts,
                            const ComparedRuns& runs, bool per_step) {
    const std::vector<std::string> names = names_of(runs);
    if (page.of == parts && page.per_step == per_step && page.names == names) return;
    page.of = parts;
    page.per_step = per_step;
    page.names = names;
    if (parts->by == CompareBy::module) {
        const bool first = page.tree == nullptr;
        page.tree = std::make_shared<ComparedModules>(parts, runs.heads, per_step);
        if (first) {  // opens as many levels as fit the window
            const float line = ImGui::GetTextLineHeight() + 2 * ImGui::GetStyle().CellPadding.y;
            const float rows = std::max(1.0F, ImGui::GetContentRegionAvail().y / line - 4);
            page.tree_state.open_levels(levels_that_fit(*page.tree, static_cast<std::size_t>(rows * 1.5F)));
        }
    } else {
        page.table = std::make_shared<PartsModel>(parts, runs.heads, per_step);
    }
}

void ComparePartsView::draw(model::Session& session, const ComparedRuns& runs, CompareBy by, bool per_step) {
    const auto parts = parts_of(session, runs, by);
    if (parts == nullptr)
        return widgets::draw_waiting(session, fmt::format("the {} of each run", words_of(by).plural));
    if (parts->parts.empty()) {
        return draw::note(
            fmt::format("None of these traces holds {}: {}.", words_of(by).plural, words_of(by).record));
    }
    Page& page = pages_[by];
    take(page, parts, runs, per_step);
    const std::string id =
        fmt::format("compare.{}", traces::analysis::kCompareByNames[static_cast<std::size_t>(by)]);
    draw_run_legend(runs);
    draw::note(measured(by, per_step, parts->on_host));
    std::optional<std::size_t> opened;
    std::string name;
    if (by == CompareBy::module) {
        draw_tree_controls(id.c_str(), page.tree, page.tree_state);
        opened = draw_tree(id.c_str(), page.tree, page.tree_state, {.name = "compare-modules"}).opened;
        if (opened) name = page.tree->node(*opened).path;
    } else {
        tables::TableOptions options;
        options.name =
            fmt::format("compare-{}s", traces::analysis::kCompareByNames[static_cast<std::size_t>(by)]);
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

// Asks in which run to show the part; then its longest event is searched for off this thread.
void ComparePartsView::draw_go(model::Session& session, const ComparedRuns& runs) {
    if (ImGui::BeginPopup("go")) {
        draw::note(fmt::format("The longest of {} in", draw::shorten_middle(part_, 48)));
        for (std::size_t r = 0; r < runs.heads.size(); ++r) {
            ImGui::PushID(static_cast<int>(r));
            draw::swatch(runs.heads[r].color);
            if (ImGui::Selectable(fmt::format("Timeline of {}", runs.heads[r].name).c_str())) {
                going_ = r;
                to_module_ = false;
            }
            draw::items::mark(fmt::format("compare.go.{}", r + 1), runs.heads[r].name);
            if (by_ == CompareBy::module) {
                draw::swatch(runs.heads[r].color);
                if (ImGui::Selectable(fmt::format("Module View of {}", runs.heads[r].name).c_str())) {
                    going_ = r;
                    to_module_ = true;
                }
                draw::items::mark(fmt::format("compare.go_module.{}", r + 1), runs.heads[r].name);
            }
            ImGui::PopID();
        }
        ImGui::EndPopup();
    }
    if (!going_) return;
    if (*going_ >= runs.traces.size()) return going_.reset();
    const auto place = session.analyses.analysis<PartPlace>(
        fmt::format("place/{}/{}", static_cast<int>(by_), part_), runs.traces[*going_],
        runs.selections[*going_],
        [by = by_, part = part_](const traces::store::Trace& trace,
                                 const traces::analysis::Selection& selection) {
            return longest_of_part(trace, by, part, selection);
        });
    if (place == nullptr) return;
    session.set_active(runs.entries[*going_]);
    going_.reset();
    if (!place->found) return;
    if (to_module_) {
        session.selected_module = place->module;
        if (place->rank.known()) session.rank = place->rank;
        session.wanted_panel = "modules";
    } else {
        session.go_to(place->time, place->rank, place->event);
    }
}

}  // namespace shardscope::viewer::panels
