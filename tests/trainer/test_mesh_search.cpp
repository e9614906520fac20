// The search among meshes: what it leaves out cannot win, and it says why the best mesh is the best.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/planner_testing.h"
#include "trainer/planner/mesh_search.h"
#include "trainer/planner/meshes.h"
#include "trainer/planner/reason.h"

namespace shardscope::trainer::planner {
namespace TEST_FILE {

using namespace testing;

using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

class Searched {
  public:
    explicit Searched(double memory) : planned_("", two_a_node(memory)) {
        const std::vector<Given> given = {{"run.ranks", {"8"}},
                                          {"data.batch", {"2"}},
                                          {"train.accumulation", {"4"}},
                                          {"model.context", {"128"}},
                                          {"run.steps", {"3"}},
                                          {"parallel.tensor", {"1", "2"}},
                                          {"parallel.pipeline", {"1", "2"}}};
        all = mesh_candidates(given, planned_.make_job);
    }
    std::vector<Row> every() const { return search(all, planned_.make_job, planned_.cluster_of); }
    std::vector<Row> pruned(int threads) const {
        return search_meshes(all, planned_.make_job, planned_.cluster_of, {.threads = threads});
    }

    std::vector<Candidate> all;

  private:
    const Planned planned_;
};

// With and without a pipeline.
std::map<bool, double> fastest_with_pipeline(const std::vector<Row>& rows) {
    std::map<bool, double> fastest;
    for (const Row& row : rows) {
        if (!row.fits()) continue;
        double& own = fastest[row.job.parallel.pipeline > 1];
        if (own == 0 || row.seconds_per_sample() < own) own = row.seconds_per_sample();
    }
    return fastest;
}

std::vector<int> numbers(const std::vector<const Row*>& rows) {
    std::vector<int> all;
    for (const Row* row : rows) all.push_back(row->number);
    return all;
}

// Beside the best stand the fastest meshes with an axis more or less.
void expect_equal_rivals(const std::vector<Row>& pruned, const std::vector<Row>& every) {
    const std::vector<Rival> found = rivals_of(*best(pruned), pruned),
                             rivals = rivals_of(*best(every), every);
    ASSERT_EQ(found.size(), rivals.size());
    for (std::size_t i = 0; i < rivals.size(); ++i) {
        EXPECT_EQ(found[i].mesh, rivals[i].mesh);
        EXPECT_EQ(found[i].row->seconds_per_sample(), rivals[i].row->seconds_per_sample()) << rivals[i].mesh;
    }
}

TEST(MeshSearch, TriesTheSchedulesOfAPipeline) {
    std::set<std::string> schedules;
    for (const Candidate& candidate : Searched(1e9).all)
        for (const auto& [key, value] : candidate.settings)
            if (key == "parallel.schedule") schedules.insert(value);
    EXPECT_THAT(schedules,
                IsSupersetOf({"1f1b", "interleaved", "zb_h1", "interleaved_zb", "zb_v", "dualpipe_v"}));
    EXPECT_FALSE(schedules.contains("gpipe"));
}

// With room for everything, and with room for a part of the rows.
TEST(MeshSearch, TriesSizesBesideWhichTheJobsOwnOthersCannotBe) {
    const Planned planned("", two_a_node(1e9));
    const JobMaker make_job = [&](const std::vector<job::Override>& settings) {
        std::vector<job::Override> all = {{"run.ranks", "4"},
                                          {"model.context", "256"},
                                          {"parallel.tensor", "2"},
                                          {"parallel.pipeline", "2"},
                                          {"parallel.stages", "cost"}};
        all.insert(all.end(), settings.begin(), settings.end());
        return planned.make_job(all);
    };
    std::set<std::tuple<int, int, int>> sizes;
    bool shards_over_context = false;
    for (const Candidate& candidate : mesh_candidates({{"parallel.context", {"1", "2", "4"}}}, make_job)) {
        const job::Job job = make_job(candidate.settings);
        sizes.insert({job.parallel.tensor, job.parallel.context, job.parallel.pipeline});
        shards_over_context = shards_over_context ||
                              (job.parallel.context == 4 && job.parallel.mode == job::ParallelMode::fsdp);
    }
    using Sizes = std::tuple<int, int, int>;
    EXPECT_THAT(sizes, IsSupersetOf({Sizes(2, 1, 2), Sizes(4, 1, 1), Sizes(1, 4, 1), Sizes(2, 2, 1)}));
    EXPECT_TRUE(shards_over_context);
}

class MeshSearchWithMemory : public ::testing::TestWithParam<double> {};

TEST_P(MeshSearchWithMemory, LeavesOutOnlyWhatCannotWin) {
    const Searched searched(GetParam());
    const std::vector<Row> every = searched.every(), pruned = searched.pruned(1);
    ASSERT_EQ(every.size(), pruned.size());
    std::int64_t excluded = 0;
    for (std::size_t i = 0; i < every.size(); ++i) {
        if (pruned[i].outcome == Outcome::excluded) {
            ++excluded;
            EXPECT_FALSE(pruned[i].reason.empty());
        } else {
            EXPECT_EQ(pruned[i].outcome, every[i].outcome) << i;
        }
        if (!every[i].can_be()) continue;
        EXPECT_GT(pruned[i].least_step, 0) << i;
        EXPECT_LE(pruned[i].least_bytes, every[i].peak.bytes) << i;
        EXPECT_GT(pruned[i].least_bytes, every[i].peak.bytes / 5) << i;
        if (!every[i].fits()) continue;
        EXPECT_LE(pruned[i].least_step, every[i].times.step) << i;
    }
    EXPECT_GT(excluded, std::ssize(every) / 10);
    EXPECT_EQ(best(pruned)->number, best(every)->number);
    EXPECT_EQ(fastest(pruned)->number, fastest(every)->number);
    EXPECT_EQ(numbers(ties(pruned)), numbers(ties(every)));
    EXPECT_EQ(fastest_with_pipeline(pruned), fastest_with_pipeline(every));
    expect_equal_rivals(pruned, every);
}
INSTANTIATE_TEST_SUITE_P(Sizes, MeshSearchWithMemory, ::testing::Values(1e9, 1.2e7));

// With heads of keys and values that ranks share, with the experts of a model divided among ranks, and with
// the tokens of its samples.
class MeshSearchOver : public ::testing::TestWithParam<std::vector<Given>> {};

TEST_P(MeshSearchOver, LeavesOutOnlyMeshesThatCannotWin) {
    std::vector<Given> given = {{"run.ranks", {"4"}},
                                {"run.steps", {"3"}},
                                {"parallel.schedule", {"1f1b", "zb_h1"}},
                                {"memory.activation_checkpointing", {"none"}}};
    given.insert(given.end(), GetParam().begin(), GetParam().end());
    const Planned planned("", two_a_node(1e9));
    const std::vector<Candidate> all = mesh_candidates(given, planned.make_job);
    const std::vector<Row> every = search(all, planned.make_job, planned.cluster_of),
                           pruned = search_meshes(all, planned.make_job, planned.cluster_of);
    std::set<KindOfMesh> kinds;
    std::int64_t excluded = 0;
    for (std::size_t i = 0; i < every.size(); ++i) {
        if (!every[i].fits()) continue;
        kinds.insert(kind_of(every[i].job));
        excluded += pruned[i].outcome == Outcome::excluded ? 1 : 0;
        EXPECT_GT(pruned[i].least_bytes, 0) << i;
        EXPECT_LE(pruned[i].least_bytes, every[i].peak.bytes) << i;
        EXPECT_GT(pruned[i].least_step, 0) << i;
        EXPECT_LE(pruned[i].least_step, every[i].times.step) << i;
    }
    EXPECT_GE(kinds.size(), 3U);
    EXPECT_GT(excluded, 0);
    EXPECT_EQ(best(pruned)->number, best(every)->number);
    EXPECT_EQ(numbers(ties(pruned)), numbers(ties(every)));
    expect_equal_rivals(pruned, every);
}

INSTANTIATE_TEST_SUITE_P(
    Axes, MeshSearchOver,
    ::testing::Values(
        std::vector<Given>{{"model.type", {"llama"}}, {"model.kv_heads", {"1"}}, {"model.context", {"128"}}},
        std::vector<Given>{{"model.experts", {"2"}}, {"parallel.tensor", {"1"}}},
        std::vector<Given>{{"model.context", {"512"}},
                           {"parallel.tensor", {"1", "2"}},
                           {"parallel.context", {"1", "2", "4"}},
                           {"parallel.context_exchange", {"allgather", "ring"}}},
        std::vector<Given>{{"model.context", {"512"}},
                           {"model.experts", {"4"}},
                           {"parallel.tensor", {"1"}},
                           {"parallel.mode", {"fsdp"}},
                           {"parallel.context", {"1", "2"}}}));

// A link between nodes that hardly carries anything: context groups, whose ranks share a node, pass on less
// than what gathers of parameters across the nodes take, and the reasons say what they do.
TEST(MeshSearch, ComparesMeshesWithAndWithoutContextGroups) {
    const Planned planned("", two_a_node(1e9));
    const std::vector<Candidate> all = mesh_candidates({{"run.ranks", {"4"}},
                                                        {"run.steps", {"3"}},
                                                        {"model.context", {"256"}},
                                                        {"parallel.context", {"1", "2"}},
                                                        {"parallel.pipeline", {"1"}}},
                                                       planned.make_job);
    const std::vector<Row> rows = search_meshes(all, planned.make_job, planned.cluster_of);
    const Row* winner = best(rows);
    ASSERT_NE(winner, nullptr);
    const bool context = winner->job.parallel.context > 1;
    const std::vector<Rival> rivals = rivals_of(*winner, rows);
    const auto other = std::find_if(rivals.begin(), rivals.end(), [&](const Rival& rival) {
        return rival.mesh == (context ? "without context groups" : "with context groups");
    });
    ASSERT_NE(other, rivals.end());
    EXPECT_NE(other->row->job.parallel.context > 1, context);
    const Row& divided = context ? *winner : *other->row;
    EXPECT_THAT(placement_text(divided.axes), HasSubstr("context 2 in a node"));
    EXPECT_THAT(parts_text(divided), HasSubstr("exposed in context 2 in a node"));
}

TEST(MeshSearch, LeavesOutTheSameRowsOnSeveralThreads) {
    const Searched searched(1e9);
    const std::vector<Row> one = searched.pruned(1), three = searched.pruned(3);
    ASSERT_EQ(one.size(), three.size());
    for (std::size_t i = 0; i < one.size(); ++i) {
        EXPECT_EQ(one[i].outcome, three[i].outcome) << i;
        EXPECT_EQ(one[i].times.step, three[i].times.step) << i;
    }
}

// Stages of unequal numbers of layers, and a schedule that is in no table, have no bound.
TEST(MeshSearch, SimulatesWhatItHasNoBoundFor) {
    for (const std::string schedule : {"1f1b", "a.csv", "a typing error"}) {
        const bool known = schedule == "1f1b";
        const Planned planned("[parallel]\npipeline = 2\nstages = \"cost\"\n[train]\naccumulation = 2\n",
                              two_a_node(1e9));
        const std::vector<Given> given = {{"run.ranks", {"4"}},
                                          {"parallel.tensor", {"1"}},
                                          {"parallel.pipeline", {"2"}},
                                          {"parallel.schedule", {schedule}},
                                          {"parallel.mode", {"fsdp"}}};
        const std::vector<Candidate> all = mesh_candidates(given, planned.make_job);
        ASSERT_FALSE(all.empty());
        for (const Row& row : search_meshes(all, planned.make_job, planned.cluster_of)) {
            EXPECT_EQ(row.least_step, 0);
            EXPECT_EQ(row.can_be(), known) << row.reason;
            if (!row.can_be()) {
                EXPECT_THAT(row.reason, HasSubstr("parallel.schedule"));
            }
        }
    }
}

TEST(MeshSearch, SaysWhereTheTimeOfOtherMeshesGoes) {
    const std::vector<Row> rows = Searched(1e9).pruned(2);
    const Row* winner = best(rows);
    ASSERT_NE(winner, nullptr);
    double parts = winner->mean_kernel_s;
    for (const MeshAxis& axis : winner->axes) parts += axis.exposed_s;
    EXPECT_GT(winner->mean_kernel_s, 0);
    EXPECT_LE(parts, winner->mean_step_s * (1 + 1e-9));
    EXPECT_THAT(parts_text(*winner), HasSubstr("kernels"));
    const std::vector<Rival> rivals = rivals_of(*winner, rows);
    ASSERT_GE(rivals.size(), 2U);
    for (const Rival& rival : rivals) {
        const bool tensor = rival.row->job.parallel.tensor > 1,
                   pipeline = rival.row->job.parallel.pipeline > 1;
        if (rival.mesh.find("tensor") != std::string::npos) {
            EXPECT_NE(tensor, winner->job.parallel.tensor > 1) << rival.mesh;
        }
        if (rival.mesh.find("pipeline") != std::string::npos) {
            EXPECT_NE(pipeline, winner->job.parallel.pipeline > 1) << rival.mesh;
        }
        EXPECT_THAT(rival.loses, HasSubstr("slower")) << rival.mesh;
    }
}

TEST(MeshSearch, SaysWhichMeshesDoNotFit) {
    const std::vector<Row> rows = Searched(1e6).pruned(1);
    EXPECT_EQ(best(rows), nullptr);
    int excluded = 0;
    for (const Row& row : rows) {
        if (row.outcome != Outcome::excluded) continue;
        ++excluded;
        EXPECT_THAT(row.reason, HasSubstr("do not fit"));
    }
    EXPECT_GT(excluded, 0);
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::planner
