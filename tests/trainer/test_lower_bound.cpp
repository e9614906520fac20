// The lower bounds of meshes: no simulated step takes less time, no rank less memory, and they are not far
// below.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/trainer/planner_testing.h"
#include "trainer/planner/lower_bound.h"
#include "trainer/planner/search.h"

namespace shardscope::trainer::planner {
namespace TEST_FILE {

using namespace testing;

using Settings = std::vector<job::Override>;

Settings operator+(Settings settings, const Settings& more) {
    settings.insert(settings.end(), more.begin(), more.end());
    return settings;
}

struct Axes {
    std::string name;
    Settings settings;
};

const std::vector<Axes> kMeshes = {
    {"data", {}},
    {"tensor", {{"parallel.tensor", "2"}, {"parallel.sequence", "true"}}},
    {"context", {{"parallel.context", "2"}}},
    {"ContextOverNodes", {{"parallel.context", "4"}}},
    {"ring", {{"parallel.context", "2"}, {"parallel.context_exchange", "ring"}}},
    {"RingOverNodes", {{"parallel.context", "4"}, {"parallel.context_exchange", "ring"}}},
    {"TensorContext", {{"parallel.tensor", "2"}, {"parallel.context", "2"}}},
    {"experts", {{"model.experts", "4"}, {"model.experts_per_token", "2"}, {"parallel.expert", "2"}}},
    {"ExpertsOverNodes", {{"model.experts", "4"}, {"parallel.expert", "4"}, {"model.balance_loss", "0.1"}}},
    {"ExpertsOfContext", {{"model.experts", "4"}, {"parallel.context", "2"}, {"parallel.expert", "4"}}},
};

const std::vector<Axes> kSchedules = {
    {"NoPipeline", {}},
    {"f1b1", {{"parallel.pipeline", "2"}}},
    {"ZbH1", {{"parallel.pipeline", "2"}, {"parallel.schedule", "zb_h1"}}},
    {"ZbV", {{"parallel.pipeline", "2"}, {"parallel.schedule", "zb_v"}, {"parallel.virtual_stages", "2"}}},
    {"DualpipeV",
     {{"parallel.pipeline", "2"}, {"parallel.schedule", "dualpipe_v"}, {"parallel.virtual_stages", "2"}}},
    {"interleaved",
     {{"parallel.pipeline", "2"}, {"parallel.schedule", "interleaved"}, {"parallel.virtual_stages", "2"}}},
};

const std::vector<Axes> kStrategies = {
    {"fsdp2", {{"precision.param", "bf16"}, {"precision.reduce", "fp32"}}},
    {"fsdp1", {{"fsdp.layout", "fsdp1"}}},
    {"kept", {{"fsdp.sharding_strategy", "SHARD_GRAD_OP"}}},
    {"recomputed", {{"memory.activation_checkpointing", "module:Block"}}},
    {"ddp", {{"parallel.mode", "ddp"}}},
};

Settings job_of(const Axes& mesh, const Axes& schedule, const Axes& strategy) {
    Settings settings = {{"run.ranks", "8"},       {"run.steps", "3"},           {"model.context", "256"},
                         {"data.batch", "2"},      {"train.accumulation", "4"},  {"parallel.mode", "fsdp"},
                         {"fsdp.layout", "fsdp2"}, {"fsdp.wrap", "module:Block"}};
    if (strategy.name == "ddp")  // keys of FSDP would be refused
        settings.resize(5);
    return settings + mesh.settings + schedule.settings + strategy.settings;
}

class LowerBoundOf : public ::testing::TestWithParam<Axes> {};

TEST_P(LowerBoundOf, IsBelowWhatIsSimulated) {
    const Planned planned("", two_a_node(1e9));
    for (const Axes& schedule : kSchedules) {
        for (const Axes& strategy : kStrategies) {
            SCOPED_TRACE(schedule.name + ", " + strategy.name);
            const Settings settings = job_of(GetParam(), schedule, strategy);
            const Row simulated = evaluate({settings, ""}, 1, planned.make_job, planned.cluster_of);
            ASSERT_TRUE(simulated.fits()) << simulated.reason;
            Row row;
            row.settings = settings;
            row.job = planned.job(settings);
            const LowerBound least = LowerBounds().of(row, planned.cluster());
            EXPECT_LE(least.bytes, simulated.peak.bytes);
            EXPECT_GT(least.bytes, simulated.peak.bytes / 5);
            EXPECT_LE(least.seconds, simulated.times.step * (1 + 1e-9));
            EXPECT_GT(least.seconds, 0.3 * simulated.times.step);
        }
    }
}

// The kernels of two ranks on a device take up to twice as long, so that the bound may be half as tight.
TEST_P(LowerBoundOf, IsBelowWhatIsSimulatedOnSharedDevices) {
    sim::Cluster cluster = two_a_node(1e9);
    cluster.ranks_per_device = 2;
    const Planned planned("", cluster);
    for (const Axes& schedule : kSchedules) {
        SCOPED_TRACE(schedule.name);
        Row row;
        row.settings = job_of(GetParam(), schedule, kStrategies.front());
        row.job = planned.job(row.settings);
        const Row simulated = evaluate({row.settings, ""}, 1, planned.make_job, planned.cluster_of);
        ASSERT_TRUE(simulated.fits()) << simulated.reason;
        const double least = LowerBounds().of(row, cluster).seconds;
        EXPECT_LE(least, simulated.times.step * (1 + 1e-9));
        EXPECT_GT(least, 0.15 * simulated.times.step);
    }
}

INSTANTIATE_TEST_SUITE_P(Meshes, LowerBoundOf, ::testing::ValuesIn(kMeshes),
                         [](const auto& tested) { return tested.param.name; });

// A slower link makes the collectives of a layer, or the ring beside its kernels, longer than anything else.
TEST(LowerBound, FollowsTheSlowestLinkOfAGroup) {
    for (const Axes& mesh : kMeshes) {
        if (mesh.name.find("OverNodes") == std::string::npos) continue;
        SCOPED_TRACE(mesh.name);
        const Settings settings = job_of(mesh, kSchedules.front(), kStrategies.front());
        const auto seconds_at = [&](double bandwidth) {
            sim::Cluster cluster = two_a_node(1e9);
            cluster.inter.bandwidth = bandwidth;
            const Planned planned("", cluster);
            Row row;
            row.settings = settings;
            row.job = planned.job(settings);
            const Row simulated = evaluate({settings, ""}, 1, planned.make_job, planned.cluster_of);
            const double least = LowerBounds().of(row, cluster).seconds;
            EXPECT_LE(least, simulated.times.step * (1 + 1e-9));
            return least;
        };
        const double fast = seconds_at(1e12), slow = seconds_at(1e5), slower = seconds_at(1e4);
        EXPECT_GT(slow, 2 * fast);
        EXPECT_GT(slower, 8 * slow);
    }
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::planner
