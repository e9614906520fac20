// samples/talk: the talk's published peaks, predicted at full size, and the script that prints all its
// tables.
#include <filesystem>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/train/train_tool.h"

namespace shardscope::tools {
namespace TEST_FILE {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

// 20480 wide, 10240 rows, and two workspaces of 8.125 MB.
constexpr std::int64_t kW = 4 * (std::int64_t{20480} * 20480 + 20480);
constexpr std::int64_t kA = 4 * std::int64_t{10240} * 20480;
constexpr std::int64_t kWorkspace = 8'519'680;

Json predictions(const Words& more) {
    Words words = {"sweep",
                   sample("talk/talk.toml"),
                   "--model.width=20480",
                   "--data.batch=10240",
                   fmt::format("--memory.gemm_workspace_bytes={}", kWorkspace),
                   "--dry-run"};
    words.insert(words.end(), more.begin(), more.end());
    return train_json(words).at("runs");
}

std::string megabytes(const Json& run) {
    return fmt::format("{:.1f}", run.at("predicted_peak_bytes").get<double>() / (1 << 20));
}

TEST(TalkTables, HaveThePublishedPeaksAtTheTalksSize) {
    const Json sharded = predictions({"--fsdp.wrap=root,module:Linear", "--fsdp.cpu_offload=false,true"});
    ASSERT_EQ(sharded.size(), 4u);
    const Json &root = sharded[0], &linear = sharded[2], &offload = sharded[3];
    EXPECT_EQ(root.at("predicted_peak_bytes"), 25 * kW + 4 * kA + 2 * kWorkspace);
    EXPECT_EQ(linear.at("predicted_peak_bytes"), 5 * kW + 12 * kA + 2 * kWorkspace);
    EXPECT_EQ(offload.at("predicted_peak_bytes"), 4 * kW + 12 * kA + 2 * kWorkspace);
    EXPECT_EQ(megabytes(root), "43218.2");
    EXPECT_EQ(megabytes(linear), "17616.6");
    EXPECT_EQ(megabytes(offload), "16016.6");
    const Json whole = predictions({"--fsdp.sharding_strategy=NO_SHARD"});
    EXPECT_EQ(whole.at(0).at("predicted_peak_bytes"), 24 * kW + 4 * kA + 2 * kWorkspace);
}

TEST(TalkTables, TheDryRunPrintsThem) {
    const Outcome outcome = train({sample("talk/talk.toml"), "--model.width=20480", "--data.batch=10240",
                                   fmt::format("--memory.gemm_workspace_bytes={}", kWorkspace),
                                   "--fsdp.wrap=module:Linear", "--dry-run"});
    EXPECT_THAT(outcome.out, HasSubstr("Predicted peak per rank: 18,472,386,560 bytes, 17,616.6 MiB"));
}

// Runs the whole script, 64 wide with 32 rows: the talk's proportions, and as fast as a test must be.
TEST(TalkTables, TheScriptPrintsThemSideBySide) {
    const TemporaryFolder folder;
    const std::string bin = std::filesystem::path(train_binary()).parent_path().string();
    const Outcome outcome =
        run_command({"env", "SHARDSCOPE_BIN=" + bin, sample("talk/run.sh"), "-o", folder / "out",
                     "--model.width=64", "--data.batch=32", "--run.steps=2"});
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(
        outcome.out,
        AllOf(ContainsRegex("root wrap +43,218.2 +43,218.2 +45,317,570,560\n"),
              ContainsRegex("per Linear +17,616.6 +17,616.6 +18,472,386,560\n"),
              ContainsRegex("per Linear \\+ offload +16,016.6 +16,016.6 +16,794,583,040\n"),
              ContainsRegex("NO_SHARD +- +41,618.1 +43,639,767,040\n"),
              ContainsRegex("NO_SHARD +root +true .*impossible \\[1\\]\n"),
              ContainsRegex("    Sequential_0 +Sequential_0\n      Linear_0 +FullyShardedDataParallel_1\n"
                            "      ReLU_0 +Linear_0\n"),
              ContainsRegex("Communication( +[0-9]+ \\([0-9.]+\\)){4}\n")));
    // When folded, a table lacks this row, and its Kernel row includes it.
    const std::size_t folded = outcome.out.find("Communication is Kernel");
    ASSERT_NE(folded, std::string::npos);
    EXPECT_EQ(outcome.out.find("\nCommunication ", folded), std::string::npos);
    EXPECT_THAT(outcome.out.substr(folded), ContainsRegex("\nKernel( +[0-9]+ \\([0-9.]+\\)){4}\n"));
}

TEST(TalkTables, TheScriptRefusesUnknownOptions) {
    const Outcome outcome = run_command({sample("talk/run.sh"), "--fast"});
    EXPECT_EQ(outcome.status, 2);
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("\"--fast\" is not an option"), HasSubstr("-o FOLDER")));
}

}  // namespace TEST_FILE
}  // namespace shardscope::tools
