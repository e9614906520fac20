// A job that runs out of memory prints once what would fit, and that does fit; errors that all processes have
// in common are printed once.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/train/process_run.h"
#include "tests/tools/train/train_tool.h"

namespace shardscope::tools {
namespace TEST_FILE {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::vector<std::string> lines_with(const std::string& text, const std::string& part) {
    std::vector<std::string> found;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);)
        if (line.find(part) != std::string::npos) found.push_back(line);
    return found;
}

// The switches of "  fits: --a=b --c=d  (peak ...".
Words switches_of(const std::string& line) {
    Words words;
    std::istringstream text(line.substr(0, line.find(" (peak")));
    for (std::string word; text >> word;)
        if (word.starts_with("--")) words.push_back(word);
    return words;
}

// As one unit, the parameters and twice their gradients are 3 * 133120 bytes; in smaller units far less.
Words too_large(const Words& more = {}) {
    Words words = {sample("mlp.toml"), "--model.width=64", "--run.steps=3", "--fsdp.wrap=root",
                   "--run.memory_limit=400000"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
}

void expect_what_fits(const Words& more) {
    const Outcome failed = train(too_large(more));
    EXPECT_EQ(failed.status, 1);
    const auto errors = lines_with(failed.err, "out of memory"), fits = lines_with(failed.err, "  fits: ");
    ASSERT_EQ(errors.size(), 1u) << failed.err;
    EXPECT_THAT(errors.front(), AllOf(StartsWith("shardscope-train: "), HasSubstr("run.memory_limit")));
    ASSERT_GE(fits.size(), 1u) << failed.err;
    EXPECT_LE(fits.size(), 3u);
    EXPECT_LT(failed.err.find(errors.front()), failed.err.find(fits.front())) << "the error comes first";
    for (const std::string& line : fits) {
        EXPECT_THAT(line,
                    ContainsRegex("fits: --[a-z_.]+=[^ ]+.*\\(peak 0\\.[0-9]+ MiB of 0\\.381 MiB, step "));
        Words words = more;
        for (const std::string& word : switches_of(line)) words.push_back(word);
        const Outcome run = train(too_large(words));
        EXPECT_EQ(run.status, 0) << line << "\n" << run.err;
    }
}

TEST(WhatFits, IsReportedIfARunIsOutOfMemory) {
    expect_what_fits({});
}

TEST(WhatFits, IsReportedIfASimulationIsOutOfMemory) {
    expect_what_fits({"--run.device=sim"});
}

TEST(WhatFits, IsReportedByTheProcessThatFailedFirst) {
    const auto start = std::chrono::steady_clock::now();
    const Outcome failed = train(too_large({"--run.processes=2"}));
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    EXPECT_EQ(failed.status, 1);
    EXPECT_LT(seconds, 60);
    const auto fits = lines_with(failed.err, "  fits: ");
    ASSERT_GE(fits.size(), 1u) << failed.err;
    EXPECT_LE(fits.size(), 3u);
    for (std::size_t i = 1; i < fits.size(); ++i) EXPECT_NE(fits[i], fits[0]) << "printed once";
    EXPECT_EQ(train(too_large({"--run.processes=2", switches_of(fits.front()).front()})).status, 0);
}

// With offload, FullyShardedDataParallel keeps all gradients on the device; fully_shard does not.
TEST(WhatFits, TheLayoutOfFullyShardIsNamedForThirteenBillionParametersOnOneGpu) {
    const Outcome failed =
        train({sample("gpt_7b.toml"), "--run.ranks=1", "--sim.cluster=v100_pcie", "--model.layers=40",
               "--model.width=5120", "--model.heads=40", "--data.batch=1", "--fsdp.cpu_offload=true",
               "--memory.activation_checkpointing=module:Block"});
    EXPECT_EQ(failed.status, 1);
    EXPECT_THAT(failed.err, HasSubstr("fits: --fsdp.layout=fsdp2 "));
}

// Nothing makes a perceptron of 133,120 bytes fit into 3,000.
TEST(WhatFits, ReportsTheSmallestPeakIfNothingFits) {
    const Outcome failed = train(too_large({"--run.device=sim", "--run.memory_limit=3000"}));
    EXPECT_EQ(failed.status, 1);
    EXPECT_THAT(failed.err,
                AllOf(HasSubstr("out of memory"), HasSubstr("nothing that the planner tries"),
                      ContainsRegex(
                          "the smallest peak is 0\\.[0-9]+ MiB \\(0\\.[0-9]+ MiB of it [a-z_]+\\), with --"),
                      Not(HasSubstr("fits: "))));
}

TEST(WhatFits, IsReportedWithADryRun) {
    for (const char* device : {"--run.device=cpu", "--run.device=sim"}) {
        const Outcome plan = train(too_large({device, "--dry-run"}));
        EXPECT_EQ(plan.status, 0);
        EXPECT_THAT(plan.err, AllOf(HasSubstr("note: the predicted peak of "), HasSubstr("400,000 bytes"),
                                    HasSubstr("  fits: --")))
            << device;
        EXPECT_THAT(train(too_large({device, "--dry-run", "--run.memory_limit=4000000"})).err,
                    Not(HasSubstr("fits: ")));
    }
}

// --- errors of all processes -----------------------------------------------------------------------------

// "no GPU", or a missing module for it, is the same error on all ranks.
TEST(EqualErrors, ArePrintedOnce) {
    const Words job = {sample("mlp.toml"), "--model.width=64", "--run.device=cuda"};
    const Outcome one = train(job);
    if (one.status == 0) GTEST_SKIP() << "there is a GPU";
    ASSERT_EQ(one.status, 1);
    const std::string sentence = one.err.substr(0, one.err.find('\n'));
    Words together = job;
    together.push_back("--run.processes=3");
    const Outcome three = train(together);
    EXPECT_EQ(three.status, 1);
    EXPECT_EQ(three.err, sentence + " (on all 3 ranks)\n");

    Words command = {train_binary()};
    command.insert(command.end(), job.begin(), job.end());
    ProcessRun torchrun(3, command);
    torchrun.start_all();
    for (const auto& [rank, end] : torchrun.ends(40)) {
        EXPECT_EQ(end.status, 1) << rank;
        EXPECT_EQ(end.err, rank == 0 ? sentence + " (on all 3 ranks)\n" : "") << rank;
    }
}

TEST(EqualErrors, AJobsErrorIsPrintedOnce) {
    const Outcome failed =
        train({sample("gpt.toml"), "--data.path=/not/there", "--run.processes=3", "--run.ranks=3"});
    EXPECT_EQ(failed.status, 2);
    EXPECT_EQ(lines_with(failed.err, "/not/there").size(), 1u) << failed.err;
    EXPECT_THAT(failed.err, HasSubstr("(on all 3 ranks)"));
}

TEST(EqualErrors, UnderMpirunArePrintedOnce) {
#ifndef SHARDSCOPE_HAS_MPI
    GTEST_SKIP() << "built without MPI";
#endif
    if (std::system("command -v mpirun > /dev/null 2>&1") != 0) GTEST_SKIP() << "no mpirun is installed";
    const Outcome failed = run_command(
        {"sh", "-c",
         "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 exec timeout 100 mpirun --oversubscribe "
         "--bind-to none -np 3 '" +
             train_binary() + "' '" + sample("gpt.toml") + "' --data.path=/not/there"});
    EXPECT_NE(failed.status, 0);
    EXPECT_EQ(lines_with(failed.err, "/not/there").size(), 1u) << failed.err;
    EXPECT_THAT(failed.err, HasSubstr("(on all 3 ranks)"));
}

}  // namespace TEST_FILE
}  // namespace shardscope::tools
