// Advice: each finding is a card with its figures, the most important first, and a link to its place.
#include <set>

#include <gmock/gmock.h>

#include "tests/viewer/panel_fixture.h"
#include "traces/analysis/advice/advice.h"
#include "traces/analysis/advice/advice_place.h"
#include "viewer/panels/advice/advice_rows.h"

namespace shardscope::viewer::panels {
namespace TEST_FILE {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class AdvicePanelTest : public PanelsTest {
  protected:
    AdvicePanelTest() {
        draw::items::keep(true);
        open({}, "root.sqlite");
    }
};

TEST_F(AdvicePanelTest, EveryFindingIsACardWithItsFigures) {
    const auto report = traces::analysis::advice(*session_.trace());
    ASSERT_FALSE(report.findings.empty());
    const auto panel = make_panel("advice");
    draw(*panel, 1600, 3000);
    for (const traces::analysis::Finding& finding : report.findings) {
        EXPECT_THAT(item("advice." + std::string(finding.id)), HasSubstr(finding.what));
        for (const traces::analysis::AdviceFigure& figure : finding.figures) {
            EXPECT_EQ(item("advice." + std::string(finding.id) + "." + figure.name), figure_text(figure));
        }
    }
}

TEST_F(AdvicePanelTest, ShowMeGoesToThePlace) {
    const traces::store::Trace& trace = *session_.trace();
    const auto report = traces::analysis::advice(trace);
    const auto shown = std::find_if(report.findings.begin(), report.findings.end(), [&](const auto& f) {
        return traces::analysis::advice_place(trace, {}, f.id).has_value();
    });
    ASSERT_NE(shown, report.findings.end());
    const auto place = *traces::analysis::advice_place(trace, {}, shown->id);
    const auto panel = make_panel("advice");
    draw(*panel, 1600, 3000);
    const auto button = draw::items::find("advice." + std::string(shown->id) + ".show");
    ASSERT_TRUE(button);
    ImGuiIO& io = ImGui::GetIO();
    io.MousePos = {(button->min.x + button->max.x) / 2, (button->min.y + button->max.y) / 2};
    for (const bool down : {false, true, false}) {
        io.MouseDown[0] = down;
        frame(*panel, 1600, 3000);
    }
    draw(*panel, 1600, 3000);
    EXPECT_EQ(session_.wanted_panel, "timeline");
    EXPECT_EQ(session_.rank, place.rank);
    EXPECT_LE(session_.current()->visible.from, std::max(place.from, trace.first_ns));
    EXPECT_GE(session_.current()->visible.to, std::min(place.to, trace.last_ns));
}

TEST(AdviceRows, SeriousFindingsComeFirstElseInTheReportsOrder) {
    traces::analysis::AdviceReport report;
    for (const auto weight :
         {traces::analysis::FindingWeight::minor, traces::analysis::FindingWeight::serious,
          traces::analysis::FindingWeight::notable, traces::analysis::FindingWeight::serious}) {
        report.findings.emplace_back().weight = weight;
    }
    EXPECT_THAT(by_weight(report), ElementsAre(1, 3, 2, 0));
}

TEST(AdviceRows, FiguresHaveTheirUnit) {
    EXPECT_EQ(figure_text({"exposed", 1234.5, "us/step"}), "1.23 ms per step");
    EXPECT_EQ(figure_text({"peak", 110092296, "bytes"}), "105.0 MiB");
    EXPECT_EQ(figure_text({"share", 12.345, "%"}), "12.35 %");
    EXPECT_EQ(figure_text({"rank", 3, ""}), "3");
    EXPECT_EQ(figure_text({"regathers", 1, "times/step"}), "once per step");
    EXPECT_EQ(figure_text({"regathers", 1, "times"}), "once") << "of a trace without steps";
    EXPECT_EQ(figure_text({"exposed", 1234.5, "us"}), "1.23 ms");
    EXPECT_EQ(figure_text({"regathers", 1.5, "times/step"}), "1.50 times per step");
}

TEST(AdviceRows, EveryRuleHasAPanelOfItsSubject) {
    static const std::set<std::string_view> kPanels = {
        "runs",        "modules",  "units", "memory",   "summary", "kernels", "collectives",
        "distributed", "shardmap", "idle",  "topology", "job",     "copies"};
    int configuration = 0;
    for (const traces::analysis::AdviceRule& rule : traces::analysis::advice_rules()) {
        EXPECT_TRUE(kPanels.contains(panel_of(rule.id))) << rule.id;
        EXPECT_TRUE(kPanels.contains(panel_of(rule.id, false))) << rule.id;
        if (!has_place(rule.id)) ++configuration;
    }
    EXPECT_EQ(configuration, 10);  // the findings about the run's configuration, and about the job's hosts
}

}  // namespace TEST_FILE
}  // namespace shardscope::viewer::panels
