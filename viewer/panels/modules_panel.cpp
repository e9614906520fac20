// The Module View: the tree of modules of one rank with its host and device time, bytes and memory.
#include <algorithm>

#include <fmt/format.h>
#include <imgui.h>
#include <imgui_stdlib.h>

#include "viewer/app/session.h"
#include "viewer/draw/format.h"
#include "viewer/draw/text.h"
#include "viewer/panels/modules_table.h"
#include "viewer/panels/panel.h"
#include "viewer/panels/toolbar.h"

namespace shardscope::viewer {
namespace {

constexpr int kAllLevels = 1000;

class ModulesPanel final : public Panel {
  public:
    std::string_view name() const override { return "modules"; }
    std::string_view title() const override { return "Module View"; }

    void draw(Session& session, const Frame&) override {
        draw_choosers(session);
        const TracePtr trace = session.trace();
        const auto view = session.analyses.modules(trace, Session::selection(*session.current()));
        if (view == nullptr) {
            ImGui::NewLine();
            return draw_waiting(session, "the module tree");
        }
        const traces::RankModules* rank = chosen_rank(view->ranks, session);
        if (rank == nullptr || rank->modules.empty()) {
            ImGui::NewLine();
            return note(
                "This trace names no modules. They come from ranges called \"nn.Module: Class_n\", as "
                "shardscope-train "
                "writes them.");
        }
        draw_controls();
        draw_limit_note(session);
        open_what_fits(trace, *rank);
        const ModuleTableResult result = draw_module_table(*rank, state_, session.selected_module);
        if (result.clicked) session.selected_module = result.module;
    }

  private:
    void draw_controls() {
        const float font = ImGui::GetFontSize();
        ImGui::SetNextItemWidth(std::min(font * 14, ImGui::GetContentRegionAvail().x * 0.4F));
        ImGui::InputTextWithHint("##search", "Search a module", &state_.search);
        ImGui::SameLine(0, font);
        if (ImGui::Button("Open all")) set_levels(kAllLevels);
        ImGui::SameLine(0, font * 0.4F);
        if (ImGui::Button("Close all")) set_levels(1);
    }

    void set_levels(int levels) {
        state_.open_levels = levels;
        state_.toggled.clear();
    }

    // Of another trace as much is open as the window has room for.
    void open_what_fits(const TracePtr& trace, const traces::RankModules& rank) {
        if (shown_.lock() == trace) return;
        shown_ = trace;
        const float line = ImGui::GetTextLineHeight() + 2 * ImGui::GetStyle().CellPadding.y;
        const float rows = ImGui::GetContentRegionAvail().y / line - 3;  // the header has two lines
        set_levels(levels_that_fit(rank.modules, static_cast<std::size_t>(std::max(1.0F, rows))));
    }

    ModuleTreeState state_;
    std::weak_ptr<const traces::Trace> shown_;
};

}  // namespace

std::unique_ptr<Panel> make_modules_panel() {
    return std::make_unique<ModulesPanel>();
}

}  // namespace shardscope::viewer
