// Topology: which links join the devices of a job, what the trace sent over them, and how fast that was; as a
// picture, as a matrix, or as a table of pairs of ranks.
#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <imgui.h>

#include "traces/analysis/topology/pair_traffic.h"
#include "viewer/draw/items.h"
#include "viewer/draw/text.h"
#include "viewer/model/panel.h"
#include "viewer/model/session.h"
#include "viewer/model/why_empty.h"
#include "viewer/panels/topology/topology_rows.h"
#include "viewer/panels/topology/topology_view.h"
#include "viewer/tables/table.h"
#include "viewer/widgets/kept_model.h"
#include "viewer/widgets/segmented.h"
#include "viewer/widgets/toolbar.h"

namespace shardscope::viewer::panels {
namespace {

using traces::analysis::Selection;
using traces::analysis::TopologyReport;
using traces::store::Trace;

class TopologyPanel final : public model::Panel {
  public:
    std::string_view name() const override { return "topology"; }

    void closed(const Trace&, const model::TracePtr&) override {
        pairs_.forget();
        picture_.report.reset();
    }

    void draw(model::Session& session, const model::Frame&) override {
        widgets::draw_choosers(session, false);
        static constexpr std::string_view kViews[] = {"Picture", "Matrix", "Pairs"};
        widgets::segmented("topology.view", kViews, view_);
        const auto report = session.analyses.analysis<TopologyReport>(
            "topology", session.trace(), model::Session::selection(*session.current()),
            [](const Trace& t, const Selection& s) { return traces::analysis::topology_report(t, s); });
        if (report == nullptr) {
            draw::flow(ImGui::GetWindowWidth());
            return widgets::draw_waiting(session, "the topology");
        }
        if (report->hosts.empty() && report->pairs.empty()) {
            draw::flow(ImGui::GetWindowWidth());
            return draw::note(model::why_empty("topology"));
        }
        if (picture_.report != report) {
            const std::size_t points = picture_.points.size();
            picture_ = topology_picture(report);
            if (picture_.points.size() != points) choice_ = {};  // another job, not one that has grown
        }
        if (view_ == table) return draw_pairs(report);
        const float font = ImGui::GetFontSize();
        ImGui::SameLine(0, font);
        static constexpr std::string_view kColors[] = {"Link", "Bandwidth", "Bytes"};
        widgets::segmented("topology.colors", kColors, colors_);
        if (view_ == matrix) choose_host();
        draw::flow(ImGui::GetWindowWidth());
        widgets::draw_limit_note(session);
        const auto by = static_cast<EdgeColor>(colors_);
        draw_topology_legend(picture_, by);
        for (const std::string& said : report->notes) draw::note(said);
        const ImVec2 room = ImGui::GetContentRegionAvail();
        const bool beside = room.x > font * 56;
        const float width = beside ? room.x - font * 25 : room.x;
        const float height = beside ? room.y : std::max(font * 12, room.y - font * 12);
        const ImVec2 size{width, std::max(font * 8, height)};
        if (view_ == matrix) {
            const bool all = picture_.boxes.size() > 1 && host_ == 0;
            const auto box = static_cast<std::size_t>(std::max(0, host_ - 1));
            draw_topology_matrix(picture_, all ? std::nullopt : std::optional(box), by, choice_, size);
        } else {
            draw_topology_picture(picture_, by, choice_, size);
        }
        if (beside) ImGui::SameLine(0, font);
        ImGui::BeginChild("choice", {0, 0});
        draw_topology_choice(picture_, choice_);
        ImGui::EndChild();
    }

  private:
    enum View { picture, matrix, table };  // indices of the buttons

    // Of several hosts: all, or one.
    void choose_host() {
        if (picture_.boxes.size() < 2) {
            host_ = 0;
            return;
        }
        const float font = ImGui::GetFontSize();
        ImGui::SameLine(0, font);
        draw::flow(font * 12);
        ImGui::SetNextItemWidth(font * 12);
        const auto title = [&](int host) {
            return host == 0 ? std::string("All GPUs and ranks")
                             : picture_.boxes[static_cast<std::size_t>(host - 1)].host;
        };
        host_ = std::min(host_, static_cast<int>(picture_.boxes.size()));
        if (ImGui::BeginCombo("##host", draw::fit_in_combo(title(host_), font * 12).c_str())) {
            for (int h = 0; h <= static_cast<int>(picture_.boxes.size()); ++h) {
                ImGui::PushID(h);
                if (ImGui::Selectable(title(h).c_str(), h == host_)) host_ = h;
                ImGui::PopID();
            }
            ImGui::EndCombo();
        }
        draw::items::mark("topology.host", title(host_));
    }

    void draw_pairs(const std::shared_ptr<const TopologyReport>& report) {
        draw::flow(ImGui::GetWindowWidth());
        for (const std::string& said : report->notes) draw::note(said);
        if (report->pairs.empty())
            return draw::note(
                "No bytes went between ranks in the current selection: there is no collective or "
                "message whose bytes and ranks are known.");
        const auto model = pairs_.of(report, "pairs", [&] { return pair_table(*report); });
        tables::draw_table("topology.pairs", model, pairs_state_, {.name = "pairs of ranks"});
    }

    int view_ = picture, colors_ = 0, host_ = 0;
    TopologyPicture picture_;
    TopologyChoice choice_;
    widgets::KeptModel pairs_;
    tables::TableState pairs_state_;
};

}  // namespace

std::unique_ptr<model::Panel> make_topology_panel() {
    return std::make_unique<TopologyPanel>();
}

}  // namespace shardscope::viewer::panels
