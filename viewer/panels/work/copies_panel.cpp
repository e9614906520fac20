// Copies: the copies and fills of memory of one rank by kind, as the verb of the same name prints them, with
// the place of each kind's events in the timeline; and the copies by the kinds of memory that they read and
// write.
//
// For scripts: the table "copies" and the line under it (named_work.h); the table "copies.memory", and
// "copies.import" if the trace is not a database.
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include "traces/analysis/time/copies.h"
#include "traces/store/grouped.h"
#include "viewer/draw/text.h"
#include "viewer/model/panel.h"
#include "viewer/model/session.h"
#include "viewer/model/why_empty.h"
#include "viewer/panels/work/launch_view.h"
#include "viewer/panels/work/named_work.h"
#include "viewer/tables/result_model.h"
#include "viewer/theme/theme.h"
#include "viewer/widgets/segmented.h"
#include "viewer/widgets/toolbar.h"

namespace shardscope::viewer::panels {
namespace {

using traces::analysis::CopiesReport;
using traces::analysis::RankCopies;

// Row i is the report's row i.
std::shared_ptr<const tables::TableModel> copies_table(const RankCopies& rank) {
    const theme::Color bar = theme::kind_color(traces::store::DeviceKind::memcpy);
    const tables::ColumnLook looks[] = {
        {.key = "name", .width = 0, .priority = 20, .least = 10},
        {.key = "count", .width = 5, .priority = 15},
        {.key = "bytes", .width = 7.5F, .priority = 17, .id = "mb"},
        {.key = "us", .width = 7.5F, .priority = 19, .bar = bar},
        {.key = "exposed_us", .width = 7.5F, .priority = 16, .bar = bar},
        {.key = "max_us", .width = 7.5F, .priority = 12, .title = "Longest"},
        {.key = "gbps", .width = 6.5F, .priority = 18},
    };
    return result_model(traces::analysis::result_table(traces::analysis::copy_fields(), rank.copies), looks);
}

class CopiesPanel final : public model::Panel {
  public:
    std::string_view name() const override { return "copies"; }
    bool busy() const override { return by_memory_.busy(); }

    void draw(model::Session& session, const model::Frame&) override {
        static constexpr std::array<std::string_view, 2> kViews = {"By kind", "By memory"};
        widgets::draw_choosers(session);
        widgets::segmented("copies.show", kViews, view_);
        widgets::draw_limit_note(session);
        const model::TracePtr trace = session.trace();
        traces::analysis::Selection selection = model::Session::selection(*session.current());
        const auto report = session.analyses.analysis<CopiesReport>(
            "copies", trace, selection,
            [](const traces::store::Trace& t, const traces::analysis::Selection& s) {
                return traces::analysis::copies_report(t, s);
            });
        if (report == nullptr) return widgets::draw_waiting(session, "the copies");
        const RankCopies* rank = widgets::chosen_rank(report->ranks, session);
        if (rank == nullptr || rank->copies.empty()) return draw::note(why_empty(session, *report));
        if (view_ == memory) return by_memory_.draw_copies(session, "copies.memory", "copies_by_memory");
        by_kind_.take(report, rank, [&] { return NamedWork::Rows{copies_table(*rank), {}}; });
        draw::heading(fmt::format(
            "Rank {}: {} of copies and fills", rank->rank,
            traces::store::counted(static_cast<std::int64_t>(rank->copies.size()), "kind", "kinds")));
        selection.rank = rank->rank;
        by_kind_.draw(session, [&](std::size_t i) {
            const std::string name(rank->copies[i].name);
            return NamedWork::Chosen{
                name, session.analyses.analysis<std::vector<std::uint32_t>>(
                          "events of copies " + name, trace, selection,
                          [name](const traces::store::Trace& t, const traces::analysis::Selection& s) {
                              return traces::analysis::copy_events(t, s, name);
                          })};
        });
    }

  private:
    static std::string why_empty(const model::Session& session, const CopiesReport& report) {
        if (session.current()->limit) return "This rank has no copies or fills in the time filter.";
        if (session.trace()->device.size() == 0) {
            return std::string(model::why_empty("copies"));
        }
        for (const RankCopies& rank : report.ranks) {
            if (!rank.copies.empty()) return "This rank has no copies or fills of memory; other ranks have.";
        }
        return std::string(model::why_empty("copies.none"));
    }

    enum View { kind, memory };  // indices of the buttons
    int view_ = kind;
    NamedWork by_kind_{"copies", model::EventKind::device};
    LaunchView by_memory_{"copies.import"};
};

}  // namespace

std::unique_ptr<model::Panel> make_copies_panel() {
    return std::make_unique<CopiesPanel>();
}

}  // namespace shardscope::viewer::panels
