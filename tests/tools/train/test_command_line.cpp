// What shardscope-train says of itself, and what it prints of a run.
#include <map>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/train/train_tool.h"
#include "traces/schema/schema.h"

namespace shardscope::tools {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(CommandLine, VersionIsTheProjectsAndTheSchemas) {
    const Outcome outcome = train({"--version"});
    EXPECT_EQ(outcome.status, 0);
    EXPECT_EQ(outcome.out, "shardscope-train " SHARDSCOPE_VERSION " (trace schema " +
                               std::to_string(traces::kSchemaVersion) + ")\n");
    EXPECT_EQ(outcome.err, "");
}

TEST(CommandLine, HelpListsEveryKeyInItsSection) {
    const std::map<std::string, std::vector<std::string>> sections = {
        {"run", {"steps", "seed", "ranks", "workers", "blas_threads", "trace", "overwrite"}},
        {"model", {"type", "width", "layers", "bias", "heads", "context"}},
        {"data", {"type", "path", "batch"}},
        {"parallel", {"mode"}},
        {"fsdp", {"sharding_strategy", "wrap", "layout", "backward_prefetch", "limit_all_gathers"}},
        {"ddp", {"bucket_cap_mb", "first_bucket_mb"}},
        {"optimizer", {"type", "lr", "momentum", "betas", "eps", "weight_decay"}}};
    const Outcome help = train({"--help"});
    EXPECT_EQ(help.status, 0);
    EXPECT_EQ(help.err, "");
    EXPECT_THAT(help.out,
                AllOf(HasSubstr("Usage: shardscope-train"), HasSubstr("--trace"), HasSubstr("--overwrite"),
                      HasSubstr("--format"), HasSubstr("--dry-run"), HasSubstr("--section.key=value")));
    for (const auto& [section, keys] : sections) {
        const std::size_t start = help.out.find("\n  [" + section + "]");
        ASSERT_NE(start, std::string::npos) << section;
        const std::string text = help.out.substr(start, help.out.find("\n  [", start + 1) - start);
        for (const std::string& key : keys) EXPECT_THAT(text, HasSubstr("\n  " + key + " = ")) << section;
    }
    // And every key that a trace stores of its job.
    const TracedRun run(Way::none);
    for (const std::string& stored : texts(run.trace(), "SELECT key FROM SHARD_RUN")) {
        const std::size_t dot = stored.find('.');
        if (dot == std::string::npos || stored.substr(0, dot) == "blas") continue;  // facts of the machine
        const auto section = sections.find(stored.substr(0, dot));
        ASSERT_NE(section, sections.end()) << stored;
        EXPECT_THAT(section->second, ::testing::Contains(stored.substr(dot + 1)));
    }
}

TEST(CommandLine, JsonStandsAloneOnStandardOutput) {
    const TemporaryFolder folder;
    Words arguments = arguments_for(Way::root, folder);
    arguments.insert(arguments.end(), {"--format", "json"});
    const Outcome outcome = train(arguments);
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    const Json result = Json::parse(outcome.out, nullptr, false);
    ASSERT_FALSE(result.is_discarded()) << outcome.out;
    EXPECT_EQ(result.at("losses").size(), static_cast<std::size_t>(kSteps));
    EXPECT_GT(result.at("average_step_us").get<double>(), 0);
    EXPECT_EQ(result.at("trace"), "");
    ASSERT_EQ(result.at("ranks").size(), 4u);
    for (std::size_t rank = 0; rank < 4; ++rank) EXPECT_EQ(result["ranks"][rank].at("rank"), rank);
    // Progress is for the person, on standard error.
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("step 3/3"), HasSubstr("loss"), HasSubstr("samples/s")));
}

TEST(CommandLine, ALossThatIsNoNumberIsNullInJson) {
    // Steps of length 1000 throw the weights out of range.
    const Json result =
        train_json({sample("mlp.toml"), "--model.width=16", "--run.steps=30", "--optimizer.lr=1000"});
    EXPECT_TRUE(result.at("losses").at(0).is_number());
    EXPECT_TRUE(result.at("losses").at(29).is_null());
}

TEST(CommandLine, TellsWhenStandardOutputIsFull) {
    const std::string job = train_binary() + " '" + sample("mlp.toml") + "' --model.width=16 --run.steps=1";
    for (const char* how : {"", " --format json", " --dry-run", " --dry-run --format json"}) {
        const Outcome outcome = run_command({"sh", "-c", job + how + " > /dev/full"});
        EXPECT_EQ(outcome.status, 1) << how;
        EXPECT_THAT(outcome.err, HasSubstr("standard output cannot be written")) << how;
    }
}

TEST(CommandLine, ARunEndsWithItsSummaryItsPeakAndItsTrace) {
    const TemporaryFolder folder;
    Words arguments = arguments_for(Way::gpt, folder);
    arguments.insert(arguments.end(), {"--trace", folder / "run.sqlite"});
    const Outcome outcome = train(arguments);
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(outcome.out,
                AllOf(HasSubstr("Communication"), HasSubstr("DataLoader"), HasSubstr("unsharded_gradients"),
                      HasSubstr("Trace: " + (folder / "run.sqlite"))));
    EXPECT_THAT(outcome.err, HasSubstr("tokens/s"));
}

TEST(CommandLine, ADryRunPrintsThePlanAndItsPeak) {
    const TemporaryFolder folder;
    Words arguments = arguments_for(Way::per_layer, folder);
    arguments.emplace_back("--dry-run");
    const Outcome outcome = train(arguments);
    EXPECT_EQ(outcome.status, 0);
    EXPECT_EQ(outcome.err, "");
    EXPECT_THAT(outcome.out,
                AllOf(HasSubstr("all_gather"), HasSubstr("reduce_scatter"), HasSubstr("net.14"),
                      HasSubstr("Predicted peak per rank: "), HasSubstr("unsharded_parameters")));
    arguments.emplace_back("--fsdp.wrap=root");
    EXPECT_NE(train(arguments).out, outcome.out) << "the last word counts";
}

}  // namespace
}  // namespace shardscope::tools
