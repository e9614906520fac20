// shardscope-train sweep: every combination runs, its trace has its settings, and one table compares all.
#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <string>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/train/train_tool.h"

namespace shardscope::tools {
namespace TEST_FILE {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class Sweep : public ::testing::Test {
  protected:
    // 8 Linear layers of 64, 2 steps, 2 ranks unless `more` sets another number: a short run.
    Words words(const Words& more, const std::string& folder) const {
        Words all = {"sweep", sample("mlp.toml"), "--model.width=64", "--run.steps=2",
                     "-o",    folder_ / folder};
        const bool ranks = std::any_of(more.begin(), more.end(), [](const std::string& word) {
            return word.starts_with("--run.ranks");
        });
        if (!ranks) all.emplace_back("--run.ranks=2");
        all.insert(all.end(), more.begin(), more.end());
        return all;
    }
    Outcome sweep(const Words& more, const std::string& folder = "out") const {
        return train(words(more, folder));
    }
    Json sweep_json(const Words& more, const std::string& folder = "out") const {
        return train_json(words(more, folder)).at("runs");
    }
    void expect_refused(const Words& more, const Words& sayings) const {
        expect_refusal(sweep(more, "refused"), sayings);
        EXPECT_FALSE(fs::exists(folder_ / "refused"));
    }

    TemporaryFolder folder_;
};

TEST_F(Sweep, RunsEveryCombinationAndKeepsItsTrace) {
    const Json runs = sweep_json({"--fsdp.wrap=root,module:Linear", "--fsdp.cpu_offload=false,true"});
    ASSERT_EQ(runs.size(), 4u);
    const std::string names[] = {"wrap=root,cpu_offload=false", "wrap=root,cpu_offload=true",
                                 "wrap=module-Linear,cpu_offload=false",
                                 "wrap=module-Linear,cpu_offload=true"};
    for (std::size_t i = 0; i < 4; ++i) {
        SCOPED_TRACE(names[i]);
        const Json& run = runs[i];
        EXPECT_EQ(run.at("error"), nullptr);
        EXPECT_EQ(run.at("settings").at("fsdp.cpu_offload"), i % 2 == 0 ? "false" : "true");
        EXPECT_EQ(run.at("settings").at("fsdp.wrap"), i < 2 ? "root" : "module:Linear");
        EXPECT_EQ(run.at("trace"), folder_ / ("out/" + names[i] + ".sqlite"));
        EXPECT_EQ(trace_tool({"check", run["trace"].get<std::string>()}).status, 0);

        const Json memory = trace_json({"memory", run["trace"].get<std::string>()});
        EXPECT_EQ(run.at("peak_bytes"), memory.at("ranks").at(0).at("peak_bytes"));
        EXPECT_EQ(run.at("predicted_peak_bytes"), run.at("peak_bytes"));
        EXPECT_GE(run.at("reserved_bytes"), run.at("peak_bytes"));
        EXPECT_GT(run.at("average_step_us").get<double>(), 0);
        EXPECT_GE(run.at("exposed_communication_us").get<double>(), 0);
        // One unit is gathered once and reduced once; eight units are gathered twice and reduced once.
        EXPECT_EQ(run.at("collective_bytes_per_step").get<double>(),
                  static_cast<double>((i < 2 ? 2 : 3) * kMlpBytes));
        EXPECT_EQ(run.at("first_loss"), runs[0].at("first_loss"));
        EXPECT_EQ(run.at("last_loss"), runs[0].at("last_loss")) << "bit for bit";
    }
    EXPECT_GT(runs[0].at("peak_bytes"), runs[2].at("peak_bytes"));
}

TEST_F(Sweep, PrintsARowForEachAndHowToOpenThem) {
    const Outcome outcome = sweep({"--fsdp.wrap=root,module:Linear"});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(outcome.out,
                AllOf(HasSubstr("wrap"), HasSubstr("peak MiB"), HasSubstr("reserved MiB"),
                      HasSubstr("step ms"), HasSubstr("last loss"), HasSubstr("exposed ms"),
                      HasSubstr("\nroot "), HasSubstr("\nmodule:Linear "),
                      HasSubstr("shardscope-view " + (folder_ / "out") + "/*.sqlite --panel compare\n")));
    EXPECT_THAT(outcome.err,
                AllOf(HasSubstr("[1/2] fsdp.wrap=root"), HasSubstr("[2/2] fsdp.wrap=module:Linear")));
}

// The first step's loss is reached when it is known; a negative one never is.
TEST_F(Sweep, SaysWhenEachRunReachedALoss) {
    const Words rates = {"--run.steps=4", "--optimizer.lr=0.1,0.2"};
    const Json plain = sweep_json(rates);
    EXPECT_FALSE(plain[0].contains("to_loss_us"));
    const std::string first = fmt::format("--to-loss={}", plain[0].at("first_loss").get<double>());
    const Json reached = sweep_json({rates[0], rates[1], first, "--overwrite"});
    const Json compared = trace_json({"compare", reached[0].at("trace").get<std::string>(),
                                      reached[1].at("trace").get<std::string>(), first});
    for (const std::size_t i : {0, 1}) {
        EXPECT_GT(reached[i].at("to_loss_us").get<double>(), 0);
        EXPECT_EQ(reached[i].at("to_loss_us"), compared.at("runs").at(i).at("to_loss_us"));
    }
    EXPECT_EQ(sweep_json({rates[0], rates[1], "--to-loss=-1", "--overwrite"})[1].at("to_loss_us"), nullptr);
    EXPECT_THAT(sweep({rates[0], rates[1], "--to-loss=-1", "--overwrite"}).out, HasSubstr("s to loss -1"));
    expect_refused({"--to-loss=x"}, {"--to-loss"});
    expect_refused({"--to-loss=2", "--dry-run"}, {"--to-loss"});
}

TEST_F(Sweep, AnImpossibleCombinationIsARowWithItsReason) {
    const Words values = {"--fsdp.sharding_strategy=FULL_SHARD,NO_SHARD", "--fsdp.cpu_offload=true;"};
    const Json runs = sweep_json(values);
    ASSERT_EQ(runs.size(), 2u);
    EXPECT_EQ(runs[0].at("error"), nullptr);
    EXPECT_THAT(runs[1].at("error").get<std::string>(),
                AllOf(StartsWith("impossible: "), HasSubstr("NO_SHARD cannot be offloaded")));
    EXPECT_EQ(runs[1].at("trace"), "");
    EXPECT_FALSE(runs[1].contains("peak_bytes"));
    Words again = values;
    again.emplace_back("--overwrite");
    EXPECT_THAT(sweep(again).out,
                AllOf(HasSubstr("impossible [1]\n"), HasSubstr("\n[1] command line: fsdp.cpu_offload")));
}

TEST_F(Sweep, AWrapThatMatchesNothingIsAnImpossibleRow) {
    const Json runs = sweep_json({"--fsdp.wrap=root,module:Conv2d"});
    EXPECT_EQ(runs.at(0).at("error"), nullptr);
    EXPECT_THAT(runs.at(1).at("error").get<std::string>(), HasSubstr("Conv2d"));
}

TEST_F(Sweep, IfAllAreImpossibleTheReasonsArePrintedAndTheStatusIsThatOfAWrongJob) {
    const Outcome outcome = sweep({"--fsdp.wrap=module:Conv2d,module:Conv3d"});
    EXPECT_EQ(outcome.status, 2);
    EXPECT_THAT(outcome.out,
                AllOf(HasSubstr("no module of class Conv2d"), HasSubstr("no module of class Conv3d")));
    EXPECT_FALSE(fs::exists(folder_ / "out"));
}

TEST_F(Sweep, OneThatRunsOutOfMemoryIsARowAndLeavesACompleteTrace) {
    // As one unit, the parameters and twice their gradients are 3 * 133120 bytes; per Linear they are far
    // less.
    const Json runs = sweep_json({"--fsdp.wrap=root,module:Linear", "--run.memory_limit=400000"});
    EXPECT_THAT(runs.at(0).at("error").get<std::string>(),
                AllOf(StartsWith("failed: "), HasSubstr("run.memory_limit")));
    const std::string trace = runs[0].at("trace").get<std::string>();
    EXPECT_EQ(trace_json({"info", trace}).at("ended"), true);
    EXPECT_EQ(trace_tool({"check", trace}).status, 0);
    EXPECT_THAT(texts(trace, "SELECT text FROM DIAGNOSTIC_EVENT"), Contains(HasSubstr("out of memory")));
    EXPECT_EQ(runs.at(1).at("error"), nullptr);
    EXPECT_LE(runs[1].at("reserved_bytes"), 400000);
}

// Steps of length 1000 make the loss infinite; with a bound of half the first loss, no loss is small enough.
TEST_F(Sweep, MarksRunsThatDiverge) {
    const Words words = {"sweep",
                         sample("mlp.toml"),
                         "--model.width=64",
                         "--run.ranks=1",
                         "--run.steps=5",
                         "--optimizer.lr=0.001,1000",
                         "--train.diverged_above=10,0.5",
                         "-o",
                         folder_ / "out"};
    const Json runs = train_json(words).at("runs");
    ASSERT_EQ(runs.size(), 4u);
    EXPECT_FALSE(runs[0].contains("diverged_at"));
    EXPECT_EQ(runs[1].at("diverged_at"), 0);
    EXPECT_EQ(runs[1].at("error"), nullptr) << "it went on";
    for (const std::size_t i : {2, 3}) {
        EXPECT_GT(runs[i].at("diverged_at"), 0);
        EXPECT_THAT(runs[i].at("error").get<std::string>(),
                    AllOf(StartsWith("failed: step "), HasSubstr("not finite")));
    }
    const std::string trace = runs[1].at("trace");
    EXPECT_EQ(number(trace, "SELECT step FROM metrics WHERE name = 'diverged'"), 0);
    EXPECT_THAT(texts(trace, "SELECT text FROM DIAGNOSTIC_EVENT"),
                Contains(StartsWith("the run diverged: from step 0 on")));
    const Json compared = trace_json({"compare", runs[0].at("trace"), trace});
    EXPECT_EQ(compared.at("runs").at(0).at("diverged_step"), nullptr);
    EXPECT_EQ(compared.at("runs").at(1).at("diverged_step"), 0);
    Words again = words;
    again.emplace_back("--overwrite");
    EXPECT_THAT(train(again).out,
                AllOf(HasSubstr(" diverged at step 0\n"), HasSubstr(" diverged at step 2 [1]\n"),
                      HasSubstr("\n[1] step 2: the loss is not finite")));
}

// The runs are refused only after they are planned: their checkpoint does not exist.
TEST_F(Sweep, ARefusedRunDoesNotShowAnEarlierSweepsTrace) {
    ASSERT_EQ(sweep({"--optimizer.lr=0.001,0.002", "--train.diverged_above=0.5"}).status, 0);
    const std::string trace = folder_ / "out/lr=0.001.sqlite";
    ASSERT_TRUE(fs::exists(trace));
    const Outcome again = sweep({"--optimizer.lr=0.001,0.002", "--overwrite", "--format", "json",
                                 "--checkpoint.initial_load=" + (folder_ / "nothing")});
    EXPECT_EQ(again.status, 2);
    const Json result = Json::parse(again.out, nullptr, false);
    ASSERT_EQ(result.at("runs").size(), 2U);
    for (const Json& run : result["runs"]) {
        EXPECT_THAT(run.at("error").get<std::string>(),
                    AllOf(StartsWith("impossible: "), HasSubstr("nothing")));
        EXPECT_EQ(run.at("trace"), "");
        EXPECT_FALSE(run.contains("diverged_at"));
    }
    EXPECT_FALSE(fs::exists(trace));
}

// What a larger batch costs in loss is beside what it gains in speed.
TEST_F(Sweep, ShowsTheSamplesASecondBesideTheLossAndTheLearningRate) {
    const Words batches = {"--data.batch=4,16", "--optimizer.lr=0.1", "--optimizer.lr_scaling=linear",
                           "--optimizer.lr_batch=8"};
    const Json runs = sweep_json(batches);
    for (const std::size_t i : {0, 1}) {
        EXPECT_EQ(runs[i].at("items"), "samples");
        EXPECT_EQ(runs[i].at("items_per_step"), i == 0 ? 8 : 32);  // 2 ranks
        EXPECT_DOUBLE_EQ(runs[i].at("learning_rate").get<double>(), i == 0 ? 0.1 : 0.4);
        EXPECT_DOUBLE_EQ(
            runs[i].at("items_per_second").get<double>() * runs[i].at("average_step_us").get<double>() / 1e6,
            runs[i].at("items_per_step").get<double>());
    }
    Words again = batches;
    again.emplace_back("--overwrite");
    EXPECT_THAT(sweep(again).out,
                AllOf(HasSubstr("learning rate"), HasSubstr("samples/s"), HasSubstr("last loss")));
    EXPECT_EQ(sweep({"--fsdp.wrap=root,module:Linear"}, "other").out.find("learning rate"),
              std::string::npos);
}

TEST_F(Sweep, ADryRunPredictsAndWritesNothing) {
    const Json runs = sweep_json({"--fsdp.wrap=root,module:Linear", "--dry-run"});
    for (const Json& run : runs) {
        const Json plan =
            train_json({sample("mlp.toml"), "--model.width=64", "--run.ranks=2", "--run.steps=2",
                        "--fsdp.wrap=" + run.at("settings").at("fsdp.wrap").get<std::string>(), "--dry-run"});
        EXPECT_EQ(run.at("predicted_peak_bytes"), plan.at("predicted_peak_bytes"));
        EXPECT_EQ(run.at("trace"), "");
        EXPECT_FALSE(run.contains("peak_bytes"));
    }
    EXPECT_EQ(runs.at(0).at("planned_collectives_per_step"), 2);
    EXPECT_EQ(runs.at(1).at("planned_collectives_per_step"), 3 * kMlpLayers);
    EXPECT_FALSE(fs::exists(folder_ / "out"));
}

TEST_F(Sweep, TheFolderIsNamedAfterTheJob) {
    const std::string command = "cd '" + folder_.path() + "' && '" + train_binary() + "' sweep '" +
                                sample("mlp.toml") + "' --model.width=16 --run.steps=1 --run.ranks=1,2";
    EXPECT_EQ(run_command({"sh", "-c", command}).status, 0);
    EXPECT_TRUE(fs::exists(folder_ / "sweep-mlp/ranks=1.sqlite"));
    EXPECT_TRUE(fs::exists(folder_ / "sweep-mlp/ranks=2.sqlite"));
}

TEST_F(Sweep, ErrorsAreReportedBeforeAnythingRuns) {
    expect_refused({"--fsdp.warp=root,module:Linear"}, {"warp", "did you mean wrap"});
    expect_refused({"--fsdp.wrap=module:Linear,ReLU"}, {"fsdp.wrap", "\"ReLU\"", "';'"});
    expect_refused({"--run.ranks=1,0"}, {"run.ranks", "1 to 65536"});
    expect_refused({"--run.ranks=1,2", "--run.ranks=4"}, {"run.ranks", "\"1,2\"", "one value each time"});
    expect_refused({"--run.trace=a.sqlite"}, {"-o FOLDER"});
    expect_refused({"--fsdp.wrap=module:Conv2d"}, {"Conv2d", "Linear"});
    expect_refused({"--run.ranks=1,2", "--model.layers=0"}, {"model.layers"});
    expect_refused({"--format", "xml"}, {"--format", "xml"});
    expect_refused({"more"}, {"more"});
    const Outcome nothing = train({"sweep", folder_ / "none.toml", "--run.ranks=1,2"});
    EXPECT_EQ(nothing.status, 2);
    EXPECT_THAT(nothing.err, HasSubstr("no such job file"));
}

TEST_F(Sweep, RunsDoNotSaveOverEachOther) {
    expect_refused({"--run.ranks=1,2", "--checkpoint.save=" + (folder_ / "save")},
                   {"checkpoint.save", "A,B"});
    EXPECT_EQ(sweep({"--checkpoint.save=" + (folder_ / "a") + "," + (folder_ / "b")}).status, 0);
    EXPECT_TRUE(fs::exists(folder_ / "a/latest"));
    EXPECT_TRUE(fs::exists(folder_ / "b/latest"));
}

TEST_F(Sweep, ATraceIsNotReplacedWithoutOverwrite) {
    ASSERT_EQ(sweep({"--run.ranks=1,2"}).status, 0);
    const std::string trace = folder_ / "out/ranks=1.sqlite", before = read_file(trace);
    const Outcome again = sweep({"--run.ranks=3,1"});
    EXPECT_EQ(again.status, 2);
    EXPECT_THAT(again.err, AllOf(HasSubstr("ranks=1.sqlite"), HasSubstr("--overwrite")));
    EXPECT_EQ(read_file(trace), before);
    EXPECT_FALSE(fs::exists(folder_ / "out/ranks=3.sqlite")) << "nothing ran";
    EXPECT_EQ(sweep({"--run.ranks=1,2", "--overwrite"}).status, 0);
    write_file(folder_ / "file", "no folder");
    EXPECT_THAT(sweep({"--run.ranks=1,2"}, "file").err, HasSubstr("-o FOLDER"));
}

TEST_F(Sweep, AStopEndsTheRunAndTheSweep) {
    const std::string out = folder_ / "out", err = folder_ / "err";
    const std::string command =
        "'" + train_binary() + "' sweep '" + sample("mlp.toml") +
        "' --model.width=64 --run.steps=100000000 --run.ranks=1,2 --format json -o '" + out + "' 2>'" + err +
        "' & p=$!; until grep -q 'step 1/' '" + err + "'; do sleep 0.05; done; kill -TERM $p; wait $p";
    const Outcome outcome = run_command({"sh", "-c", command});
    EXPECT_EQ(outcome.status, 128 + 15);
    const Json runs = Json::parse(outcome.out, nullptr, false).at("runs");
    EXPECT_EQ(runs.at(0).at("error"), "stopped: by SIGTERM");
    EXPECT_EQ(trace_tool({"check", runs[0].at("trace").get<std::string>()}).status, 0);
    EXPECT_EQ(runs.at(1).at("error"), "not run");
    EXPECT_FALSE(fs::exists(out + "/ranks=2.sqlite"));
}

TEST(SweepHelp, SaysHowValuesAreSeparated) {
    const Outcome help = train({"sweep", "--help"});
    EXPECT_EQ(help.status, 0);
    EXPECT_THAT(help.out, AllOf(HasSubstr("Usage: shardscope-train sweep"), HasSubstr("-o,--output"),
                                HasSubstr("'root;module:Block,Embedding'"), HasSubstr("[fsdp]")));
    EXPECT_THAT(train({"--help"}).out, HasSubstr("shardscope-train sweep --help"));
}

}  // namespace TEST_FILE
}  // namespace shardscope::tools
