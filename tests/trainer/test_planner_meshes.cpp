// The meshes that a planner tries, and how their groups lie on the nodes.
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/planner_testing.h"
#include "trainer/planner/meshes.h"

namespace shardscope::trainer::planner {
namespace TEST_FILE {

using namespace testing;

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// On `ranks` ranks, a micro-batch of eight samples on each; a model with 4 heads.
class Meshed {
  public:
    explicit Meshed(int ranks, sim::Cluster cluster = round_cluster())
        : planned_("[memory]\nactivation_checkpointing = \"none\"\n", std::move(cluster)),
          common_{{"run.ranks", {std::to_string(ranks)}}} {}

    std::vector<Candidate> candidates(std::vector<Given> given = {}) const {
        given.insert(given.end(), common_.begin(), common_.end());
        return mesh_candidates(given, planned_.make_job);
    }
    std::vector<job::Job> jobs(const std::vector<Given>& given = {}) const {
        std::vector<job::Job> all;
        for (const Candidate& candidate : candidates(given)) all.push_back(planned_.job(candidate.settings));
        return all;
    }
    std::vector<Row> search(const std::vector<Given>& given = {}) const {
        return planner::search(candidates(given), planned_.make_job, planned_.cluster_of);
    }

  private:
    const Planned planned_;
    const std::vector<Given> common_;
};

TEST(PlannerMeshes, DivideTheRanksInEveryWayForTheSameSamples) {
    const std::vector<job::Job> jobs = Meshed(8).jobs();
    std::set<int> tensor, pipeline;
    std::set<std::pair<int, int>> of_shards;  // tensor group, shard group
    for (const job::Job& job : jobs) {
        EXPECT_EQ(job.data.batch * job.train.accumulation * job.data_ranks(), 2 * 8);
        EXPECT_EQ(job.parallel.sequence, job.parallel.tensor > 1);
        tensor.insert(job.parallel.tensor);
        pipeline.insert(job.parallel.pipeline);
        EXPECT_GE(job.train.accumulation, job.parallel.pipeline);
        if (job.fsdp.shard_group > 0) of_shards.insert({job.parallel.tensor, job.fsdp.shard_group});
    }
    EXPECT_THAT(tensor, ElementsAre(1, 2, 4));    // not 8, as there are 4 heads
    EXPECT_THAT(pipeline, ElementsAre(1, 2, 4));  // not 8, as there are 4 layers
    EXPECT_THAT(of_shards, ElementsAre(std::pair(1, 2), std::pair(1, 4), std::pair(2, 2)));
    EXPECT_EQ(jobs.front().parallel.tensor, 1);  // the job's own
}

// Ranks have whole heads of keys and values, or share one.
TEST(PlannerMeshes, ShareHeadsOfKeysAndValues) {
    const auto sizes_for = [](const char* kv_heads) {
        std::set<int> tensor;
        for (const job::Job& job : Meshed(12).jobs({{"model.type", {"llama"}},
                                                    {"model.width", {"144"}},
                                                    {"model.heads", {"12"}},
                                                    {"model.kv_heads", {kv_heads}},
                                                    {"data.batch", {"12"}},
                                                    {"parallel.tensor", {"1", "2", "3", "4", "6", "12"}},
                                                    {"parallel.pipeline", {"1"}}}))
            tensor.insert(job.parallel.tensor);
        return tensor;
    };
    EXPECT_THAT(sizes_for("1"), ElementsAre(1, 2, 3, 4, 6, 12));
    EXPECT_THAT(sizes_for("2"), ElementsAre(1, 2, 4, 6, 12));
    EXPECT_THAT(sizes_for("4"), ElementsAre(1, 2, 4, 12));
}

// Expert groups lie within the ranks that read different samples, or within a shard group of them.
TEST(PlannerMeshes, DivideTheExpertsOfAModel) {
    std::set<int> sizes;
    for (const job::Job& job : Meshed(8).jobs({{"model.experts", {"4"}}, {"parallel.pipeline", {"1"}}})) {
        sizes.insert(job.parallel.expert);
        EXPECT_EQ(job.data_ranks() % job.parallel.expert, 0);
        EXPECT_EQ(job.fsdp.shard_group % job.parallel.expert, 0);
    }
    EXPECT_THAT(sizes, ElementsAre(1, 2, 4));
    const plan::Mesh mesh{.ranks = 16, .shard = 8, .expert = 4};
    EXPECT_EQ(placement_text(mesh_axes(mesh, round_cluster(8))),
              "expert 4 in a node, shard 8 in a node, data 2 over 2 nodes");
}

// Context groups leave each rank 4,096 tokens of a sample.
TEST(PlannerMeshes, DivideTheTokensOfLongSamples) {
    const auto sizes_for = [](const std::string& tokens, const std::vector<Given>& more = {}) {
        std::vector<Given> given = {{"model.context", {tokens}}, {"parallel.pipeline", {"1"}}};
        given.insert(given.end(), more.begin(), more.end());
        std::set<std::pair<int, job::ContextExchange>> sizes;
        for (const job::Job& job : Meshed(8).jobs(given)) {
            EXPECT_EQ(job.run.ranks % (job.parallel.context * job.parallel.tensor), 0);
            EXPECT_EQ(job.data.batch * job.train.accumulation * job.data_ranks(), 2 * 8);
            sizes.insert({job.parallel.context, job.parallel.context_exchange});
        }
        return sizes;
    };
    constexpr auto kGathered = job::ContextExchange::allgather, kRing = job::ContextExchange::ring;
    EXPECT_THAT(sizes_for("4096"), ElementsAre(std::pair(1, kGathered)));
    EXPECT_THAT(sizes_for("16384"),
                ElementsAre(std::pair(1, kGathered), std::pair(2, kGathered), std::pair(4, kGathered)));
    EXPECT_THAT(sizes_for("32", {{"parallel.context", {"1", "2"}}}),
                ElementsAre(std::pair(1, kGathered), std::pair(2, kGathered)));
    EXPECT_THAT(sizes_for("8192", {{"parallel.context_exchange", {"ring", "allgather"}}}),
                ElementsAre(std::pair(1, kGathered), std::pair(2, kGathered), std::pair(2, kRing)));
    EXPECT_THAT(sizes_for("32", {{"parallel.context", {"4"}}, {"parallel.context_exchange", {"ring"}}}),
                ElementsAre(std::pair(4, kRing)));
    for (const auto& [size, why] :
         {std::pair("3", "context groups of 3"), std::pair("none", "not an integer")}) {
        try {
            Meshed(8).candidates({{"parallel.context", {size}}});
            FAIL() << "accepted " << size;
        } catch (const job::JobError& error) {
            EXPECT_THAT(error.what(), AllOf(HasSubstr("parallel.context"), HasSubstr(why)));
        }
    }
}

// The ranks of an expert group have other tokens: of other samples or of the same.
TEST(PlannerMeshes, DivideTheExpertsAmongContextGroups) {
    std::set<int> sizes;
    for (const job::Job& job : Meshed(8).jobs({{"model.experts", {"8"}},
                                               {"parallel.context", {"2"}},
                                               {"parallel.tensor", {"2"}},
                                               {"parallel.pipeline", {"1"}},
                                               {"parallel.mode", {"ddp"}}}))
        sizes.insert(job.parallel.expert);
    EXPECT_THAT(sizes, ElementsAre(1, 2, 4));
    const plan::Mesh mesh{.ranks = 16, .shard = 8, .tensor = 2, .expert = 2, .context = 4};
    EXPECT_EQ(placement_text(mesh_axes(mesh, round_cluster(8))),
              "tensor 2 in a node, context 4 in a node, expert 2 in a node, shard 8 over 2 nodes");
}

TEST(PlannerMeshes, KeepWhatTheCommandLineGives) {
    const std::vector<job::Job> given = Meshed(8).jobs(
        {{"parallel.tensor", {"2"}}, {"parallel.sequence", {"false"}}, {"fsdp.shard_group", {"2"}}});
    ASSERT_FALSE(given.empty());
    for (const job::Job& job : given) {
        EXPECT_EQ(job.parallel.tensor, 2);
        EXPECT_FALSE(job.parallel.sequence);
        EXPECT_EQ(job.fsdp.shard_group, 2);
    }
    EXPECT_EQ(Meshed(8).jobs({{"data.batch", {"1"}}}).front().data.batch, 1);
    const std::vector<job::Job> copies = Meshed(8).jobs({{"fsdp.sharding_strategy", {"NO_SHARD"}}});
    ASSERT_FALSE(copies.empty());
    for (const job::Job& job : copies) EXPECT_EQ(job.fsdp.sharding_strategy, job::ShardingStrategy::no_shard);
    // With a pipeline too, one group of each size: its schedule says when units are freed.
    const std::vector<job::Job> staged =
        Meshed(8).jobs({{"parallel.pipeline", {"2"}}, {"parallel.mode", {"fsdp"}}});
    ASSERT_FALSE(staged.empty());
    for (const job::Job& job : staged)
        EXPECT_NE(job.fsdp.sharding_strategy, job::ShardingStrategy::shard_grad_op);
    // Where a backward is split, recomputation is tried if it is given.
    EXPECT_FALSE(Meshed(8)
                     .jobs({{"parallel.pipeline", {"2"}},
                            {"parallel.schedule", {"zb_h1"}},
                            {"memory.activation_checkpointing", {"module:Block"}}})
                     .empty());
    EXPECT_THROW(Meshed(8).candidates({{"parallel.mode", {"ddp"}}, {"fsdp.shard_group", {"2"}}}),
                 job::JobError);
    try {
        Meshed(8).candidates({{"parallel.tensor", {"3"}}});
        FAIL() << "accepted";
    } catch (const job::JobError& error) {
        EXPECT_THAT(error.what(), HasSubstr("parallel.tensor"));
    }
}

std::string placement_of(const plan::Mesh& mesh, const sim::Cluster& cluster) {
    return placement_text(mesh_axes(mesh, cluster));
}

TEST(PlannerMeshes, LieOnTheNodesFromTheInsideOut) {
    const plan::Mesh mesh{.ranks = 32, .shard = 4, .tensor = 4};
    EXPECT_EQ(placement_of(mesh, round_cluster(8)),
              "tensor 4 in a node, shard 4 over 2 nodes, data 2 over 2 nodes");
    EXPECT_EQ(placement_of(mesh, round_cluster(32)),
              "tensor 4 in a node, shard 4 in a node, data 2 in a node");
    EXPECT_EQ(placement_of(mesh, round_cluster(2)),
              "tensor 4 over 2 nodes, shard 4 over 4 nodes, data 2 over 2 nodes");
    // The group of ranks 3 to 5 has one on each of two nodes, the first has not.
    EXPECT_EQ(placement_of(plan::Mesh{.ranks = 6, .shard = 1, .tensor = 3}, round_cluster(4)),
              "tensor 3 over 2 nodes, data 2 over 2 nodes");
    EXPECT_EQ(placement_of(plan::Mesh{}, round_cluster(8)), "");
}

// Two nodes of two devices with a slow link between them: a tensor group that spans them is the slowest,
// since each layer waits for its collectives, and a rank's memory is the smallest.
TEST(PlannerMeshes, TensorGroupsBelongInsideANode) {
    sim::Cluster cluster = round_cluster(2);
    cluster.intra.bandwidth = 1e12;
    cluster.inter.bandwidth = 1e9;
    const std::vector<Row> rows = Meshed(4, cluster)
                                      .search({{"memory.activation_checkpointing", {"none"}},
                                               {"parallel.mode", {"ddp"}},
                                               {"parallel.pipeline", {"1"}},
                                               {"model.context", {"256"}}});
    std::map<int, const Row*> best;
    for (const Row& row : rows) {
        ASSERT_TRUE(row.fits()) << row.reason;
        const Row*& own = best[row.job.parallel.tensor];
        if (!own || before(&row, own)) own = &row;
    }
    ASSERT_EQ(best.size(), 3U);
    EXPECT_EQ(placement_text(best[2]->axes), "tensor 2 in a node, data 2 over 2 nodes");
    EXPECT_EQ(placement_text(best[4]->axes), "tensor 4 over 2 nodes");
    EXPECT_LT(best[2]->times.step, best[4]->times.step);
    EXPECT_LT(best[2]->times.step, best[1]->times.step);
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::planner
