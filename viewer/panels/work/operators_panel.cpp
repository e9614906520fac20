// Operators: the operators that the host program calls, and the cost of each on the host and on the device.
#include <fmt/core.h>
#include <imgui.h>

#include "traces/store/grouped.h"
#include "viewer/draw/format.h"
#include "viewer/draw/text.h"
#include "viewer/model/panel.h"
#include "viewer/model/session.h"
#include "viewer/panels/work/operator_rows.h"
#include "viewer/panels/work/share_bar.h"
#include "viewer/tables/table.h"
#include "viewer/widgets/occurrence_bar.h"
#include "viewer/widgets/segmented.h"
#include "viewer/widgets/toolbar.h"

namespace shardscope::viewer {
namespace {

using traces::OperatorsReport;
using traces::RankOperators;

class OperatorsPanel final : public Panel {
  public:
    std::string_view name() const override { return "operators"; }

    void draw(Session& session, const Frame&) override {
        draw_choosers(session);
        toggle_button("operators.by_shape", "By input shapes", by_shape_);
        const TracePtr trace = session.trace();
        const traces::Selection selection = Session::selection(*session.current());
        const bool by_shape = by_shape_;
        const auto report = session.analyses.analysis<OperatorsReport>(
            by_shape ? "operators by shape" : "operators", trace, selection,
            [by_shape](const traces::Trace& t, const traces::Selection& s) {
                return traces::operators_report(t, s, by_shape);
            });
        if (report == nullptr) return draw_waiting(session, "the operators");
        const RankOperators* rank = chosen_rank(report->ranks, session);
        if (rank == nullptr || rank->operators.empty()) {
            return note(
                "This trace holds no operators of this rank in what is looked at. They are host ranges: "
                "record "
                "with NVTX ranges (torch.autograd.profiler.emit_nvtx) or with the profiler's CPU activity.");
        }
        draw_limit_note(session);
        make_rows(report, *rank);
        draw_report(session, trace, selection, *rank);
    }

  private:
    void make_rows(const std::shared_ptr<const OperatorsReport>& report, const RankOperators& rank) {
        if (shown_ == report && shown_rank_ == &rank) return;
        shown_ = report;
        shown_rank_ = &rank;
        model_ = operator_table(rank, report->by_shape);
        shares_ = operator_shares(rank);
    }

    void draw_report(Session& session, const TracePtr& trace, traces::Selection selection,
                     const RankOperators& rank) {
        heading(fmt::format("Rank {}: {} of {}, {} on the device", rank.rank,
                            traces::counted(rank.calls, "call", "calls"),
                            traces::counted(rank.distinct, "operator", "operators"),
                            format_duration(static_cast<double>(rank.device_self))));
        if (const auto row = draw_share_bar("operators.shares", shares_)) {
            state_.chosen = row;
            state_.scroll_to_chosen = true;
        }
        const float below = ImGui::GetFrameHeightWithSpacing();
        const float height = ImGui::GetContentRegionAvail().y - below - ImGui::GetFrameHeightWithSpacing();
        const TableEvents events = draw_table("operators", model_, state_, {.size = {0, height}});
        Occurrences calls;
        std::string name;
        if (state_.chosen && *state_.chosen < rank.operators.size()) {
            const traces::OperatorStats& row = rank.operators[*state_.chosen];
            name = row.shapes.empty() ? std::string(row.name) : fmt::format("{} {}", row.name, row.shapes);
            selection.rank = rank.rank;
            const bool by_shape = shown_->by_shape;
            calls = session.analyses.analysis<std::vector<std::uint32_t>>(
                fmt::format("calls of operator {} {}", by_shape, name), trace, selection,
                [row, by_shape](const traces::Trace& t, const traces::Selection& s) {
                    return traces::operator_calls(t, s, row.name, row.shapes, by_shape);
                });
        }
        if (events.opened) wants_longest_ = true;
        if (wants_longest_ && calls != nullptr) {
            wants_longest_ = false;
            go_to_longest(session, EventKind::range, calls);
        }
        draw_occurrences("operators", session, name, EventKind::range, calls);
    }

    bool by_shape_ = false, wants_longest_ = false;
    TableState state_;
    std::shared_ptr<const OperatorsReport> shown_;
    const RankOperators* shown_rank_ = nullptr;
    std::shared_ptr<const TableModel> model_;
    std::vector<NameShare> shares_;
};

}  // namespace

std::unique_ptr<Panel> make_operators_panel() {
    return std::make_unique<OperatorsPanel>();
}

}  // namespace shardscope::viewer
