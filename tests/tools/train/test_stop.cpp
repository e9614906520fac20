// Ctrl-C and SIGTERM: the first signal ends a run cleanly, the second immediately.
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/train/train_tool.h"

namespace shardscope::tools {
namespace TEST_FILE {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class Stop : public ::testing::Test {
  protected:
    // Starts a run, waits until a step has ended, runs `then` ($p is the process) and waits for the end.
    Outcome interrupted(const std::string& settings, const std::string& then) const {
        const std::string err = folder_ / "err";
        fs::remove(err);
        Outcome outcome = run_command({"sh", "-c",
                                       "'" + train_binary() + "' '" + sample("mlp.toml") + "' --trace '" +
                                           trace() + "' --format json " + settings + " 2>'" + err +
                                           "' & p=$!; until grep -q 'step 1/' '" + err +
                                           "'; do sleep 0.05; done; " + then + "; wait $p"});
        outcome.err = read_file(err);
        return outcome;
    }
    std::string trace() const { return folder_ / "run.sqlite"; }

    TemporaryFolder folder_;
};

constexpr const char* kLong = "--model.width=64 --run.steps=100000000";

TEST_F(Stop, EndsAfterTheStepWithAWholeTrace) {
    for (const auto& [signal, number] : {std::pair{"INT", 2}, std::pair{"TERM", 15}}) {
        SCOPED_TRACE(signal);
        const Outcome outcome =
            interrupted(std::string(kLong) + " --overwrite", std::string("kill -") + signal + " $p");
        EXPECT_EQ(outcome.status, 128 + number);
        const Json result = Json::parse(outcome.out, nullptr, false);
        ASSERT_FALSE(result.is_discarded()) << outcome.out.substr(0, 200);
        const auto steps = result.at("stopped_at").get<std::int64_t>();
        EXPECT_EQ(result.at("losses").size(), static_cast<std::size_t>(steps));
        EXPECT_THAT(outcome.err, AllOf(HasSubstr("stopped by SIG" + std::string(signal) + " after step " +
                                                 std::to_string(steps) + " of 100000000"),
                                       HasSubstr("the trace is complete")));
        EXPECT_EQ(trace_tool({"check", trace()}).status, 0);
        EXPECT_EQ(trace_json({"info", trace()}).at("steps"), steps);
    }
}

TEST_F(Stop, SavesIfConfiguredSoThatTheRunCanContinue) {
    const std::string save = folder_ / "save";
    const Outcome outcome =
        interrupted(std::string(kLong) + " --checkpoint.save='" + save + "'", "kill -INT $p");
    EXPECT_EQ(outcome.status, 128 + 2);
    const Json stopped = Json::parse(outcome.out, nullptr, false);
    const auto steps = stopped.at("stopped_at").get<std::int64_t>();
    EXPECT_EQ(stopped.at("checkpoint"), save + "/step-" + std::to_string(steps));
    EXPECT_TRUE(fs::exists(save + "/latest"));

    const Json further = train_json({sample("mlp.toml"), "--model.width=64", "--checkpoint.load=" + save,
                                     "--run.steps=" + std::to_string(steps + 2)});
    EXPECT_EQ(further.at("losses").size(), 2u);
    EXPECT_EQ(further.at("steps_done"), steps + 2);
    // As if the run had never been stopped: one with as many steps has the same last loss, bit for bit.
    const Json whole =
        train_json({sample("mlp.toml"), "--model.width=64", "--run.steps=" + std::to_string(steps + 2)});
    EXPECT_EQ(further["losses"].back(), whole.at("losses").back());
}

// Steps of seconds: with shorter ones, the first signal would end the run before the second is sent.
TEST_F(Stop, TheSecondSignalEndsItImmediately) {
    // Steps of a second or more: 4 layers of 2048 with 2048 rows are 4 * 6 * 2048^3 = 2e11 operations.
    const Outcome outcome = interrupted(
        "--model.width=2048 --model.layers=4 --data.batch=2048 --run.ranks=1 --run.steps=1000 --overwrite",
        "kill -INT $p; sleep 0.1; kill -TERM $p");
    EXPECT_EQ(outcome.status, 128 + 15);
    EXPECT_THAT(outcome.err, Not(HasSubstr("stopped by")));
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(trace_tool({"info", trace()}).status, 0) << "what was committed can be read";
}

// Three seconds' worth of rows: fewer would be sorted before the second signal is sent.
TEST_F(Stop, TheSecondSignalSaysWhatRemainsOfTheTrace) {
    const Outcome outcome = interrupted("--model.width=8 --run.steps=100000000 --overwrite",
                                        "sleep 3; kill -INT $p; for i in $(seq 4000); do [ -e '" + trace() +
                                            ".finalizing' ] && break; sleep 0.005; done; kill -INT $p");
    EXPECT_EQ(outcome.status, 128 + 2);
    EXPECT_THAT(outcome.err,
                HasSubstr("ended before the trace was sorted and indexed; it is kept: shardscope-trace "
                          "check --finalize " +
                          trace()));
    EXPECT_TRUE(fs::exists(trace() + ".finalizing"));
    EXPECT_EQ(trace_tool({"info", trace()}).status, 0);
    EXPECT_EQ(
        train({sample("mlp.toml"), "--model.width=8", "--run.steps=2", "--overwrite", "--trace", trace()})
            .status,
        0);
    EXPECT_FALSE(fs::exists(trace() + ".finalizing")) << "the next run on that path";
}

TEST_F(Stop, TheSecondSignalSaysWhereThePartsAre) {
    const std::string part = folder_ / "run.rank-00000.sqlite";
    const Outcome outcome =
        interrupted("--model.width=8 --run.steps=100000000 --run.processes=2",
                    "sleep 2; kill -INT $p; for i in $(seq 4000); do ls '" + folder_.path() +
                        "' | grep -q finalizing && break; sleep 0.005; done; kill -INT $p");
    EXPECT_EQ(outcome.status, 128 + 2);
    EXPECT_THAT(outcome.err, HasSubstr("they are kept: shardscope-trace merge " +
                                       (folder_ / "run.rank-*.sqlite") + " -o " + trace()));
    EXPECT_TRUE(fs::exists(part));
}

TEST_F(Stop, NothingLeftToTrainIsReported) {
    const std::string save = folder_ / "save";
    train_json({sample("mlp.toml"), "--model.width=16", "--run.steps=3", "--checkpoint.save=" + save});
    const Outcome outcome =
        train({sample("mlp.toml"), "--model.width=16", "--run.steps=3", "--checkpoint.load=" + save});
    EXPECT_EQ(outcome.status, 2);
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("command line: run.steps"), HasSubstr("after step 3")));
}

}  // namespace TEST_FILE
}  // namespace shardscope::tools
