// Operators: what the host program calls, and the cost of each on the host and on the device. Kernels: the
// device's work by name, with durations and, if known, occupancy; launch sizes; and the copies. Both show the
// largest as a bar of shares, all in a table, and under it the place of the chosen row's events in the
// timeline.
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include "traces/store/grouped.h"
#include "viewer/draw/format.h"
#include "viewer/draw/short_name.h"
#include "viewer/draw/text.h"
#include "viewer/model/panel.h"
#include "viewer/model/session.h"
#include "viewer/model/why_empty.h"
#include "viewer/panels/work/launch_view.h"
#include "viewer/panels/work/named_work.h"
#include "viewer/panels/work/operator_rows.h"
#include "viewer/widgets/segmented.h"
#include "viewer/widgets/toolbar.h"

namespace shardscope::viewer::panels {
namespace {

using traces::analysis::KernelsReport;
using traces::analysis::OperatorsReport;
using traces::analysis::RankKernels;
using traces::analysis::RankOperators;

class OperatorsPanel final : public model::Panel {
  public:
    std::string_view name() const override { return "operators"; }

    void draw(model::Session& session, const model::Frame&) override {
        widgets::draw_choosers(session);
        widgets::toggle_button("operators.by_shape", "By input shapes", by_shape_);
        const model::TracePtr trace = session.trace();
        traces::analysis::Selection selection = model::Session::selection(*session.current());
        const auto report = session.analyses.analysis<OperatorsReport>(
            by_shape_ ? "operators by shape" : "operators", trace, selection,
            [by_shape = by_shape_](const traces::store::Trace& t, const traces::analysis::Selection& s) {
                return traces::analysis::operators_report(t, s, by_shape);
            });
        if (report == nullptr) return widgets::draw_waiting(session, "the operators");
        const RankOperators* rank = widgets::chosen_rank(report->ranks, session);
        if (rank == nullptr || rank->operators.empty()) {
            return draw::note(model::why_empty("operators"));
        }
        widgets::draw_limit_note(session);
        const bool by_shape = report->by_shape;
        rows_.take(report, rank, [&] {
            return NamedWork::Rows{operator_table(*rank, by_shape), operator_shares(*rank)};
        });
        draw::heading(fmt::format("Rank {}: {} of {}, {} on the device", rank->rank,
                                  traces::store::counted(rank->calls, "call", "calls"),
                                  traces::store::counted(rank->distinct, "operator", "operators"),
                                  draw::format_duration(static_cast<double>(rank->device_self))));
        selection.rank = rank->rank;
        rows_.draw(session, [&](std::size_t i) {
            const traces::analysis::OperatorStats& row = rank->operators[i];
            const std::string name =
                row.shapes.empty() ? std::string(row.name) : fmt::format("{} {}", row.name, row.shapes);
            return NamedWork::Chosen{
                name,
                session.analyses.analysis<std::vector<std::uint32_t>>(
                    fmt::format("calls of operator {} {}", by_shape, name), trace, selection,
                    [row, by_shape](const traces::store::Trace& t, const traces::analysis::Selection& s) {
                        return traces::analysis::operator_calls(t, s, row.name, row.shapes, by_shape);
                    })};
        });
    }

  private:
    bool by_shape_ = false;
    NamedWork rows_{"operators", model::EventKind::range};
};

class KernelsPanel final : public model::Panel {
  public:
    std::string_view name() const override { return "kernels"; }
    bool busy() const override { return details_.busy(); }

    void draw(model::Session& session, const model::Frame&) override {
        widgets::draw_choosers(session);
        static constexpr std::array<std::string_view, 3> kViews = {"By name", "By launch size", "Copies"};
        if (widgets::segmented("kernels.show", kViews, view_) && view_ == launches && !rows_.name().empty())
            details_.show_only(draw::readable_name(rows_.name()));
        if (view_ != names) {
            widgets::draw_limit_note(session);
            if (view_ == launches) return details_.draw_launches(session);
            return details_.draw_copies(session, "kernels.copies", "copies");
        }
        const model::TracePtr trace = session.trace();
        traces::analysis::Selection selection = model::Session::selection(*session.current());
        const auto report = session.analyses.analysis<KernelsReport>(
            "kernels", trace, selection,
            [](const traces::store::Trace& t, const traces::analysis::Selection& s) {
                return traces::analysis::kernels_report(t, s);
            });
        if (report == nullptr) return widgets::draw_waiting(session, "the kernels");
        const RankKernels* rank = widgets::chosen_rank(report->ranks, session);
        if (rank == nullptr || rank->kernels.empty()) {
            return draw::note(model::why_empty("kernels"));
        }
        widgets::draw_limit_note(session);
        rows_.take(report, rank, [&] { return NamedWork::Rows{kernel_table(*rank), kernel_shares(*rank)}; });
        draw::heading(fmt::format("Rank {}: {} of {}, {}", rank->rank,
                                  traces::store::counted(rank->count, "kernel", "kernels"),
                                  traces::store::counted(rank->distinct, "name", "names"),
                                  draw::format_duration(static_cast<double>(rank->total))));
        selection.rank = rank->rank;
        rows_.draw(session, [&](std::size_t i) {
            const std::string name(rank->kernels[i].name);
            return NamedWork::Chosen{
                name, session.analyses.analysis<std::vector<std::uint32_t>>(
                          "events of kernel " + name, trace, selection,
                          [name](const traces::store::Trace& t, const traces::analysis::Selection& s) {
                              return traces::analysis::kernel_events(t, s, name);
                          })};
        });
    }

  private:
    enum View { names, launches, copies };  // indices of the buttons
    int view_ = names;
    LaunchView details_{"kernels.import"};
    NamedWork rows_{"kernels", model::EventKind::device};
};

}  // namespace

std::unique_ptr<model::Panel> make_operators_panel() {
    return std::make_unique<OperatorsPanel>();
}

std::unique_ptr<model::Panel> make_kernels_panel() {
    return std::make_unique<KernelsPanel>();
}

}  // namespace shardscope::viewer::panels
