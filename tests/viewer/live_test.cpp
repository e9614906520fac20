// A trace that is still being written: whichever panel shows it, the old picture stays until the new one is
// whole. The tests run the whole program without a screen and look at every frame.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/traces/temporary_folder.h"
#include "tests/viewer/shell_fixture.h"
#include "traces/store/write/writer.h"

namespace shardscope::viewer::app {
namespace TEST_FILE {

using testing::HasSubstr;

class LiveTest : public ShellTest {
  protected:
    // Begins a run of two steps in a file, and opens it.
    void begin(const std::string& name) {
        const std::string path = folder_ / name;
        writer_ = std::make_unique<traces::store::DatabaseWriter>(traces::store::WriterOptions{.path = path});
        step_ = mlp_in_progress({.per_linear = true}, *writer_);
        step_();
        step_();
        program_.session.open_file(path);
        settle();
    }

    // Names of what is on the screen; those of the last frame.
    std::vector<std::string> names() {
        draw::items::begin_frame();
        std::vector<std::string> names = draw::items::names();
        std::sort(names.begin(), names.end());
        return names;
    }

    // Lets the run grow by a step, and looks at each frame until the step is in the picture.
    void grow_and_look() {
        frame();
        const std::vector<std::string> before = names();
        const int vertices = ImGui::GetDrawData()->TotalVtxCount;
        const model::TracePtr old = program_.session.trace();
        step_();
        program_.session.reload(0);
        program_.session.current()->followed = true;  // as poll_files() does
        bool lost = false;
        for (int calm = 0, i = 0; calm < 3 && i < 5000 && !lost; ++i) {
            const std::string text = frame();
            for (const char* waiting : {"Computing", "Adding up", "Reading", "reading", "reloading",
                                        "working", "Checking", "Running"}) {
                EXPECT_EQ(text.find(waiting), std::string::npos) << waiting << " in frame " << i;
                lost = lost || text.find(waiting) != std::string::npos;
            }
            EXPECT_GT(ImGui::GetDrawData()->TotalVtxCount, vertices * 9 / 10) << "in frame " << i;
            const std::vector<std::string> now = names();
            std::vector<std::string> gone;
            std::set_difference(before.begin(), before.end(), now.begin(), now.end(),
                                std::back_inserter(gone));
            EXPECT_THAT(gone, testing::IsEmpty()) << "in frame " << i;
            lost = lost || !gone.empty();
            calm = program_.working() ? 0 : calm + 1;
            if (calm == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        EXPECT_NE(program_.session.trace(), old);
        settle();
    }

    traces::TemporaryFolder folder_;
    std::unique_ptr<traces::store::DatabaseWriter> writer_;
    std::function<void()> step_;
};

// What is shown before the trace grows: a panel, and what is pressed in it.
struct Look {
    const char* panel;
    std::vector<const char*> presses = {};
    std::function<void(Program&)> also = nullptr;
};

std::vector<Look> looks() {
    std::vector<Look> all;
    for (const panels::PanelEntry& entry : panels::panel_table()) all.push_back({entry.name.data()});
    const auto act = [](const char* what) {
        return [what](Program& program) { program.shown().act(what, program.session); };
    };
    all.push_back({"memory", {"memory.view.steps"}});
    all.push_back({"memory", {"memory.view.allocations"}});
    all.push_back({"memory", {"memory.view.live_memory", "memory.at.at_the_cursor"}});
    all.push_back({"idle", {"idle.view.critical_path"}});
    all.push_back({"idle", {"idle.view.critical_path", "idle.path_view.every_piece"}});
    all.push_back({"collectives", {"collectives.show.each"}});
    all.push_back({"runs", {"runs.view.devices"}});
    all.push_back({"kernels", {"kernels.show.by_launch_size"}});
    all.push_back({"kernels", {"kernels.show.copies"}});
    all.push_back({"copies", {"copies.show.by_memory"}});
    all.push_back({"collectives", {"collectives.show.stragglers"}});
    all.push_back({"distributed", {"distributed.show.ranks"}});
    all.push_back({"query", {"query.view.table_and_plot"}});
    all.push_back({"timeline", {}, act("find_same")});
    all.push_back({"timeline", {}, act("area")});
    return all;
}

// In parts, since all take long under a sanitizer.
constexpr std::size_t kParts = 4;
class LivePanels : public LiveTest, public testing::WithParamInterface<std::size_t> {};

TEST_P(LivePanels, HaveNoFrameThatIsEmptierThanTheOneBefore) {
    begin("run.sqlite");
    const std::vector<Look> all = looks();
    for (std::size_t i = GetParam(); i < all.size(); i += kParts) {
        const Look& look = all[i];
        SCOPED_TRACE(look.panel + std::string(look.presses.empty() ? "" : look.presses.back()));
        program_.show(look.panel);
        model::OpenTrace& entry = *program_.session.current();
        entry.cursor = entry.trace->first_ns + (entry.trace->last_ns - entry.trace->first_ns) / 2;
        program_.session.selected = {model::EventKind::device, 3};
        settle();
        for (const char* name : look.presses) press(name);
        if (look.also) look.also(program_);
        settle();
        grow_and_look();
    }
}

INSTANTIATE_TEST_SUITE_P(All, LivePanels, testing::Range(std::size_t{0}, kParts));

// The same with a second run beside it, which the Start page and Compare show, too.
TEST_F(LiveTest, NoFrameOfAComparisonIsEmptierThanTheOneBefore) {
    begin("run.sqlite");
    program_.session.add_trace(mlp_sample({.per_linear = false}, "root.sqlite"), "root.sqlite");
    for (const char* panel : {"start", "compare", "runs", "memory"}) {
        SCOPED_TRACE(panel);
        program_.show(panel);
        settle();
        grow_and_look();
    }
}

TEST_F(LiveTest, ZoomSelectionAndScrollStayAndTheEndIsFollowed) {
    begin("run.sqlite");
    for (int i = 0; i < 4; ++i) step_();
    program_.session.reload(0);
    settle();
    model::OpenTrace& entry = *program_.session.current();
    program_.show("collectives");
    settle();
    press("collectives.show.each");
    ImGuiIO& io = ImGui::GetIO();
    const auto table = draw::items::find("collectives.each.row.20");
    ASSERT_TRUE(table);
    io.MousePos = {table->min.x + 100, table->min.y};
    frame();
    io.MouseWheel = -5;
    frame();
    io.MouseWheel = 0;
    io.MousePos = {-1e9F, -1e9F};
    settle();
    const auto scrolled = draw::items::find("collectives.each.row.30");
    ASSERT_TRUE(scrolled);
    const auto place = scrolled->min.y;
    EXPECT_LT(draw::items::find("collectives.each.row.20")->min.y, table->min.y);
    const std::int64_t last = entry.trace->last_ns;
    entry.visible = {last / 4, last / 2};
    program_.session.selected = {model::EventKind::device, 3};
    grow_and_look();
    EXPECT_EQ(draw::items::find("collectives.each.row.30")->min.y, place);
    EXPECT_EQ(entry.visible, (model::TimeRange{last / 4, last / 2}));
    EXPECT_NE(program_.session.selected.kind, model::EventKind::none);

    const std::int64_t end = entry.trace->last_ns;
    entry.visible = {end - 1000, end + 10};  // at the end
    grow_and_look();
    EXPECT_GT(entry.trace->last_ns, end);
    EXPECT_EQ(entry.visible, (model::TimeRange{entry.trace->last_ns - 1000, entry.trace->last_ns + 10}));

    program_.session.fit();
    grow_and_look();
    EXPECT_LT(entry.visible.from, entry.trace->first_ns);
    EXPECT_GT(entry.visible.to, entry.trace->last_ns);
}

TEST_F(LiveTest, ARunSaysThatItRunsAndAProcessThatHasGoneThatItStopped) {
    const std::string path = folder_ / "run.sqlite";
    int ready[2], end[2];
    ASSERT_EQ(::pipe(ready), 0);
    ASSERT_EQ(::pipe(end), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    char byte = 0;
    if (child == 0) {  // a job: three steps, then it waits, and is killed
        traces::store::DatabaseWriter writer({.path = path});
        const auto step = mlp_in_progress({.per_linear = true}, writer);
        for (int i = 0; i < 3; ++i) step();
        if (::write(ready[1], &byte, 1) == 1 && ::read(end[0], &byte, 1) >= 0) ::_exit(0);
        ::_exit(1);
    }
    ASSERT_EQ(::read(ready[0], &byte, 1), 1);
    program_.session.open_file(path);
    program_.show("runs");
    settle();
    EXPECT_THAT(item("app.status"), HasSubstr("running, step 3, "));
    EXPECT_THAT(item("app.status"), testing::ContainsRegex("step 3, [0-9]+ s ago"));
    EXPECT_THAT(item("runs.files.run.sqlite.state"), testing::StartsWith("running, step 3, "));
    EXPECT_THAT(item("rail.running"), testing::StartsWith("running, step 3, "));
    EXPECT_EQ(program_.title(), "run.sqlite (running, step 3) - Shardscope");

    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (program_.session.current()->running() && std::chrono::steady_clock::now() < until) {
        program_.session.poll_states();
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    settle();
    EXPECT_THAT(item("app.status"), HasSubstr("stopped a moment ago without finishing"));
    EXPECT_THAT(item("runs.files.run.sqlite.state"), testing::EndsWith("without finishing"));
    EXPECT_EQ(program_.title(), "run.sqlite - Shardscope");
    EXPECT_FALSE(draw::items::find("rail.running"));
}

// While a run goes on writing, nothing but its progress is drawn, and nothing once it has ended.
TEST_F(LiveTest, OneThatHasEndedIsFinishedAndDrawsNothing) {
    begin("run.sqlite");
    writer_->finish(40'000'000, 0);
    program_.session.reload(0);
    settle();
    EXPECT_THAT(item("app.status"), testing::EndsWith("finished"));
    for (int i = 0; i < 2; ++i) {
        EXPECT_FALSE(program_.session.poll_states());
        EXPECT_FALSE(program_.session.poll_files());
        std::this_thread::sleep_for(std::chrono::milliseconds(1050));
    }
}

}  // namespace TEST_FILE
}  // namespace shardscope::viewer::app
