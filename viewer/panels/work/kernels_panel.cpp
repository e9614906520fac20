// Kernels: the device's work by name, with durations and, if known, occupancy; launch sizes; and the copies.
#include <array>

#include <fmt/core.h>
#include <imgui.h>

#include "traces/store/grouped.h"
#include "viewer/draw/format.h"
#include "viewer/draw/short_name.h"
#include "viewer/draw/text.h"
#include "viewer/model/panel.h"
#include "viewer/model/session.h"
#include "viewer/panels/work/launch_view.h"
#include "viewer/panels/work/operator_rows.h"
#include "viewer/panels/work/share_bar.h"
#include "viewer/tables/table.h"
#include "viewer/widgets/occurrence_bar.h"
#include "viewer/widgets/segmented.h"
#include "viewer/widgets/toolbar.h"

namespace shardscope::viewer {
namespace {

using traces::KernelsReport;
using traces::RankKernels;

class KernelsPanel final : public Panel {
  public:
    std::string_view name() const override { return "kernels"; }
    bool busy() const override { return details_.busy(); }

    void draw(Session& session, const Frame&) override {
        draw_choosers(session);
        static constexpr std::array<std::string_view, 3> kViews = {"By name", "By launch size", "Copies"};
        if (segmented("kernels.show", kViews, view_) && view_ == launches && !chosen_name_.empty())
            details_.show_only(readable_name(chosen_name_));
        if (view_ != names) {
            draw_limit_note(session);
            note("A double-click shows the longest on the timeline.");
            view_ == launches ? details_.draw_launches(session) : details_.draw_copies(session);
            return;
        }
        const TracePtr trace = session.trace();
        const traces::Selection selection = Session::selection(*session.current());
        const auto report = session.analyses.analysis<KernelsReport>(
            "kernels", trace, selection,
            [](const traces::Trace& t, const traces::Selection& s) { return traces::kernels_report(t, s); });
        if (report == nullptr) return draw_waiting(session, "the kernels");
        const RankKernels* rank = chosen_rank(report->ranks, session);
        if (rank == nullptr || rank->kernels.empty()) {
            return note(
                "This trace holds no kernels of this rank in what is looked at. They come from the device's "
                "side of the profiler: record with CUDA activity.");
        }
        draw_limit_note(session);
        make_rows(report, *rank);
        draw_report(session, trace, selection, *rank);
    }

  private:
    enum View { names, launches, copies };  // indices of the buttons

    void make_rows(const std::shared_ptr<const KernelsReport>& report, const RankKernels& rank) {
        if (shown_ == report && shown_rank_ == &rank) return;
        shown_ = report;
        shown_rank_ = &rank;
        model_ = kernel_table(rank);
        shares_ = kernel_shares(rank);
    }

    void draw_report(Session& session, const TracePtr& trace, traces::Selection selection,
                     const RankKernels& rank) {
        heading(fmt::format("Rank {}: {} of {}, {}", rank.rank,
                            traces::counted(rank.count, "kernel", "kernels"),
                            traces::counted(rank.distinct, "name", "names"),
                            format_duration(static_cast<double>(rank.total))));
        if (const auto row = draw_share_bar("kernels.shares", shares_)) {
            state_.chosen = row;
            state_.scroll_to_chosen = true;
        }
        const float below = ImGui::GetFrameHeightWithSpacing();
        const float height = ImGui::GetContentRegionAvail().y - below - ImGui::GetFrameHeightWithSpacing();
        const TableEvents events = draw_table("kernels", model_, state_, {.size = {0, height}});
        Occurrences all;
        std::string& name = chosen_name_;
        name.clear();
        if (state_.chosen && *state_.chosen < rank.kernels.size()) {
            name = rank.kernels[*state_.chosen].name;
            selection.rank = rank.rank;
            all = session.analyses.analysis<std::vector<std::uint32_t>>(
                "events of kernel " + name, trace, selection,
                [name](const traces::Trace& t, const traces::Selection& s) {
                    return traces::kernel_events(t, s, name);
                });
        }
        if (events.opened) wants_longest_ = true;
        if (wants_longest_ && all != nullptr) {
            wants_longest_ = false;
            go_to_longest(session, EventKind::device, all);
        }
        draw_occurrences("kernels", session, name, EventKind::device, all);
    }

    int view_ = names;
    LaunchView details_;
    std::string chosen_name_;
    bool wants_longest_ = false;
    TableState state_;
    std::shared_ptr<const KernelsReport> shown_;
    const RankKernels* shown_rank_ = nullptr;
    std::shared_ptr<const TableModel> model_;
    std::vector<NameShare> shares_;
};

}  // namespace

std::unique_ptr<Panel> make_kernels_panel() {
    return std::make_unique<KernelsPanel>();
}

}  // namespace shardscope::viewer
