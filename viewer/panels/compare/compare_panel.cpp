// Compare: several runs side by side, each in its own limit range, against one of them.
//
// For scripts: "compare.base", "compare.run.<n>" (shows or hides a run, n in the order of the open files from
// 1), "compare.tab.<page>", "compare.per_step"; each page as its own header says.
#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <imgui.h>

#include "traces/schema/json_text.h"
#include "traces/schema/text.h"
#include "viewer/draw/format.h"
#include "viewer/draw/items.h"
#include "viewer/draw/text.h"
#include "viewer/model/panel.h"
#include "viewer/model/session.h"
#include "viewer/model/why_empty.h"
#include "viewer/panels/compare/compare_pages.h"
#include "viewer/panels/compare/compare_rows.h"
#include "viewer/panels/compare/compare_runs.h"
#include "viewer/theme/theme.h"
#include "viewer/widgets/toolbar.h"

namespace shardscope::viewer::panels {
namespace {

using traces::analysis::CompareBy;

enum class Page { overview, steps, modules, kernels, operators, collectives, units, memory };
constexpr std::array<std::pair<Page, const char*>, 8> kPages = {{{Page::overview, "Overview"},
                                                                 {Page::steps, "Steps"},
                                                                 {Page::modules, "Modules"},
                                                                 {Page::kernels, "Kernels"},
                                                                 {Page::operators, "Operators"},
                                                                 {Page::collectives, "Collectives"},
                                                                 {Page::units, "Units"},
                                                                 {Page::memory, "Memory"}}};

std::string item_of(const char* page) {
    return "compare.tab." + traces::schema::lower_case(page);
}

class ComparePanel final : public model::Panel {
  public:
    std::string_view name() const override { return "compare"; }
    bool needs_timeline() const override { return false; }  // another open file may have one

    // A list of the page, and of words; runs are named by their place among the open ones.
    std::string content(const model::Session& session) const override {
        std::vector<std::string> content{kPages[static_cast<std::size_t>(page_)].second};
        if (!per_step_) content.emplace_back("totals");
        for (std::size_t i = 0; i < session.open.size(); ++i) {
            const model::TracePtr& trace = session.open[i].trace;
            if (trace == nullptr) continue;
            if (trace == choice_.base()) content.push_back(fmt::format("base {}", i));
            if (!choice_.shown(trace)) content.push_back(fmt::format("hidden {}", i));
        }
        return content == std::vector<std::string>{kPages.front().second}
                   ? ""
                   : traces::schema::dump_strings(content);
    }
    void show_content(std::string_view text, model::Session& session) override {
        const auto words = traces::schema::json_strings(text).value_or(std::vector<std::string>{});
        const auto has = [&](const std::string& word) {
            return std::find(words.begin(), words.end(), word) != words.end();
        };
        choice_ = {};
        for (std::size_t i = 0; i < session.open.size(); ++i) {
            const model::TracePtr& trace = session.open[i].trace;
            if (trace == nullptr) continue;
            if (has(fmt::format("base {}", i))) choice_.set_base(trace);
            if (has(fmt::format("hidden {}", i))) choice_.show(trace, false);
        }
        per_step_ = !has("totals");
        wanted_page_ = Page::overview;
        for (const auto& [page, title] : kPages) {
            if (has(title)) wanted_page_ = page;
        }
    }

    void closed(const traces::store::Trace&, const model::TracePtr&) override { memory_.forget(); }

    void draw(model::Session& session, const model::Frame&) override {
        ComparedRuns runs = choice_.runs(session);
        if (session.ready().empty()) {
            return draw::note(model::why_empty("compare"));
        }
        if (runs.traces.empty()) {
            draw_run_line(session, runs);
            return draw::note("No run is chosen.");
        }
        const auto comparison = comparison_of(session, runs);
        if (comparison == nullptr || comparison->runs.size() != runs.traces.size())
            return widgets::draw_waiting(session, "the comparison");
        const std::vector<std::string> titles = run_titles(*comparison);
        for (std::size_t r = 0; r < runs.heads.size(); ++r) runs.heads[r].name = titles[r];
        draw_run_line(session, runs);
        if (session.ready().size() < 2) draw::note("One run is open. Open another to see what differs.");
        if (runs.left_out > 0) {
            draw::note(
                fmt::format("{} of {} chosen runs are compared, the most at a time; hide some to see others.",
                            runs.traces.size(), runs.traces.size() + runs.left_out));
        }
        draw_limits(session, runs);
        if (!ImGui::BeginTabBar("pages", ImGuiTabBarFlags_FittingPolicyScroll)) return;
        for (const auto& [page, title] : kPages) {
            const bool wanted = wanted_page_ == page;
            const bool shown =
                ImGui::BeginTabItem(title, nullptr, wanted ? ImGuiTabItemFlags_SetSelected : 0);
            draw::items::mark(item_of(title), shown ? "shown" : "");
            if (!shown) continue;
            if (wanted) wanted_page_.reset();
            page_ = page;
            draw_page(session, runs, comparison, page);
            ImGui::EndTabItem();
        }
        ImGui::EndTabBar();
    }

  private:
    // The choice of runs, and of the one that the others are compared with.
    void draw_run_line(model::Session& session, const ComparedRuns& runs) {
        const std::vector<model::TracePtr> ready = session.ready();
        if (ready.size() < 2) return;
        const float font = ImGui::GetFontSize();
        ImGui::AlignTextToFramePadding();
        ImGui::TextDisabled("Against");
        ImGui::SameLine();
        const std::string base = runs.heads.empty() ? std::string() : runs.heads.front().name;
        const float width_of_base =
            std::clamp(ImGui::CalcTextSize(base.c_str()).x + font * 2.8F, font * 10, font * 24);
        ImGui::SetNextItemWidth(width_of_base);
        const bool open =
            ImGui::BeginCombo("##base", draw::fit_text(base, width_of_base - font * 2.5F).c_str());
        draw::items::mark("compare.base", base);
        std::size_t number = 0;
        if (open) {
            for (std::size_t i = 0; i < session.open.size(); ++i) {
                const model::TracePtr& trace = session.open[i].trace;
                if (trace == nullptr) continue;
                ImGui::PushID(static_cast<int>(i));
                const bool chosen = !runs.traces.empty() && runs.traces.front() == trace;
                draw::swatch(theme::run_color(session.open[i].color));
                if (ImGui::Selectable(title_of_entry(session, runs, i).c_str(), chosen))
                    choice_.set_base(trace);
                draw::items::mark(fmt::format("compare.base.{}", ++number), session.open[i].name);
                ImGui::PopID();
            }
            ImGui::EndCombo();
        }
        draw_run_checks(session, choice_, runs, "compare.run", true);
    }

    static void draw_limits(const model::Session& session, const ComparedRuns& runs) {
        for (std::size_t r = 0; r < runs.traces.size(); ++r) {
            const model::OpenTrace& entry = session.open[runs.entries[r]];
            if (!entry.limit) continue;
            draw::note(fmt::format("{}: only {} to {} is compared (time filter set).", runs.heads[r].name,
                                   draw::format_duration(static_cast<double>(entry.limit->from)),
                                   draw::format_duration(static_cast<double>(entry.limit->to))));
        }
    }

    void draw_page(model::Session& session, const ComparedRuns& runs,
                   const std::shared_ptr<const traces::analysis::Comparison>& comparison, Page page) {
        switch (page) {
            case Page::overview:
                return overview_.draw(session, runs, comparison);
            case Page::steps:
                return spread_.draw(session, runs);
            case Page::memory:
                return memory_.draw(session, runs);
            case Page::modules:
                return draw_parts(session, runs, CompareBy::module);
            case Page::kernels:
                return draw_parts(session, runs, CompareBy::kernel);
            case Page::operators:
                return draw_parts(session, runs, CompareBy::operation);
            case Page::collectives:
                return draw_parts(session, runs, CompareBy::collective);
            case Page::units:
                return draw_parts(session, runs, CompareBy::unit);
        }
    }

    void draw_parts(model::Session& session, const ComparedRuns& runs, CompareBy by) {
        ImGui::Checkbox("Per step", &per_step_);
        draw::items::mark("compare.per_step", per_step_ ? "on" : "off");
        if (ImGui::IsItemHovered()) {
            ImGui::SetTooltip(
                "On: per step on average, so that runs of different lengths compare. Off: the sum over all "
                "kept steps.");
        }
        ImGui::SameLine(0, ImGui::GetFontSize() * 1.5F);
        parts_.draw(session, runs, by, per_step_);
    }

    RunChoice choice_;
    Page page_ = Page::overview;       // in the last frame
    std::optional<Page> wanted_page_;  // to be shown
    bool per_step_ = true;
    CompareOverview overview_;
    CompareSpreadView spread_;
    ComparePartsView parts_;
    CompareMemoryView memory_;
};

}  // namespace

std::unique_ptr<model::Panel> make_compare_panel() {
    return std::make_unique<ComparePanel>();
}

}  // namespace shardscope::viewer::panels
