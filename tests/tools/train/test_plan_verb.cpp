// shardscope-train plan as a user calls it: its output equals the results of the simulated device run by
// hand, and its files can be run and opened.
#include <algorithm>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/train/train_tool.h"
#include "traces/store/columns/trace.h"
#include "traces/store/load/loader.h"

namespace shardscope::tools {
namespace TEST_FILE {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

// 3 wraps x 2 offload of FULL_SHARD and SHARD_GRAD_OP, 3 wraps of NO_SHARD, ddp and ZERO_1: 17
// configurations.
const Words kSmall = {"--run.ranks=4",
                      "--run.steps=3",
                      "--fsdp.backward_prefetch=BACKWARD_PRE",
                      "--fsdp.limit_all_gathers=true",
                      "--precision.param=fp32",
                      "--fsdp.layout=fsdp1",
                      "--train.accumulation=1",
                      "--sim.cluster=h100_ib"};

class PlanVerb : public ::testing::Test {
  protected:
    static Words words(const std::string& job, const Words& more) {
        Words all = {"plan", sample(job)};
        all.insert(all.end(), kSmall.begin(), kSmall.end());
        all.insert(all.end(), more.begin(), more.end());
        return all;
    }
    static Outcome plan(const Words& more, const std::string& job = "mlp.toml") {
        return train(words(job, more));
    }
    static Json plan_json(const Words& more, const std::string& job = "mlp.toml") {
        return train_json(words(job, more));
    }
    static const Json& row(const Json& plan, int number) {
        return *std::find_if(plan.at("rows").begin(), plan.at("rows").end(),
                             [&](const Json& own) { return own.at("row") == number; });
    }
    static void expect_same(const Json& row, const Json& run) {
        EXPECT_EQ(row.at("average_step_us"), run.at("average_step_us"));
        EXPECT_EQ(row.at("exposed_communication_us"), run.at("simulation").at("exposed_communication_us"));
        EXPECT_EQ(row.at("last_step").at("us"), run.at("simulation").at("last_step").at("us"));
        EXPECT_EQ(row.at("peak_bytes"), run.at("ranks").at(0).at("peak_bytes"));
        EXPECT_EQ(row.at("reserved_bytes"), run.at("ranks").at(0).at("reserved_bytes"));
    }
    static void expect_refused(const Words& more, const Words& sayings) {
        expect_refusal(plan(more), sayings);
    }

    TemporaryFolder folder_;
};

// Every row, run by hand with its settings on the simulated device.
TEST_F(PlanVerb, EveryRowEqualsTheSimulatedDevice) {
    const Json plan = plan_json({});
    EXPECT_EQ(plan.at("configurations"), 24);
    EXPECT_EQ(plan.at("configurations"), plan.at("rows").size());
    EXPECT_EQ(plan.at("fits"), plan.at("rows").size());
    EXPECT_EQ(plan.at("complete"), true);
    for (const Json& own : plan.at("rows")) {
        Words by_hand = {sample("mlp.toml"), "--run.device=sim"};
        for (const auto& [key, value] : own.at("settings").items())
            by_hand.push_back("--" + key + "=" + value.get<std::string>());
        expect_same(own, train_json(by_hand));
    }
}

// A 7 B GPT on 8 and on 64 devices of 80 GB: the best configuration that fits, run by hand as a job file,
// gives exactly the same numbers.
TEST_F(PlanVerb, TheBestOf7BillionRunByHandGivesTheSameNumbers) {
    for (const std::string ranks : {"8", "64"}) {
        SCOPED_TRACE(ranks);
        const std::string job = folder_ / (ranks + ".toml");
        const Json plan = train_json({"plan", sample("gpt_7b.toml"), "--run.ranks=" + ranks,
                                      "--fsdp.backward_prefetch=BACKWARD_PRE",
                                      "--fsdp.limit_all_gathers=true", "--write", "best", "--as", job});
        EXPECT_GE(plan.at("configurations").get<int>(), 80);
        EXPECT_GE(plan.at("front").size(), 3u);
        EXPECT_GT(plan.at("too_large").get<int>(), 0);
        const Json& best = row(plan, plan.at("best"));
        EXPECT_EQ(plan.at("fastest"), plan.at("front").at(0));
        EXPECT_TRUE(best.at("tied"));
        EXPECT_LE(best.at("reserved_bytes").get<double>(), 80e9);
        EXPECT_GT(best.at("mfu").get<double>(), 0.2);
        EXPECT_LT(best.at("mfu").get<double>(), 0.8);
        expect_same(best, train_json({job}));
        expect_same(best, train_json({job, "--run.device=sim"}));
    }
}

TEST_F(PlanVerb, ARowIsWrittenAsAJobAndAsItsTrace) {
    const std::string job = folder_ / "row.toml", trace = folder_ / "row.sqlite";
    const Json all = plan_json({});
    const Json one = plan_json({"--write", "3", "--as", job, "--as", trace});
    ASSERT_EQ(one.at("rows").size(), 1u);  // the others are not candidates
    EXPECT_EQ(one.at("complete"), false);
    Json expected = row(all, 3);
    const Words of_the_others = {"front", "tied", "changes", "beaten_by", "same_as", "why"};
    for (const std::string& key : of_the_others) expected.erase(key);
    Json own = one.at("rows").at(0);
    for (const std::string& key : of_the_others) own.erase(key);
    EXPECT_EQ(own, expected);

    EXPECT_THAT(read_file(job), HasSubstr("On devices of your own: --run.device=cuda, or cpu.\n"));
    const std::string by_hand = folder_ / "by_hand.sqlite";
    expect_same(row(all, 3), train_json({job, "--trace", by_hand}));
    EXPECT_EQ(trace_tool({"check", trace}).status, 0);
    EXPECT_EQ(trace_json({"memory", trace}), trace_json({"memory", by_hand}));
    EXPECT_EQ(trace_json({"summary", trace}), trace_json({"summary", by_hand}));

    EXPECT_THAT(plan({"--write", "3", "--as", job}).err, HasSubstr(job)) << "it is there";
    EXPECT_EQ(plan({"--write", "3", "--as", job, "--overwrite"}).status, 0);
}

TEST_F(PlanVerb, TheDatabaseContainsEveryRow) {
    const std::string file = folder_ / "plan.sqlite", trace = folder_ / "best.sqlite";
    const std::string limit = "--run.memory_limit=20000000";  // some fit, some do not
    const Json plan = plan_json({limit, "-o", file, "--write", "best", "--as", trace});
    EXPECT_GT(plan.at("fits").get<int>(), 0);
    EXPECT_GT(plan.at("too_large").get<int>(), 0);
    EXPECT_EQ(trace_tool({"check", file}).status, 0);
    const auto loaded = traces::store::load_trace(file);
    ASSERT_EQ(loaded->plan.size(), plan.at("rows").size());
    for (const traces::schema::PlanRow& own : loaded->plan) {
        const Json& expected = row(plan, own.number);
        EXPECT_EQ(own.outcome, expected.at("outcome"));
        EXPECT_EQ(Json::parse(own.settings), expected.at("settings"));
        EXPECT_EQ(own.peak_bytes, expected.at("peak_bytes"));
        std::int64_t sum = 0;
        for (const std::int64_t bytes : own.at_peak) sum += bytes;
        EXPECT_EQ(sum, own.peak_bytes);
        EXPECT_EQ(own.front, expected.at("front"));
        EXPECT_EQ(own.beaten_by, expected.value("beaten_by", 0));
        EXPECT_EQ(own.why, expected.at("why"));
        EXPECT_EQ(own.trace, own.number == plan.at("best") ? trace : "");
        EXPECT_EQ(own.simulated(), expected.contains("average_step_us"));
        if (!own.simulated()) continue;
        EXPECT_EQ(own.step_us, expected.at("average_step_us"));
        EXPECT_EQ(own.exposed_us, expected.at("exposed_communication_us"));
        EXPECT_EQ(own.mfu, expected.at("mfu"));
        EXPECT_EQ(own.samples_per_second, expected.at("samples_per_second"));
    }
    // The job in the row equals the job file.
    const std::string job = folder_ / "job.toml";
    const int best = plan.at("best").get<int>();
    write_file(job, texts(file, "SELECT job FROM SHARD_PLAN WHERE number = " + std::to_string(best)).at(0));
    expect_same(row(plan, best), train_json({job}));
    EXPECT_EQ(number(file, "SELECT count(*) FROM SHARD_PLAN WHERE front"),
              static_cast<std::int64_t>(plan.at("front").size()));
}

// Of every mesh the run by hand gives the same numbers, and the table says where its groups lie.
TEST_F(PlanVerb, MeshesDivideTheRanksAndSayWhereTheirGroupsLie) {
    const Words meshes = {"plan",
                          sample("gpt_tensor.toml"),
                          "--meshes",
                          "--run.ranks=16",
                          "--run.steps=3",
                          "--sim.cluster=h100_ib",
                          "--parallel.tensor=1,4",
                          "--parallel.pipeline=1"};
    Words json = meshes;
    json.insert(json.end(),
                {"--parallel.mode=ddp", "--data.batch=2", "--train.accumulation=1", "--time-all"});
    const Json plan = train_json(json);
    ASSERT_EQ(plan.at("fits"), 4);  // two sizes of tensor groups, with and without checkpointing
    for (const Json& row : plan.at("rows")) {
        const bool tensor = row.at("settings").at("parallel.tensor") == "4";
        EXPECT_EQ(row.at("placement"),
                  tensor ? "tensor 4 in a node, data 4 over 2 nodes" : "data 16 over 2 nodes");
        Words by_hand = {sample("gpt_tensor.toml"), "--run.device=sim", "--run.ranks=16", "--run.steps=3",
                         "--sim.cluster=h100_ib"};
        for (const auto& [key, value] : row.at("settings").items())
            by_hand.push_back("--" + key + "=" + value.get<std::string>());
        expect_same(row, train_json(by_hand));
    }
    const Outcome table = train(meshes);
    EXPECT_EQ(table.status, 0);
    EXPECT_THAT(table.out, AllOf(HasSubstr("The fastest of each size of tensor groups"),
                                 HasSubstr("tensor 4 in a node, shard 4 over 2 nodes")));
}

TEST_F(PlanVerb, MeshesWithContextGroupsAreWrittenAsTheyWereSimulated) {
    const std::string file = folder_ / "mesh.toml";
    const Words meshes = {"plan",
                          sample("gpt_tensor.toml"),
                          "--meshes",
                          "--run.ranks=16",
                          "--run.steps=3",
                          "--sim.cluster=h100_ib",
                          "--parallel.tensor=1",
                          "--parallel.pipeline=1",
                          "--parallel.mode=ddp",
                          "--memory.activation_checkpointing=none",
                          "--data.batch=2",
                          "--train.accumulation=1",
                          "--parallel.context=4",
                          "--parallel.context_exchange=allgather,ring"};
    Words json = meshes;
    json.insert(json.end(), {"--write", "best", "--as", file});
    const Json plan = train_json(json);
    ASSERT_EQ(plan.at("rows").size(), 2U);
    for (const Json& row : plan.at("rows")) {
        EXPECT_EQ(row.at("settings").at("parallel.context"), "4");
        EXPECT_EQ(row.at("placement"), "context 4 in a node, data 16 over 2 nodes");
        EXPECT_GT(row.at("exposed_by_axis_us").at("context"), 0);
    }
    const Json& best = plan.at("rows").at(plan.at("best").get<std::size_t>() - 1);
    expect_same(best, train_json({file}));
    Words both = meshes;
    std::replace(both.begin(), both.end(), std::string("--parallel.context=4"),
                 std::string("--parallel.context=1,4"));
    EXPECT_THAT(train(both).out, AllOf(HasSubstr("of tensor groups, context groups and pipelines"),
                                       HasSubstr("context 4 in a node, data 16 over 2 nodes")));
}

TEST_F(PlanVerb, TheTableShowsTheParetoFrontFirstAndWhyTheRestLoses) {
    const Outcome outcome = plan({"--run.memory_limit=20000000"});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(outcome.out, AllOf(HasSubstr("configurations on h100_ib"), HasSubstr("The Pareto front: "),
                                   HasSubstr("The best of the rest"), HasSubstr("slower than"),
                                   HasSubstr("Memory of row"), HasSubstr("stage 3")));
    EXPECT_LT(outcome.out.find("The Pareto front"), outcome.out.find("The best of the rest"));
    const auto lines = [](const std::string& text) { return std::count(text.begin(), text.end(), '\n'); };
    const Outcome all = plan({"--run.memory_limit=20000000", "--all"});
    EXPECT_GT(lines(all.out), lines(outcome.out));
    EXPECT_THAT(all.out, HasSubstr("too large"));
}

TEST_F(PlanVerb, ALimitBelowTheSmallestPeakNamesWhatMakesThePeak) {
    const Outcome outcome = plan({"--run.memory_limit=1000000"});
    EXPECT_EQ(outcome.status, 1);
    const Json whole = plan_json({});
    std::int64_t smallest = std::numeric_limits<std::int64_t>::max();
    for (const Json& own : whole.at("rows"))
        smallest = std::min(smallest, own.at("peak_bytes").get<std::int64_t>());
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("nothing fits into the 1000000 bytes of run.memory_limit: "),
                                   HasSubstr("the smallest peak is " + std::to_string(smallest) + " bytes ("),
                                   HasSubstr("reached in"), HasSubstr("run.memory_limit")));
    const Json plan =
        Json::parse(train(words("mlp.toml", {"--run.memory_limit=1000000", "--format", "json"})).out);
    const int shown = plan.at("anatomy").at("row");
    EXPECT_EQ(row(plan, shown).at("peak_bytes"), smallest);
    EXPECT_EQ(plan.at("limit_of"), "into the 1000000 bytes of run.memory_limit");
}

// 24 configurations; those that are tried afterwards if none fits have numbers of their own.
TEST_F(PlanVerb, ARowThatIsTriedIfNothingFitsIsWritten) {
    const auto words = [](const Words& more) {
        Words all = {"plan",
                     sample("mlp.toml"),
                     "--run.ranks=4",
                     "--run.steps=3",
                     "--sim.cluster=h100_ib",
                     "--fsdp.sharding_strategy=FULL_SHARD",
                     "--precision.param=fp32",
                     "--fsdp.cpu_offload=false"};
        all.insert(all.end(), more.begin(), more.end());
        return all;
    };
    const std::string limit = "--run.memory_limit=7000000";
    const std::size_t first = train_json(words({})).at("rows").size();
    const Json plan = train_json(words({limit}));
    const int number = plan.at("best").get<int>();
    ASSERT_GT(static_cast<std::size_t>(number), first);
    const std::string job = folder_ / "row.toml", other = folder_ / "other.toml";
    const Words write = {limit, "--write", std::to_string(number), "--as", job};
    EXPECT_EQ(train_json(words(write)).at("rows").size(), 1u);
    expect_same(row(plan, number), train_json({job}));
    // With all rows shown, and if the others fit.
    const Json whole =
        train_json(words({"-o", folder_ / "plan.sqlite", "--write", std::to_string(number), "--as", other}));
    EXPECT_EQ(whole.at("rows").size(), plan.at("rows").size());
    expect_same(row(whole, number), train_json({other}));
    const Outcome beyond = train(words({"--write", "9999", "--as", folder_ / "none.toml"}));
    EXPECT_EQ(beyond.status, 2);
    EXPECT_THAT(beyond.err,
                HasSubstr("\"9999\" is not a row; use 1 to " + std::to_string(first) + ", " +
                          std::to_string(first + 1) + " to " + std::to_string(plan.at("rows").size()) +
                          " of those tried only if none of these fits, or best"));
}

// The moments of Adam exist from the second step on.
TEST_F(PlanVerb, AJobOfOneStepIsPlannedForTheLaterSteps) {
    const Words adam = {"--optimizer.type=adamw", "--fsdp.sharding_strategy=FULL_SHARD"};
    Words one = adam;
    one.emplace_back("--run.steps=1");
    const Json plan = plan_json(one), of_three = plan_json(adam);
    ASSERT_EQ(plan.at("rows").size(), of_three.at("rows").size());
    for (std::size_t r = 0; r < plan.at("rows").size(); ++r) {
        EXPECT_EQ(plan.at("rows").at(r).at("settings").at("run.steps"), "3");
        EXPECT_EQ(plan.at("rows").at(r).at("reserved_bytes"), of_three.at("rows").at(r).at("reserved_bytes"));
    }
    EXPECT_THAT(PlanVerb::plan(one).out, HasSubstr("run for 3 steps"));
}

// FullyShardedDataParallel's buffers do not fit, fully_shard's do.
TEST_F(PlanVerb, ThirteenBillionParametersFitOneGpuOf32GB) {
    const Json plan = train_json({"plan", sample("gpt_7b.toml"), "--run.ranks=1", "--sim.cluster=v100_pcie",
                                  "--model.layers=40", "--model.width=5120", "--model.heads=40",
                                  "--data.batch=1", "--fsdp.cpu_offload=true", "--fsdp.wrap=module:Block",
                                  "--fsdp.sharding_strategy=FULL_SHARD", "--precision.param=bf16"});
    EXPECT_GT(plan.at("fits").get<int>(), 0);
    for (const Json& own : plan.at("rows")) {
        if (own.at("outcome") == "fits") {
            EXPECT_NE(own.at("settings").at("fsdp.layout"), "fsdp1");
        }
    }
}

TEST_F(PlanVerb, ImpossibleConfigurationsAreCountedWithTheirReason) {
    const Json plan = plan_json({"--fsdp.cpu_offload=true"});
    EXPECT_GT(plan.at("impossible").get<int>(), 0);
    EXPECT_GT(plan.at("fits").get<int>(), 0);
    for (const Json& own : plan.at("rows")) {
        if (own.at("outcome") == "impossible") {
            EXPECT_THAT(own.at("reason").get<std::string>(), HasSubstr("cpu_offload"));
        }
    }
    EXPECT_THAT(PlanVerb::plan({"--fsdp.cpu_offload=true"}).out, HasSubstr("impossible: "));
}

TEST_F(PlanVerb, RefusesWhatIsWrong) {
    const Outcome nowhere = train({"plan", sample("mlp.toml"), "--sim.cluster=nowhere"});
    EXPECT_EQ(nowhere.status, 2);
    EXPECT_THAT(nowhere.err, AllOf(HasSubstr("sim.cluster"), HasSubstr("h100_ib")));
    expect_refused({"--fsdp.wrap=module:Block", "--parallel.mode=fsdp"}, {"fsdp.wrap", "Linear"});
    expect_refused({"--run.device=cuda"}, {"--run.device", "simulates"});
    expect_refused({"--run.trace=x.sqlite"}, {"--run.trace", "--write"});
    expect_refused({"--write", "3"}, {"--as"});
    expect_refused({"--as", folder_ / "x.toml"}, {"--write"});
    expect_refused({"--write", "0", "--as", folder_ / "x.toml"}, {"\"0\" is not a row"});
    expect_refused({"--write", "best", "--as", folder_ / "x.txt"}, {"x.txt", ".toml"});
    expect_refused({"-o", folder_ / "no/folder/plan.sqlite"}, {"no/folder"});
    expect_refused({"--fsdp.wrop=root"}, {"fsdp.wrop"});
    EXPECT_EQ(train({"plan", folder_ / "none.toml"}).status, 2);
}

// A job that is meant for real devices can be planned as it is.
TEST_F(PlanVerb, AJobForDevicesIsPlanned) {
    const std::string job = folder_ / "job.toml";
    write_file(job,
               "[run]\nranks = 2\nsteps = 2\ncomm = \"tcp\"\nprocesses = 2\ntrace = \"never.sqlite\"\n"
               "[model]\ntype = \"mlp\"\nwidth = 64\nlayers = 2\n[sim]\ncluster = \"laptop\"\n");
    const Json plan = train_json({"plan", job});
    EXPECT_GT(plan.at("fits").get<int>(), 0);
    EXPECT_FALSE(fs::exists("never.sqlite"));
}

TEST_F(PlanVerb, CtrlCKeepsTheRowsThatAreDone) {
    const Outcome outcome = run_command(
        {"sh", "-c",
         "'" + train_binary() + "' plan '" + sample("gpt_7b.toml") +
             "' --data.batch=1,2,3,4,5,6,7 --train.accumulation=1,2,3,4 --format json & p=$!; sleep 3; "
             "kill -INT $p; wait $p"});
    EXPECT_EQ(outcome.status, 128 + 2);
    const Json plan = Json::parse(outcome.out, nullptr, false);
    ASSERT_FALSE(plan.is_discarded()) << outcome.err;
    EXPECT_EQ(plan.at("complete"), false);
    EXPECT_GT(plan.at("not_run").get<int>(), 0);
    EXPECT_GT(plan.at("fits").get<int>(), 0);
    EXPECT_FALSE(plan.at("front").empty());
}

}  // namespace TEST_FILE
}  // namespace shardscope::tools
