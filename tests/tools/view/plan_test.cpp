// A plan in the viewer, with the real programs: shardscope-train writes it; shardscope-view shows the printed
// numbers, opens a row's simulated trace and saves its job file.
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/tools/run_command.h"
#include "tests/tools/view/picture.h"

namespace shardscope::tools {
namespace TEST_FILE {

using nlohmann::json;
using testing::HasSubstr;

class PlanInViewer : public testing::Test {
  protected:
    PlanInViewer() : plan_(folder_ / "plan.sqlite") {
        const Outcome outcome = run_command({SHARDSCOPE_TRAIN, "plan", SHARDSCOPE_SAMPLES "/mlp.toml",
                                             "--run.steps=2", "--data.batch=64,128",
                                             "--run.memory_limit=20000000", "-o", plan_, "--format", "json"});
        EXPECT_EQ(outcome.status, 0) << outcome.err;
        printed_ = json::parse(outcome.out, nullptr, false);
    }
    const json& row(int number) const {
        for (const json& own : printed_.at("rows"))
            if (own.at("row") == number) return own;
        ADD_FAILURE() << "no row " << number;
        return printed_.at("rows").at(0);
    }
    Outcome view(const std::string& commands) const {
        const std::string script = folder_ / "look.script";
        std::ofstream(script) << "set size 1900x1000\n" << commands;
        return run_command({"env", "TMPDIR=" + folder_.path(), SHARDSCOPE_VIEW, "--script", script});
    }
    // Whether all files of the simulation are removed.
    bool is_tidy() const {
        for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
            if (entry.path().filename().string().starts_with("shardscope-view")) return false;
        return true;
    }

    TemporaryFolder folder_;
    std::string plan_;
    json printed_;
};

TEST_F(PlanInViewer, ShowsWhatThePlannerPrinted) {
    const int best = printed_.at("best");
    const json& own = row(best);
    std::string commands = fmt::format("open {}\nwait\nexpect rail.plan \"shown\"\n", plan_);
    commands +=
        fmt::format("expect plan.title \"Row {}, on the Pareto front\"\n", printed_.at("fastest").get<int>());
    commands += fmt::format("expect plan.counts contains \"{} configurations of mlp.toml\"\n",
                            printed_.at("rows").size());
    // The tolerance is half of the last printed digit.
    const auto about = [&](const char* column, double value, const char* within) {
        commands += fmt::format("expect plan.rows.{}.{} ~ {} {}\n", best, column, value, within);
    };
    about("peak_mb", own.at("peak_bytes").get<double>() / (1 << 20), "0.0501");
    about("reserved_mb", own.at("reserved_bytes").get<double>() / (1 << 20), "0.0501");
    about("step_ms", own.at("average_step_us").get<double>() / 1e3, "0.00501");
    commands += "click plan.show.pareto_front\nwait\n";
    commands += fmt::format("expect plan.rows.rows {}\n", printed_.at("front").size());
    for (const json& number : printed_.at("front"))
        commands += fmt::format("expect plan.point.{} \"on the Pareto front\"\n", number.get<int>());
    commands += fmt::format("shot {}\n", folder_ / "plan.png");
    const Outcome outcome = view(commands);
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_GT(read_png(folder_ / "plan.png").colors(), 20U);
}

// Compares the formula with the simulation for the row for which the command line prints it: here the only
// one.
TEST_F(PlanInViewer, ShowsTheFormulaNextToTheSimulation) {
    const std::string plan = folder_ / "one.sqlite";
    const Outcome made = run_command(
        {SHARDSCOPE_TRAIN, "plan", SHARDSCOPE_SAMPLES "/mlp.toml", "--parallel.mode=fsdp",
         "--fsdp.wrap=module:Linear", "--fsdp.sharding_strategy=FULL_SHARD", "--fsdp.cpu_offload=false",
         "--memory.activation_checkpointing=none", "--fsdp.backward_prefetch=BACKWARD_PRE",
         "--fsdp.limit_all_gathers=true", "--fsdp.layout=fsdp1", "--precision.param=fp32",
         "--train.accumulation=1", "-o", plan, "--format", "json"});
    ASSERT_EQ(made.status, 0) << made.err;
    const json printed = json::parse(made.out, nullptr, false);
    ASSERT_EQ(printed.at("rows").size(), 1U);
    ASSERT_EQ(printed.at("anatomy").at("row"), printed.at("best"));
    const json& model = printed.at("anatomy").at("parts").at("model");
    const Outcome outcome =
        view(fmt::format("open {}\nwait\nexpect plan.anatomy.model.formula ~ {} 0.0501\nexpect "
                         "plan.anatomy.model.simulated ~ {} 0.0501\n",
                         plan, model.at("formula").get<double>() / (1 << 20),
                         model.at("simulated").get<double>() / (1 << 20)));
    EXPECT_EQ(outcome.status, 0) << outcome.err;
}

TEST_F(PlanInViewer, APointOpensItsSimulatedTrace) {
    const int fastest = printed_.at("fastest");
    const Outcome outcome = view(fmt::format(
        "open {0}\nwait\nclick plan.point.{1} double\nwait\n"
        "expect rail.timeline \"shown\"\n"
        "panel runs\nwait\n"
        "expect \"runs.files.row {1} of plan.sqlite.state\" finished\n"
        "expect \"runs.files.row {1} of plan.sqlite.peak_mb\" ~ {2} 0.1%\n"
        // Opening the same row again shows the same trace, and the plan is still open.
        "panel plan\nwait\nexpect plan.title contains \"Row {1}\"\nclick plan.open\nwait\npanel runs\nwait\n"
        "expect runs.files.rows 2\n",
        plan_, fastest, row(fastest).at("peak_bytes").get<double>() / (1 << 20)));
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_TRUE(is_tidy());
}

TEST_F(PlanInViewer, AFailedSimulationIsReported) {
    // The first row of the table that does not fit: its simulation runs out of memory, as the planner
    // predicted.
    int large = 0;
    for (const json& own : printed_.at("rows"))
        if (own.at("outcome") == "too_large" && large == 0) large = own.at("row");
    ASSERT_GT(large, 0);
    const Outcome outcome = view(fmt::format(
        "open {}\nwait\nclick plan.repeated\nclick plan.rows.filter\ntype too large\nwait\nkey Tab\n"
        "click plan.rows.row.0 at 40 8\nwait\nexpect plan.title contains \"does not fit\"\n"
        "click plan.open\nwait\nexpect plan.error contains \"cannot be simulated\"\nexpect rail.plan "
        "\"shown\"\n",
        plan_));
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_TRUE(is_tidy());
}

TEST_F(PlanInViewer, OtherPanelsSayThatThereIsNoTimeline) {
    std::string commands = fmt::format("open {}\nwait\n", plan_);
    for (const char* panel : {"timeline", "modules", "memory", "summary", "distributed", "advice"})
        commands += fmt::format(
            "panel {}\nwait\nexpect app.only_plan contains \"holds a plan and no timeline\"\n", panel);
    commands += "click app.open_plan\nframes 2\nexpect rail.plan \"shown\"\n";
    commands +=
        "panel runs\nwait\nexpect runs.files.rows 1\nexpect runs.go.timeline absent\nexpect runs.go.plan "
        "shown\n";
    commands += "panel query\nwait\npanel compare\nwait\n";
    const Outcome outcome = view(commands);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    // A panel that the script names stays open.
    EXPECT_EQ(
        run_command({SHARDSCOPE_VIEW, plan_, "--panel", "runs", "--screenshot", folder_ / "runs.png"}).status,
        0);
    EXPECT_EQ(run_command({SHARDSCOPE_VIEW, plan_, "--screenshot", folder_ / "plan.png"}).status, 0);
}

TEST_F(PlanInViewer, ARowsJobFileGivesItsFigures) {
    const int fastest = printed_.at("fastest");
    const std::string job = folder_ / "row.toml";
    const Outcome outcome =
        view(fmt::format("open {}\nwait\nclick plan.save_job\nexpect save.path contains row-{}.toml\nclick "
                         "save.path\nkey Ctrl+A\ntype {}\n"
                         "click save.go\nwait\nexpect app.progress contains \"is written\"\n",
                         plan_, fastest, job));
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    const Outcome run = run_command({SHARDSCOPE_TRAIN, job, "--format", "json"});
    ASSERT_EQ(run.status, 0) << run.err;
    EXPECT_EQ(json::parse(run.out).at("average_step_us"), row(fastest).at("average_step_us"));
}

}  // namespace TEST_FILE
}  // namespace shardscope::tools
