// Which configurations a planner tries: the values that suit a model and a cluster, and how the command line
// changes them.
#include <algorithm>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/planner_testing.h"
#include "trainer/planner/model_classes.h"
#include "trainer/planner/space.h"

namespace shardscope::trainer::planner {
namespace TEST_FILE {

using namespace testing;

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string value_of(const Candidate& candidate, const std::string& key) {
    for (const job::Override& setting : candidate.settings)
        if (setting.key == key) return setting.value;
    return "";
}

std::set<std::string> values_of(const std::vector<Candidate>& all, const std::string& key) {
    std::set<std::string> values;
    for (const Candidate& candidate : all) values.insert(value_of(candidate, key));
    return values;
}

TEST(PlannerSpace, WrapsByTheClassesThatHoldTheModel) {
    // Blocks have more than half of the parameters, and so have their feed-forward parts (2/3 of a block) and
    // their Linear layers; the norms, the attention and the embeddings do not. A block has 12 h^2 + 13 h
    // parameters.
    const job::Job job = planned_job("");
    EXPECT_THAT(wraps_for(job),
                ElementsAre("module:Block", "module:FeedForward", "module:Linear", "size:49984", "root"));
    EXPECT_THAT(checkpointings_for(job), ElementsAre("none", "module:Block"));
}

TEST(PlannerSpace, LoopsAroundFullyShardMayChooseBlocks) {
    const auto all = Planned("").candidates({});
    EXPECT_THAT(values_of(all, "fsdp.unit"), ElementsAre("", "path:blocks.3=false"));
    for (const Candidate& candidate : all) {
        const bool chosen =
            value_of(candidate, "fsdp.wrap") == "every:2,Block" || !value_of(candidate, "fsdp.unit").empty();
        EXPECT_TRUE(!chosen || value_of(candidate, "fsdp.layout") == "fsdp2");
    }
}

TEST(PlannerSpace, KeepsNoLastUnitWhereSomeAreExcluded) {
    const Planned planned("[fsdp]\nexclude = \"path:blocks.3\"\n");
    const auto all = planned.candidates({});
    EXPECT_THAT(values_of(all, "fsdp.unit"), ElementsAre(""));
    for (const Candidate& candidate : all) EXPECT_NO_THROW(planned.job(candidate.settings));
}

TEST(PlannerSpace, BeginsWithTheJobItself) {
    const Planned planned("[fsdp]\nwrap = \"module:Linear\"\nbackward_prefetch = \"NONE\"\n");
    const auto all = planned.candidates({});
    const job::Job first = planned.job(all.front().settings);
    EXPECT_EQ(describe(first), describe(planned.job({})));
}

// 5 wraps x 2 offload x 2 checkpointing x 3 prefetch x 2 limiter x 2 precision = 240 of each of two
// strategies, and 40 each of fully_shard and of half the batch, without prefetch and limiter; NO_SHARD: 5
// wraps x 2 x 2 precision = 20, twice; ddp with and without a sharded optimizer: 2 x 2 checkpointing, twice.
// With fully_shard 8 of each strategy wrap every second block, and 8 of FULL_SHARD keep the last one. With
// the optimizer on the host 20 of each of the two, without prefetch and limiter, and 2 of ddp.
TEST(PlannerSpace, KeysWithoutEffectKeepOneValue) {
    const auto all = Planned("").candidates({});
    EXPECT_EQ(all.size(), 2u * 320 + 40 + 8 + 2 * 8 + 8 + 2 * 20 + 2);
    for (const Candidate& candidate : all) {
        if (value_of(candidate, "fsdp.sharding_strategy") != "NO_SHARD") continue;
        EXPECT_EQ(value_of(candidate, "fsdp.backward_prefetch"), "BACKWARD_PRE");
        EXPECT_EQ(value_of(candidate, "fsdp.cpu_offload"), "false");
    }
}

TEST(PlannerSpace, EveryCandidateIsAJob) {
    const Planned planned("");
    for (const Candidate& candidate : planned.candidates({}))
        EXPECT_NO_THROW(planned.job(candidate.settings));
}

TEST(PlannerSpace, TriesTheLayoutsOfPytorchAndHalfOfTheBatch) {
    const auto all = Planned("").candidates({});
    EXPECT_THAT(values_of(all, "fsdp.layout"), ElementsAre("fsdp1", "fsdp2"));
    int halves = 0;
    for (const Candidate& candidate : all) {
        if (value_of(candidate, "fsdp.layout") == "fsdp2") {  // fully_shard has neither
            EXPECT_EQ(value_of(candidate, "fsdp.backward_prefetch"), "BACKWARD_PRE");
            EXPECT_EQ(value_of(candidate, "fsdp.limit_all_gathers"), "false");
        }
        if (value_of(candidate, "train.accumulation") != "2") continue;
        ++halves;
        EXPECT_EQ(value_of(candidate, "data.batch"), "1");
    }
    EXPECT_EQ(halves, 104);
    EXPECT_THAT(
        values_of(Planned("").candidates({{"fsdp.layout", {"fsdp1"}}, {"data.batch", {"2"}}}), "fsdp.layout"),
        ElementsAre("fsdp1"));
}

// Under the job's own prefetch, limiter and layout, and not where the optimizer is on the host already.
TEST(PlannerSpace, TriesTheOptimizerOnTheHost) {
    int offloaded = 0;
    for (const Candidate& candidate : Planned("").candidates({})) {
        if (value_of(candidate, "memory.offload") != "optimizer") continue;
        ++offloaded;
        EXPECT_EQ(value_of(candidate, "fsdp.cpu_offload"), "false");
        EXPECT_EQ(value_of(candidate, "fsdp.layout"), "fsdp1");
        EXPECT_NE(value_of(candidate, "ddp.shard_optimizer"), "true");
        EXPECT_NE(value_of(candidate, "fsdp.sharding_strategy"), "NO_SHARD");
    }
    EXPECT_EQ(offloaded, 2 * 20 + 2);
    for (const Candidate& candidate : Planned("").candidates({}))
        EXPECT_THAT(candidate.settings,
                    ::testing::Each(::testing::Field(&job::Override::key, ::testing::Ne("memory.nvme"))));
    EXPECT_THAT(values_of(Planned("").candidates({{"memory.offload", {"activations"}}}), "memory.offload"),
                ElementsAre("activations"));
    // A job of this kind is also tried without, with fsdp.cpu_offload too.
    const Planned on_host("[memory]\noffload = \"optimizer\"\n");
    const auto others = on_host.candidates({});
    EXPECT_THAT(values_of(others, "memory.offload"), ElementsAre("none", "optimizer"));
    EXPECT_THAT(values_of(others, "fsdp.cpu_offload"), ElementsAre("false", "true"));
    EXPECT_THAT(values_of(others, "fsdp.sharding_strategy"), Contains("NO_SHARD"));
    for (const Candidate& candidate : others) EXPECT_NO_THROW(on_host.job(candidate.settings));
    // With files, where the host updates, and without.
    const Planned in_files("[memory]\noffload = \"optimizer\"\nnvme = \"/nvme\"\n");
    const auto with_files = in_files.candidates({});
    EXPECT_THAT(values_of(with_files, "memory.nvme"), ElementsAre("", "/nvme"));
    for (const Candidate& candidate : with_files) EXPECT_NO_THROW(in_files.job(candidate.settings));
    const Planned planned("");
    EXPECT_THAT(values_of(last_resorts({}, planned.make_job, planned.cluster_of), "memory.offload"),
                ElementsAre("activations", "none", "optimizer", "optimizer+activations"));
}

TEST(PlannerSpace, AJobOfFullyShardIsPlannedInBothLayouts) {
    const Planned planned("[fsdp]\nlayout = \"fsdp2\"\n");
    const auto all = planned.candidates({});
    EXPECT_EQ(describe(planned.job(all.front().settings)), describe(planned.job({})));
    for (const Candidate& candidate : all) EXPECT_NO_THROW(planned.job(candidate.settings));
}

TEST(PlannerSpace, TheLastResortsAreEveryLayoutAndOneSampleAtATime) {
    const Planned planned("");
    const auto all = last_resorts({}, planned.make_job, planned.cluster_of);
    EXPECT_THAT(values_of(all, "fsdp.layout"), ElementsAre("fsdp1", "fsdp2", "lean"));
    EXPECT_THAT(values_of(all, "fsdp.cpu_offload"), ElementsAre("false", "true"));
    EXPECT_THAT(values_of(all, "train.accumulation"), Contains("2"));
    for (const Candidate& candidate : all) EXPECT_NO_THROW(planned.job(candidate.settings));
    const auto fixed = last_resorts({{"fsdp.cpu_offload", {"false"}}, {"fsdp.layout", {"fsdp1"}}},
                                    planned.make_job, planned.cluster_of);
    EXPECT_THAT(values_of(fixed, "fsdp.layout"), ElementsAre("fsdp1"));
    EXPECT_THAT(values_of(fixed, "fsdp.cpu_offload"), ElementsAre("false"));
}

TEST(PlannerSpace, TheLastResortsKeepWhatTheCommandLineGives) {
    const Planned planned("");
    const auto all = last_resorts({{"data.batch", {"2", "4"}},
                                   {"fsdp.limit_all_gathers", {"true"}},
                                   {"fsdp.sharding_strategy", {"NO_SHARD", "SHARD_GRAD_OP", "FULL_SHARD"}}},
                                  planned.make_job, planned.cluster_of);
    EXPECT_THAT(values_of(all, "data.batch"), ElementsAre("2", "4"));
    EXPECT_THAT(values_of(all, "fsdp.limit_all_gathers"), ElementsAre("true"));
    EXPECT_THAT(values_of(all, "fsdp.layout"), ElementsAre("fsdp1", "lean"));
    EXPECT_THAT(values_of(all, "fsdp.sharding_strategy"), ElementsAre("FULL_SHARD", "SHARD_GRAD_OP"));
    for (const Candidate& candidate : all) EXPECT_NO_THROW(planned.job(candidate.settings));
    const auto groups = last_resorts(
        {{"run.ranks", {"16"}}, {"fsdp.sharding_strategy", {"HYBRID_SHARD"}}, {"fsdp.shard_group", {"4"}}},
        planned.make_job, planned.cluster_of);
    EXPECT_THAT(values_of(groups, "fsdp.shard_group"), ElementsAre("4"));
    EXPECT_THAT(
        last_resorts({{"fsdp.sharding_strategy", {"NO_SHARD"}}}, planned.make_job, planned.cluster_of),
        ::testing::IsEmpty());
}

TEST(PlannerSpace, ALimiterOnTheCommandLineLeavesOutFullyShard) {
    const auto all = Planned("").candidates({{"fsdp.limit_all_gathers", {"true"}}});
    EXPECT_THAT(values_of(all, "fsdp.limit_all_gathers"), ElementsAre("true"));
    EXPECT_THAT(values_of(all, "fsdp.layout"), ElementsAre("fsdp1"));
    const auto both = Planned("").candidates({{"fsdp.limit_all_gathers", {"true", "false"}}});
    EXPECT_THAT(values_of(both, "fsdp.layout"), ElementsAre("fsdp1", "fsdp2"));
}

TEST(PlannerSpace, NodesShardAmongThemselvesIfThereAreSeveral) {
    EXPECT_FALSE(values_of(Planned("").candidates({}), "fsdp.sharding_strategy").contains("HYBRID_SHARD"));
    const Planned planned("");  // 8 devices a node
    const auto all = planned.candidates({{"run.ranks", {"16"}}});
    EXPECT_TRUE(values_of(all, "fsdp.sharding_strategy").contains("HYBRID_SHARD"));
    for (const Candidate& candidate : all) {
        if (value_of(candidate, "fsdp.sharding_strategy") == "HYBRID_SHARD") {
            EXPECT_EQ(value_of(candidate, "fsdp.shard_group"), "8");
        }
    }
}

// 8 devices of a node are 4 tensor groups of 2.
TEST(PlannerSpace, NodesShardAmongTheirTensorGroups) {
    const auto all = Planned("").candidates({{"run.ranks", {"16"}}, {"parallel.tensor", {"2"}}});
    EXPECT_TRUE(values_of(all, "fsdp.sharding_strategy").contains("HYBRID_SHARD"));
    for (const Candidate& candidate : all) {
        if (value_of(candidate, "fsdp.sharding_strategy") == "HYBRID_SHARD") {
            EXPECT_EQ(value_of(candidate, "fsdp.shard_group"), "4");
        }
    }
}

TEST(PlannerSpace, KeysOfTheCommandLineStayFixed) {
    const auto all = Planned("").candidates({{"fsdp.wrap", {"root"}}, {"precision.param", {"bf16"}}});
    EXPECT_THAT(values_of(all, "fsdp.wrap"), Contains("root"));
    for (const Candidate& candidate : all) {
        EXPECT_EQ(value_of(candidate, "precision.param"), "bf16");
        if (value_of(candidate, "parallel.mode") == "fsdp") {
            EXPECT_EQ(value_of(candidate, "fsdp.wrap"), "root");
        }
    }
}

TEST(PlannerSpace, AStrategyOnTheCommandLineLeavesNoOther) {
    const auto all = Planned("").candidates({{"fsdp.sharding_strategy", {"SHARD_GRAD_OP"}}});
    EXPECT_EQ(all.size(), 320u + 8 + 20);
    EXPECT_THAT(values_of(all, "fsdp.sharding_strategy"), ElementsAre("SHARD_GRAD_OP"));
    EXPECT_THAT(values_of(all, "parallel.mode"), ElementsAre("fsdp"));
    EXPECT_THAT(values_of(Planned("").candidates({{"parallel.mode", {"ddp"}}}), "parallel.mode"),
                ElementsAre("ddp"));
}

TEST(PlannerSpace, AnyKeyCanHaveSeveralValues) {
    const auto all = Planned("").candidates({{"train.accumulation", {"1", "2"}}});
    EXPECT_EQ(all.size(), 2u * (504 + 80 + 2 * 8 + 8 + 42));
    EXPECT_THAT(values_of(all, "train.accumulation"), ElementsAre("1", "2"));
}

TEST(PlannerSpace, AJobOfOneRankCanBePlannedForMore) {
    const Planned planned("[parallel]\nmode = \"none\"\n");
    const auto all = planned.candidates({{"run.ranks", {"4"}}});
    EXPECT_TRUE(values_of(all, "parallel.mode").contains("fsdp"));
}

sim::Cluster on_a_slow_wire() {
    sim::Cluster cluster = round_cluster();
    cluster.intra.bandwidth = 1e5;
    return cluster;
}

TEST(PlannerSpace, TriesHooksOfDdpWhereTheWireIsTheLimit) {
    EXPECT_THAT(values_of(Planned("").candidates({}), "ddp.comm_hook"), ElementsAre(""));
    const Planned planned("", on_a_slow_wire());
    const auto all = planned.candidates({});
    EXPECT_THAT(values_of(all, "ddp.comm_hook"), ElementsAre("", "bf16", "none", "powersgd:4"));
    for (const Candidate& candidate : all) {
        EXPECT_NO_THROW(planned.job(candidate.settings));
        EXPECT_EQ(value_of(candidate, "ddp.comm_hook").empty(),
                  value_of(candidate, "parallel.mode") != "ddp");
    }
    // The first two steps would be all of the run, or each micro-batch would be compressed again.
    const std::vector<std::vector<Given>> others = {{{"run.steps", {"2"}}}, {{"train.accumulation", {"2"}}}};
    for (const std::vector<Given>& given : others) {
        EXPECT_THAT(values_of(planned.candidates(given), "ddp.comm_hook"), ElementsAre("", "bf16", "none"))
            << given.front().key;
    }
    EXPECT_THAT(values_of(planned.candidates({{"ddp.comm_hook", {"none", "topk:0.1"}}}), "parallel.mode"),
                ElementsAre("ddp"));
    EXPECT_THAT(values_of(planned.candidates({{"ddp.comm_hook", {"none"}}}), "parallel.mode"),
                ElementsAre("ddp", "fsdp"));
}

TEST(PlannerSpace, AJobsOwnHookIsTheFirst) {
    const Planned planned(
        "[parallel]\nmode = \"ddp\"\n[ddp]\ncomm_hook = \"powersgd:2\"\ncomm_hook_start = 3\n"
        "orthogonalization_epsilon = 1e-6\n",
        on_a_slow_wire());
    const auto all = planned.candidates({});
    EXPECT_EQ(describe(planned.job(all.front().settings)), describe(planned.job({})));
    EXPECT_THAT(values_of(all, "ddp.comm_hook"), ElementsAre("bf16", "none", "powersgd:2", "powersgd:4"));
    for (const Candidate& candidate : all) EXPECT_NO_THROW(planned.job(candidate.settings));
    for (const Candidate& candidate : last_resorts({}, planned.make_job, planned.cluster_of))
        EXPECT_NO_THROW(planned.job(candidate.settings));
}

TEST(PlannerSpace, OneBitOptimizersAndLocalStepsStayWithDdp) {
    const std::vector<Given> onebit = {{"optimizer.type", {"onebit_adam"}}, {"optimizer.freeze_step", {"1"}}};
    for (const std::vector<Given>& given : {onebit, {{"train.local_steps", {"8"}}}}) {
        const Planned planned("[parallel]\nmode = \"ddp\"\n", on_a_slow_wire());
        const auto all = planned.candidates(given);
        EXPECT_EQ(all.size(), 4u);  // 2 checkpointing, with all of the batch and half of it
        for (const Candidate& candidate : all) EXPECT_NO_THROW(planned.job(candidate.settings));
        EXPECT_TRUE(last_resorts(given, planned.make_job, planned.cluster_of).empty());
    }
}

TEST(PlannerSpace, RefusesImpossibleJobs) {
    try {
        Planned("").candidates({{"model.heads", {"3"}}});  // 64 features
        FAIL() << "nothing was thrown";
    } catch (const job::JobError& error) {
        EXPECT_THAT(error.what(), HasSubstr("model.heads"));
    }
    std::vector<std::string> seeds;
    for (int seed = 1; seed <= 50; ++seed) seeds.push_back(std::to_string(seed));
    EXPECT_THROW(Planned("").candidates({{"run.seed", seeds}}), job::JobError);  // 50 x 688 > 20,000
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::planner
