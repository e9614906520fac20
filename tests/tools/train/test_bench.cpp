// shardscope-train bench: the arithmetic of its rates, and what it prints for threads, processes and what is
// not there.
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/train/train_tool.h"
#include "tests/traces/temporary_folder.h"
#include "trainer/cli/bench_report.h"

namespace shardscope::tools {
namespace TEST_FILE {

namespace fs = std::filesystem;

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace trainer::cli;

// Two steps of warm-up, done after 1 s each, then two iterations of two steps: of 0.5 s and of 0.25 s; the
// last step, whose loss is known at once, is not timed.
TEST(Bench, TimesWholeIterationsAfterTheWarmUp) {
    const BenchLength length{2, 2, 2};
    EXPECT_EQ(length.all(), 7);
    const BenchRates rates = rates_of({1, 2, 2.5, 3, 3.25, 3.5, 3.5}, length, 8);
    EXPECT_THAT(rates.of_iterations, ElementsAre(DoubleEq(16), DoubleEq(32)));
    EXPECT_DOUBLE_EQ(rates.mean(), 24);
    EXPECT_DOUBLE_EQ(rates.plus_minus(), 1.96 * 8);  // 16 and 32 are 8 from their mean
}

BenchRun run_of(const std::string& engine, int ranks, std::vector<double> rates) {
    BenchRun run;
    run.engine = engine;
    run.ranks = ranks;
    run.description = "a model";
    run.rates.of_iterations = std::move(rates);
    return run;
}

// The figures of the HiDL tutorial's lab: 336.0 images a second on one GPU, 650.3 on two, which is 96.8 %.
TEST(Bench, ComparesWithOneRank) {
    BenchResult result;
    result.items = "images";
    result.batch = 64;
    result.runs = {run_of("nccl", 1, {336}), run_of("nccl", 2, {325.05, 325.25}), run_of("gloo", 2, {100})};
    BenchRun missing;
    missing.engine = "mpi";
    missing.ranks = 2;
    missing.error = "there is no MPI";
    result.runs.push_back(missing);
    compare_with_one_rank(result);
    EXPECT_DOUBLE_EQ(*result.runs[1].efficiency, 325.15 / 336);
    EXPECT_FALSE(result.runs[2].efficiency) << "one rank was measured on a GPU, this on the processor";
    EXPECT_EQ(bench_text(result, result.runs[1]),
              "a model\nBatch size: 64 per rank and micro-batch\nNumber of ranks: 2 (nccl)\n"
              "Iter #0: 325.1 Img/sec per rank\nIter #1: 325.2 Img/sec per rank\n"
              "Img/sec per rank: 325.1 +-0.2\nTotal Img/sec on 2 rank(s): 650.3 +-0.4\n");
    EXPECT_THAT(bench_table(result), AllOf(ContainsRegex("nccl +2 +325.2? .*650.3 +96.8"),
                                           HasSubstr("not measured [1]\n[1] there is no MPI\n")));
    result.runs.push_back(run_of("local", 1, {80}));
    compare_with_one_rank(result);
    EXPECT_DOUBLE_EQ(*result.runs[2].efficiency, 1.25);
}

Words short_bench(const Words& more) {
    Words words = {
        "bench", sample("mlp.toml"), "--model.width=64", "--warm-up", "2", "--iterations", "3", "--steps",
        "2"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
}

TEST(Bench, OfThreadsAndProcessesOverEngines) {
    const Json json =
        train_json(short_bench({"--ranks", "1,2", "--engines", "local,tcp,nccl", "--data.batch=4"}));
    const Json& runs = json.at("runs");
    ASSERT_EQ(runs.size(), 5u) << "one rank on the processor is measured once";
    EXPECT_EQ(json.at("items"), "samples");
    EXPECT_EQ(json.at("batch"), 4);
    for (const std::size_t i : {0, 1, 2}) {
        const Json& run = runs[i];
        SCOPED_TRACE(run.dump());
        EXPECT_EQ(run.at("engine"), i == 2 ? "tcp" : "local");
        EXPECT_EQ(run.at("ranks"), i == 0 ? 1 : 2);
        EXPECT_EQ(run.at("error"), nullptr);
        ASSERT_EQ(run.at("per_rank_by_iteration").size(), 3u);
        double sum = 0;
        for (const double rate : run["per_rank_by_iteration"]) sum += rate;
        EXPECT_GT(sum, 0);
        EXPECT_DOUBLE_EQ(run.at("per_rank").get<double>(), sum / 3);
        EXPECT_DOUBLE_EQ(run.at("total").get<double>(), run.at("ranks").get<int>() * sum / 3);
        EXPECT_DOUBLE_EQ(run.at("efficiency").get<double>(),
                         run["per_rank"].get<double>() / runs[0].at("per_rank").get<double>());
    }
    if (fs::exists("/dev/nvidiactl")) return;  // then they are measured
    for (const std::size_t i : {3, 4}) EXPECT_NE(runs[i].at("error"), nullptr) << "there is no GPU";
}

// The job's own engine, processes, checkpoint and validation give way to what is measured.
TEST(Bench, SetsWhatTheJobSaysOtherwise) {
    const traces::TemporaryFolder folder;
    const Words trained = {sample("mlp.toml"), "--model.width=64", "--run.steps=2",
                           "--checkpoint.save=" + (folder / "saved")};
    ASSERT_EQ(train(trained).status, 0);
    std::ofstream(folder / "job.toml")
        << "[run]\nprocesses = 2\ncomm = 'tcp'\nsums = 'ring'\ntrace_parts = 'parts'\n[model]\ntype = 'mlp'\n"
           "layers = 8\nwidth = 64\n[parallel]\nmode = 'ddp'\n[checkpoint]\nload = '"
        << folder / "saved"
        << "'\n";
    Words words = short_bench({"--ranks", "1,2", "--engines", "local,tcp"});
    words[1] = folder / "job.toml";
    const Json json = train_json(words);
    ASSERT_EQ(json.at("runs").size(), 3u);
    for (const Json& run : json["runs"]) EXPECT_EQ(run.at("error"), nullptr) << run.dump();
}

TEST(Bench, PrintsTheLinesThatPeopleKnow) {
    const Outcome outcome = train(short_bench({"--run.ranks=2"}));
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(outcome.out,
                AllOf(HasSubstr("2 ranks, FSDP FULL_SHARD"), HasSubstr("\nBatch size: 8 per rank"),
                      HasSubstr("\nNumber of ranks: 2 (local)\n"),
                      ContainsRegex("\nIter #2: [0-9.]+ Samples/sec per rank\n"),
                      ContainsRegex("\nSamples/sec per rank: [0-9.]+ \\+-[0-9.]+\n"),
                      ContainsRegex("\nTotal Samples/sec on 2 rank\\(s\\): [0-9.]+ \\+-[0-9.]+\n")));
}

TEST(Bench, RefusesWhatItCannotMeasure) {
    expect_refusal(train(short_bench({"--run.steps=3"})), {"bench counts its own steps"});
    expect_refusal(train(short_bench({"--run.device=sim"})), {"bench measures real devices"});
    expect_refusal(train(short_bench({"--engines", "smoke"})), {"--engines", "smoke"});
    expect_refusal(train(short_bench({"--ranks", "0"})), {"--ranks"});
    expect_refusal(train({"bench", sample("mlp.toml"), "--iterations", "100000", "--steps", "100000"}),
                   {"--iterations", "100000 times 100000 steps", "1000000000"});
}

}  // namespace TEST_FILE
}  // namespace shardscope::tools
