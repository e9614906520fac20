// The module tree of a job is the same whether the trainer records it or shardscope-record from outside,
// which has only the job's NVTX ranges.
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/train/train_tool.h"

namespace shardscope::tools {
namespace TEST_FILE {

// The paths of the rows: "GPT_0/Block_0".
void add_paths(const Json& modules, const std::string& above, std::set<std::string>& paths) {
    for (const Json& module : modules) {
        const std::string path = above + module.at("name").get<std::string>();
        paths.insert(path);
        add_paths(module.at("children"), path + "/", paths);
    }
}

std::set<std::string> module_paths(const std::string& trace) {
    std::set<std::string> paths;
    const Json report = trace_json({"modules", trace});
    add_paths(report.at("ranks").at(0).at("modules"), "", paths);
    return paths;
}

TEST(RecordedModules, AreThoseOfTheTrainersOwnTrace) {
#ifndef SHARDSCOPE_HAS_NVTX
    GTEST_SKIP() << "built without NVTX's headers";
#endif
    const TemporaryFolder folder;
    const Words job = {sample("mlp.toml"), "--run.ranks=1", "--run.steps=2"};
    const std::string own = folder / "own.sqlite", recorded = folder / "recorded.sqlite";
    Words traced = job;
    traced.insert(traced.end(), {"--trace", own});
    ASSERT_EQ(train(traced).status, 0);
    Words command = {SHARDSCOPE_RECORD, "-o", recorded, "--", train_binary()};
    command.insert(command.end(), job.begin(), job.end());
    const Outcome outcome = run_command(command);
    ASSERT_EQ(outcome.status, 0) << outcome.err;

    const std::set<std::string> expected = module_paths(own);
    EXPECT_GT(expected.size(), 3u);
    EXPECT_EQ(module_paths(recorded), expected) << "FSDP's own ranges are no modules";
}

}  // namespace TEST_FILE
}  // namespace shardscope::tools
