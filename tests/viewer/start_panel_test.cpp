// Start: each of the five answers is a card whose click leads to its evidence; for several runs, first what
// tells them apart.
#include <set>

#include <gmock/gmock.h>

#include "tests/viewer/panel_fixture.h"
#include "traces/analysis/answers/answers.h"
#include "viewer/app/options.h"
#include "viewer/panels/start/start_rows.h"

namespace shardscope::viewer::panels {
namespace TEST_FILE {

using ::testing::HasSubstr;
using ::testing::Not;
using traces::analysis::Answer;
using traces::analysis::Question;

class StartPanelTest : public PanelsTest {
  protected:
    StartPanelTest() { draw::items::keep(true); }

    std::vector<Answer> answers() const { return traces::analysis::answers(*session_.trace()).answers; }
};

TEST_F(StartPanelTest, IsTheFirstPanelAndTheOneOfAViewerThatWasAskedForNone) {
    EXPECT_EQ(panel_table().front().name, "start");
    EXPECT_EQ(app::Options().panel, "start");
}

TEST_F(StartPanelTest, EveryAnswerIsACard) {
    open({}, "root.sqlite");
    const auto panel = make_panel("start");
    draw(*panel);
    ASSERT_EQ(answers().size(), 5u);
    for (const Answer& answer : answers()) {
        EXPECT_EQ(item(item_of(answer)), answer.says);
        EXPECT_EQ(item(item_of(answer) + ".figure"), headline(answer));
        EXPECT_EQ(draw::items::find(item_of(answer) + ".show").has_value(), has_place(answer)) << answer.says;
    }
    EXPECT_FALSE(draw::items::find("start.compared.peak"));
}

TEST_F(StartPanelTest, AClickOnAnAnswerOpensItsEvidence) {
    open({}, "root.sqlite");
    const auto panel = make_panel("start");
    for (const Answer& answer : answers()) {
        session_.wanted_panel.clear();
        draw(*panel);
        click(*panel, item_of(answer) + ".answer");
        EXPECT_EQ(session_.wanted_panel, panel_of(answer)) << answer.says;
        if (answer.rank >= 0) {
            EXPECT_EQ(session_.trace()->ranks[session_.rank.at()].number, answer.rank) << answer.says;
        }
        if (!answer.unit.empty()) {
            ASSERT_TRUE(session_.selected_unit.known());
            EXPECT_EQ(session_.trace()->units[session_.selected_unit.at()].name, answer.unit);
        }
        session_.wanted_panel.clear();
        click(*panel, item_of(answer) + ".open");
        EXPECT_EQ(session_.wanted_panel, panel_of(answer)) << answer.says;
    }
}

TEST_F(StartPanelTest, ShowMeGoesToThePlace) {
    open({}, "root.sqlite");
    const auto panel = make_panel("start");
    int places = 0;
    for (const Answer& answer : answers()) {
        const auto place = traces::analysis::answer_place(*session_.trace(), {}, answer);
        if (!place) continue;
        ++places;
        session_.wanted_panel.clear();
        draw(*panel);
        click(*panel, item_of(answer) + ".show");
        EXPECT_EQ(session_.wanted_panel, "timeline") << answer.says;
        EXPECT_EQ(session_.rank, place->rank);
        EXPECT_EQ(session_.current()->cursor, place->from + (place->to - place->from) / 2);
    }
    EXPECT_GE(places, 2);
}

TEST_F(StartPanelTest, SeveralRunsAreComparedFirst) {
    open_root_and_linear();
    const auto panel = make_panel("start");
    const std::string text = draw(*panel);
    EXPECT_THAT(item("start.compared.peak"), HasSubstr("linear.sqlite peaks lower"));
    EXPECT_THAT(text, HasSubstr("2 runs"));
    click(*panel, "start.compared.time.answer");
    EXPECT_EQ(session_.wanted_panel, "compare");
    session_.set_active(1);
    draw(*panel);
    EXPECT_EQ(item("start.peak"), answers().front().says);
}

TEST_F(StartPanelTest, CountsOnlyTheLimit) {
    open({}, "root.sqlite");
    const auto panel = make_panel("start");
    draw(*panel);
    const std::string whole = item("start.time");
    const traces::store::Trace& trace = *session_.trace();
    session_.current()->limit = {trace.first_ns, trace.first_ns + (trace.last_ns - trace.first_ns) / 2};
    draw(*panel);
    EXPECT_NE(item("start.time"), whole);
}

TEST_F(StartPanelTest, SaysWhatATraceCannotShow) {
    session_.add_trace(std::make_shared<traces::store::Trace>(), "empty.sqlite");
    const auto panel = make_panel("start");
    draw(*panel);
    for (const char* name : {"peak", "time", "exposed", "late"}) {
        EXPECT_THAT(item("start." + std::string(name)), HasSubstr("unknown, because")) << name;
        EXPECT_FALSE(draw::items::find("start." + std::string(name) + ".show")) << name;
    }
}

TEST(StartRows, EveryAnswerHasAPanel) {
    for (const bool compares : {false, true}) {
        for (const Question question :
             {Question::peak, Question::time, Question::exposed, Question::late, Question::change}) {
            const Answer answer{.question = question, .compares = compares, .unit = "net.0"};
            EXPECT_NE(find_panel(panel_of(answer)), nullptr);
        }
    }
    EXPECT_EQ(panel_of({.question = Question::exposed, .unit = "net.0"}), "units");
    EXPECT_EQ(panel_of({.question = Question::exposed}), "distributed");
}

}  // namespace TEST_FILE
}  // namespace shardscope::viewer::panels
