// The program that simulates a row, replaced by shell scripts: its file and its output, and how it is
// stopped.
#include "viewer/model/row_simulation.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace shardscope::viewer::model {
namespace TEST_FILE {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

class RowSimulationTest : public testing::Test {
  protected:
    RowSimulationTest() {
        std::string name = (fs::temp_directory_path() / "row-simulation-XXXXXX").string();
        folder_ = ::mkdtemp(name.data());
    }
    ~RowSimulationTest() override { fs::remove_all(folder_); }

    // A tool that runs this script; its arguments: JOB.toml --run.device=sim --trace FILE --format json.
    std::string tool(const std::string& script) const {
        const fs::path path = folder_ / "tool";
        std::ofstream(path) << "#!/bin/sh\n" << script << "\n";
        fs::permissions(path, fs::perms::owner_all);
        return path.string();
    }
    static std::optional<RowSimulation::Made> finish(RowSimulation& simulation) {
        std::optional<RowSimulation::Made> made;
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
        while (simulation.busy() && std::chrono::steady_clock::now() < end) {
            made = simulation.poll();
            if (!made) std::this_thread::sleep_for(std::chrono::milliseconds(2));
        }
        EXPECT_FALSE(simulation.busy());
        return made;
    }

    fs::path folder_;
};

TEST_F(RowSimulationTest, MakesATraceThatGoesWithTheViewer) {
    std::string path;
    {
        RowSimulation simulation(tool(R"([ "$2 $3" = "--run.device=sim --trace" ] && cat "$1" > "$4")"));
        simulation.start("a job", "row 3 of plan.sqlite");
        EXPECT_TRUE(simulation.busy());
        EXPECT_THAT(simulation.progress(), HasSubstr("simulating row 3 of plan.sqlite"));
        const auto made = finish(simulation);
        ASSERT_TRUE(made) << simulation.error();
        EXPECT_EQ(made->name, "row 3 of plan.sqlite");
        EXPECT_TRUE(simulation.is_mine(made->path));
        EXPECT_FALSE(simulation.is_mine("/home/run.sqlite"));
        EXPECT_EQ(simulation.error(), "");
        path = made->path;
        std::ifstream in(path);
        std::string text;
        std::getline(in, text);
        EXPECT_EQ(text, "a job");
        EXPECT_EQ(fs::status(fs::path(path).parent_path()).permissions(), fs::perms::owner_all);
    }
    EXPECT_FALSE(fs::exists(fs::path(path).parent_path())) << "the folder is gone";
}

TEST_F(RowSimulationTest, SaysWhatTheToolSaid) {
    RowSimulation simulation(
        tool("echo 'note: x' >&2; echo 'shardscope-train: it does not fit' >&2; exit 1"));
    simulation.start("a job", "row 3");
    EXPECT_FALSE(finish(simulation));
    EXPECT_EQ(simulation.error(), "row 3 cannot be simulated: it does not fit");
    simulation.start("a job", "row 4");
    EXPECT_EQ(simulation.error(), "") << "of the latest only";
    finish(simulation);
}

TEST_F(RowSimulationTest, SaysWhereTheToolSaysNothingOrDies) {
    RowSimulation silent(tool("exit 3"));
    silent.start("a job", "row 3");
    EXPECT_FALSE(finish(silent));
    EXPECT_THAT(silent.error(), HasSubstr("ended with status 3"));
    RowSimulation killed(tool("kill -SEGV $$"));
    killed.start("a job", "row 3");
    EXPECT_FALSE(finish(killed));
    EXPECT_THAT(killed.error(), HasSubstr("ended by signal 11"));
}

TEST_F(RowSimulationTest, IsCancelled) {
    RowSimulation simulation(tool("touch \"$4\"; sleep 600"));
    simulation.start("a job", "row 3");
    simulation.start("another job", "row 4");  // only one at a time
    EXPECT_EQ(simulation.name(), "row 3");
    simulation.cancel();
    EXPECT_FALSE(finish(simulation));
    EXPECT_EQ(simulation.error(), "The simulation of row 3 was cancelled.");
}

TEST_F(RowSimulationTest, AToolThatDoesNotListenIsKilled) {
    RowSimulation simulation(tool("trap '' TERM; while :; do sleep 0.1; done"));
    simulation.start("a job", "row 3");
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    simulation.cancel();
    simulation.cancel();  // as an impatient user does
    EXPECT_FALSE(finish(simulation));
    EXPECT_THAT(simulation.error(), HasSubstr("cancelled"));
}

TEST_F(RowSimulationTest, EndsItsProgramsWhenTheViewerEnds) {
    const fs::path mark = folder_ / "mark";
    {
        RowSimulation simulation(tool("sleep 1; touch " + mark.string()));
        simulation.start("a job", "row 3");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1300));
    EXPECT_FALSE(fs::exists(mark));
}

TEST_F(RowSimulationTest, SaysWhatIsMissing) {
    RowSimulation nowhere((folder_ / "no/such/tool").string());
    nowhere.start("a job", "row 3");
    EXPECT_FALSE(nowhere.busy());
    EXPECT_THAT(nowhere.error(), AllOf(HasSubstr("no/such/tool"), HasSubstr("cannot be started")));
    nowhere.start("", "row 3");
    EXPECT_THAT(nowhere.error(), HasSubstr("no job"));
}

TEST_F(RowSimulationTest, ManyLinesDoNotStopTheTool) {
    RowSimulation simulation(
        tool("i=0; while [ $i -lt 20000 ]; do echo line $i >&2; i=$((i+1)); done; exit 1"));
    simulation.start("a job", "row 3");
    EXPECT_FALSE(finish(simulation));
    EXPECT_THAT(simulation.error(), HasSubstr("line 19999"));
}

}  // namespace TEST_FILE
}  // namespace shardscope::viewer::model
