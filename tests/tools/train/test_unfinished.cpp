// Runs that do not reach their end: killed, or on a full disk.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <iterator>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/train/train_tool.h"
#include "traces/store/error.h"

namespace shardscope::tools {
namespace TEST_FILE {

using ::testing::HasSubstr;

std::int64_t steps_in(const std::string& trace) {
    try {
        return number(trace, "SELECT count(DISTINCT step) FROM SHARD_STEPS");
    } catch (const traces::store::StoreError&) {
        return 0;  // not written yet
    }
}

TEST(Unfinished, AKilledRunLeavesATraceOfItsSteps) {
    using Clock = std::chrono::steady_clock;
    const TemporaryFolder folder;
    const std::string trace = folder / "killed.sqlite";
    RunningCommand run(
        {train_binary(), sample("mlp.toml"), "--model.width=64", "--run.steps=10000000", "--trace", trace});
    // A commit comes at least once per second; sanitizers and a busy machine take longer.
    const Clock::time_point deadline = Clock::now() + std::chrono::seconds(60);
    while (steps_in(trace) < 3 && Clock::now() < deadline)
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
    ASSERT_EQ(run.end(SIGKILL), 128 + SIGKILL) << "it ended by itself";
    ASSERT_TRUE(run.was_signalled()) << "it ended by itself";

    const Json info = trace_json({"info", trace});
    EXPECT_EQ(info.at("ended"), false);
    EXPECT_EQ(info.at("ranks"), 4);
    EXPECT_GE(info.at("steps").get<int>(), 3);
    EXPECT_THAT(trace_tool({"info", trace}).out, HasSubstr("did not end"));
    const Outcome check = trace_tool({"check", trace});
    EXPECT_EQ(check.status, 1);
    EXPECT_THAT(check.out, HasSubstr("did not end"));
    for (const char* verb : {"summary", "modules", "memory", "collectives"})
        EXPECT_EQ(trace_json({verb, trace}).at("ranks").size(), 4u) << verb;
    // The committed part has the configuration and the losses up to that point.
    EXPECT_EQ(info.at("config").at("model.width"), "64");
    EXPECT_GE(number(trace, "SELECT count(*) FROM SHARD_LOSSES"), 1);
}

TEST(Unfinished, AFullDiskStopsTheTraceAndNotTheTraining) {
    const TemporaryFolder folder;
    const std::string trace = folder / "full.sqlite";
    // Files of at most 3000 * 512 bytes: room for the empty trace, not for 60 steps of 4 ranks.
    const Outcome outcome = run_command({"sh", "-c", "trap '' XFSZ; ulimit -f 3000; exec \"$@\"", "sh",
                                         train_binary(), sample("mlp.toml"), "--model.width=64",
                                         "--run.steps=60", "--format", "json", "--trace", trace});
    EXPECT_EQ(outcome.status, 1) << outcome.err;
    const Json result = Json::parse(outcome.out, nullptr, false);
    ASSERT_FALSE(result.is_discarded()) << outcome.out;
    EXPECT_EQ(result.at("losses").size(), 60u);
    const auto warning = outcome.err.find("warning: ");
    ASSERT_NE(warning, std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.err.find("warning: ", warning + 1), std::string::npos) << outcome.err;
    EXPECT_THAT(
        outcome.err.substr(warning),
        ::testing::AllOf(HasSubstr("incomplete"), HasSubstr("full.sqlite"), HasSubstr("no space left")));
    // The file opens, and says that it is not complete.
    EXPECT_EQ(trace_json({"info", trace}).at("ended"), false);
    EXPECT_EQ(trace_tool({"check", trace}).status, 1);
    // Training is not affected: the same losses as without a trace.
    EXPECT_EQ(losses_text(outcome.out),
              losses_text(
                  train({sample("mlp.toml"), "--model.width=64", "--run.steps=60", "--format", "json"}).out));
}

TEST(Unfinished, ADiskThatIsFullFromTheStartLeavesAnOlderTraceAlone) {
    const TracedRun good(Way::root);
    const std::string before = read_file(good.trace());
    const Outcome outcome = run_command({"sh", "-c", "trap '' XFSZ; ulimit -f 200; exec \"$@\"", "sh",
                                         train_binary(), sample("mlp.toml"), "--model.width=64",
                                         "--run.steps=2", "--overwrite", "--trace", good.trace()});
    EXPECT_EQ(outcome.status, 2);
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, HasSubstr("no space left"));
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_TRUE(read_file(good.trace()) == before);
    const std::filesystem::path folder = std::filesystem::path(good.trace()).parent_path();
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1) << "nothing beside it";
}

}  // namespace TEST_FILE
}  // namespace shardscope::tools
