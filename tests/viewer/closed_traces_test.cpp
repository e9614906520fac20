// A trace that is closed is freed, whichever panel has shown it; a reloaded one stays visible until its
// successor can be drawn. The tests run the whole program without a screen.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/traces/temporary_folder.h"
#include "tests/viewer/shell_fixture.h"
#include "traces/store/write/writer.h"

namespace shardscope::viewer::app {
namespace TEST_FILE {

class ClosedTraces : public ShellTest {
  protected:
    // Uses what a panel keeps longest: the tables whose rows read the trace, a cursor, a search, an event.
    void look_around(const std::string& panel) {
        model::OpenTrace& entry = *program_.session.current();
        entry.cursor = entry.trace->first_ns + (entry.trace->last_ns - entry.trace->first_ns) / 2;
        program_.session.selected = {model::EventKind::device, 3};
        program_.show(panel);
        settle();
        const auto press_all = [&](std::initializer_list<const char*> names) {
            for (const char* name : names) press(name);
        };
        if (panel == "timeline") {
            program_.shown().act("find_same", program_.session);
            program_.shown().act("mark", program_.session);
            program_.shown().act("area", program_.session);
            settle();
            press("timeline.area.bin.0");
            program_.shown().act("next_in_bin", program_.session);
        }
        if (panel == "memory")
            press_all({"memory.view.live_memory", "memory.at.at_the_cursor", "memory.view.steps",
                       "memory.view.allocations"});
        if (panel == "idle") press_all({"idle.view.critical_path", "idle.path_view.every_piece"});
        if (panel == "runs") press_all({"runs.view.devices"});
        if (panel == "collectives") press_all({"collectives.show.each"});
        if (panel == "compare") press_all({"compare.tab.memory"});
        if (panel == "training") press_all({"training.smooth.exponential"});
        settle();
    }
};

// Once with another trace shown afterwards, and once with none.
TEST_F(ClosedTraces, AreFreedWhicheverPanelHasShownThem) {
    for (const bool last : {false, true}) {
        for (const panels::PanelEntry& panel : panels::panel_table()) {
            SCOPED_TRACE(std::string(panel.name) + (last ? ", the last" : ""));
            if (!last) program_.session.add_trace(mlp_sample({}, "stays"), "stays");
            program_.session.add_trace(mlp_sample({.per_linear = true}, "goes"), "goes");
            const std::size_t index = program_.session.open.size() - 1;
            program_.session.set_active(index);
            const std::weak_ptr<const traces::store::Trace> trace = program_.session.trace();
            look_around(std::string(panel.name));
            ASSERT_FALSE(trace.expired());
            program_.session.close(index);
            settle();
            EXPECT_TRUE(trace.expired()) << trace.use_count() << " still keep it";
            while (!program_.session.open.empty()) program_.session.close(0);
            settle();
        }
    }
}

TEST_F(ClosedTraces, AreFreedEvenIfNoPanelShowsThem) {
    program_.session.add_trace(mlp_sample({.per_linear = true}, "goes"), "goes");
    for (const panels::PanelEntry& panel : panels::panel_table()) look_around(std::string(panel.name));
    const std::weak_ptr<const traces::store::Trace> trace = program_.session.trace();
    program_.show("query");
    program_.session.close(0);
    settle();
    EXPECT_TRUE(trace.expired()) << trace.use_count() << " still keep it";
}

TEST_F(ClosedTraces, OneThatIsReadAgainStaysInSightUntilItsSuccessorCanBeDrawn) {
    const traces::TemporaryFolder folder;
    const std::string path = folder / "run.sqlite";
    const auto write = [&](int count) {
        std::filesystem::remove(path);
        traces::store::DatabaseWriter writer({.path = path});
        write_mlp_sample({.per_linear = true, .steps = count}, writer);
        writer.finish(40'000'000, 0);
    };
    int steps = 2;
    write(steps);
    program_.session.open_file(path);
    for (const char* panel : {"timeline", "memory", "summary", "collectives"}) {
        SCOPED_TRACE(panel);
        program_.show(panel);
        settle();
        program_.session.fit();
        program_.shown().act("area", program_.session);
        settle();
        const std::weak_ptr<const traces::store::Trace> before = program_.session.trace();
        const std::size_t events = before.lock()->device.size();
        const auto text_shown = [&] {
            ImGui::GetIO().DisplaySize = {1600, 900};
            ImGui::NewFrame();
            ImGui::LogToClipboard();
            shell_.draw({});
            ImGui::LogFinish();
            ImGui::Render();
            return clipboard_;
        };
        const auto row = draw::items::find("timeline.row.rank 1");
        write(++steps);  // the trace grows
        program_.session.reload(0);
        int frames = 0;
        for (int calm = 0; calm < 3 && frames < 5000; ++frames) {
            const std::string text = text_shown();
            for (const char* waiting : {"Computing", "Adding up"})
                EXPECT_EQ(text.find(waiting), std::string::npos) << "in frame " << frames;
            if (row) {
                const auto now = draw::items::find("timeline.row.rank 1");
                ASSERT_TRUE(now) << "in frame " << frames;
                EXPECT_EQ(now->min.y, row->min.y) << "in frame " << frames;
            }
            calm = program_.working() ? 0 : calm + 1;
            if (calm == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        EXPECT_NE(program_.session.trace()->device.size(), events);
        EXPECT_TRUE(before.expired());
    }
}

}  // namespace TEST_FILE
}  // namespace shardscope::viewer::app
