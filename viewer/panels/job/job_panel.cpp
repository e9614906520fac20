// Job: who worked. A lane for each device over the time, hosts as groups; devices, ranks, adapters and hosts
// as tables; energy and cost; what the rules found about devices, hosts and wires.
#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>
#include <imgui.h>

#include "traces/analysis/advice/advice.h"
#include "traces/analysis/job/utilization.h"
#include "viewer/draw/chart.h"
#include "viewer/draw/format.h"
#include "viewer/draw/items.h"
#include "viewer/draw/text.h"
#include "viewer/model/panel.h"
#include "viewer/model/session.h"
#include "viewer/model/why_empty.h"
#include "viewer/panels/job/job_lanes.h"
#include "viewer/panels/job/job_rows.h"
#include "viewer/tables/result_model.h"
#include "viewer/tables/table.h"
#include "viewer/theme/theme.h"
#include "viewer/widgets/kept_model.h"
#include "viewer/widgets/segmented.h"
#include "viewer/widgets/toolbar.h"

namespace shardscope::viewer::panels {
namespace {

using traces::analysis::AdviceReport;
using traces::analysis::Finding;
using traces::analysis::FindingWeight;
using traces::analysis::Selection;
using traces::analysis::UtilizationReport;
using traces::store::Trace;

constexpr std::size_t kMostFindings = 3;

class JobPanel final : public model::Panel {
  public:
    std::string_view name() const override { return "job"; }

    void closed(const Trace&, const model::TracePtr&) override {
        lanes_.forget();
        for (widgets::KeptModel& model : models_) model.forget();
    }

    void draw(model::Session& session, const model::Frame&) override {
        widgets::draw_choosers(session, false);
        static constexpr std::string_view kParts[] = {"Lanes", "Devices", "Ranks", "Adapters", "Hosts"};
        widgets::segmented("job.show", kParts, part_);
        const model::TracePtr trace = session.trace();
        const Selection selection = model::Session::selection(*session.current());
        const auto report = session.analyses.analysis<UtilizationReport>(
            "utilization", trace, selection,
            [](const Trace& t, const Selection& s) { return traces::analysis::utilization_report(t, s); });
        const auto measures = session.analyses.analysis<std::vector<JobMeasure>>(
            "job measures", trace, selection,
            [](const Trace& t, const Selection& s) { return job_measures(t, s); });
        const auto advice = session.analyses.analysis<AdviceReport>(
            "advice", trace, selection,
            [](const Trace& t, const Selection& s) { return traces::analysis::advice(t, s); });
        if (report == nullptr || measures == nullptr) {
            ImGui::NewLine();
            return widgets::draw_waiting(session, "what the devices did");
        }
        if (!report->any_sample()) {
            draw::flow(ImGui::GetWindowWidth());
            if (session.current()->limit && trace->counters.size() > 0)
                return draw::note("No sample lies in the time filter.");
            return draw::note(model::why_empty("job"));
        }
        widgets::draw_limit_note(session);
        const std::string headline = job_headline(report->job);
        draw::wrapped(headline);
        draw::items::value("job.headline", headline);
        if (advice != nullptr) draw_findings(session, *advice);
        switch (part_) {
            case lanes:
                return draw_lanes(session, measures, report->time);
            case devices:
                return draw_table(
                    report, "job.devices", "devices",
                    traces::analysis::result_table(traces::analysis::device_use_fields(), report->devices));
            case ranks:
                return draw_table(
                    report, "job.ranks", "ranks",
                    traces::analysis::result_table(traces::analysis::rank_use_fields(), report->ranks));
            case adapters:
                return draw_table(
                    report, "job.adapters", "adapters",
                    traces::analysis::result_table(traces::analysis::adapter_use_fields(), report->adapters));
            default:
                return draw_table(
                    report, "job.hosts", "hosts",
                    traces::analysis::result_table(traces::analysis::host_use_fields(), report->hosts));
        }
    }

  private:
    enum Part { lanes, devices, ranks, adapters, hosts };  // indices of the buttons

    static void draw_findings(model::Session& session, const AdviceReport& advice) {
        std::size_t drawn = 0;
        for (const std::size_t i : job_findings(advice)) {
            if (drawn++ == kMostFindings) break;
            const Finding& finding = advice.findings[i];
            draw::swatch(finding.weight == FindingWeight::serious ? theme::bad() : theme::accent());
            ImGui::BeginGroup();
            draw::wrapped(fmt::format("{}: {}", finding.title, finding.what));
            ImGui::EndGroup();
            draw::items::mark(fmt::format("job.finding.{}", finding.id), finding.what);
            if (!ImGui::IsItemHovered()) continue;
            ImGui::SetTooltip("A click opens Advice: what to change, and what it would give.");
            if (ImGui::IsItemClicked()) session.wanted_panel = "advice";
        }
    }

    void draw_lanes(model::Session& session, const std::shared_ptr<const std::vector<JobMeasure>>& measures,
                    traces::analysis::Interval time) {
        if (measures->empty())
            return draw::note("None of the sampled figures has lanes; the tables have them.");
        std::vector<std::string_view> titles;
        int chosen = 0;
        for (std::size_t i = 0; i < measures->size(); ++i) {
            titles.push_back((*measures)[i].title);
            if ((*measures)[i].id == measure_) chosen = static_cast<int>(i);
        }
        if (widgets::segmented("job.measure", titles, chosen))
            measure_ = (*measures)[static_cast<std::size_t>(chosen)].id;
        const JobMeasure& measure = (*measures)[static_cast<std::size_t>(chosen)];
        draw::flow(ImGui::GetFontSize() * 20);
        ImGui::AlignTextToFramePadding();
        draw::text_dim(fmt::format("Height: 0 to {}; full: mean, pale: highest",
                                   draw::format_amount(measure.full, measure.unit)));
        lanes_.draw(session, measures, static_cast<std::size_t>(chosen), time);
    }

    void draw_table(const std::shared_ptr<const UtilizationReport>& report, const char* id, const char* name,
                    const traces::analysis::ResultTable& rows) {
        if (rows.rows.empty()) return draw::note(fmt::format("No {} of this job were sampled.", name));
        const auto at = static_cast<std::size_t>(part_);
        const auto model = models_[at].of(report, id, [&] {
            return tables::whole_model(
                rows, {"utilization_percent", "idle_percent", "throttled_percent", "energy_j"});
        });
        for (const std::string& said : report->notes) draw::note(said);
        tables::draw_table(id, model, states_[at], {.filter = false, .name = name});
    }

    int part_ = lanes;
    std::string measure_ = "utilization";
    JobLanes lanes_;
    widgets::KeptModel models_[5];
    tables::TableState states_[5];
};

}  // namespace

std::unique_ptr<model::Panel> make_job_panel() {
    return std::make_unique<JobPanel>();
}

}  // namespace shardscope::viewer::panels
