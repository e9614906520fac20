// Jobs whose ranks compute on processors, with collectives by Gloo: as PyTorch's profiler records them,
// lifted and replayed.
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gloo_trace.h"
#include "tests/traces/temporary_folder.h"
#include "traces/import/open.h"
#include "trainer/lift/counterfactuals.h"
#include "trainer/lift/host_trace.h"
#include "trainer/sim/collective_cost.h"

namespace shardscope::trainer::lift {
namespace TEST_FILE {

using ::testing::Contains;
using testing::GlooTrace;
using ::testing::HasSubstr;

constexpr std::int64_t kWidth = 512, kBlocks = 4, kBatch = 64;
constexpr std::int64_t kParameters = kWidth * kWidth + kWidth;                    // elements of a block
constexpr double kForward = 2000, kBackward = 4000, kGather = 1000, kSum = 1500;  // us

void forward_of(GlooTrace& trace, int block) {
    trace.module("Linear_" + std::to_string(block), [&] {
        trace.operation("aten::linear", {{kBatch, kWidth}, {kWidth, kWidth}, {kWidth}}, kForward, block + 1);
    });
}

void gather(GlooTrace& trace, int block) {
    trace.range("FSDP::all_gather (blocks." + std::to_string(block) + ")", [&] {
        trace.collective("_allgather_base_", "all_gather", kParameters / 2, kParameters, kGather, true);
    });
}

// Blocks of a Linear, each a unit of fully_shard, under a root without parameters; or under DDP, with two
// buckets. `sum`: how long one of DDP's takes, in us.
void train(GlooTrace& trace, bool fsdp, int steps, double sum = 2 * kSum) {
    for (int step = 0; step < steps; ++step) {
        trace.range("ProfilerStep#" + std::to_string(step), [&] {
            const std::string name = fsdp ? "FSDPBlock_" : "Block_";
            const auto net = [&] {
                for (int block = 0; block < kBlocks; ++block) {
                    trace.module(name + std::to_string(block), [&] {
                        if (fsdp) gather(trace, block);
                        forward_of(trace, block);
                    });
                }
            };
            if (fsdp) {
                trace.module("FSDPNet_0", net);
            } else {
                trace.module("DistributedDataParallel_0", [&] { trace.module("Net_0", net); });
            }
            for (int block = kBlocks - 1; block >= 0; --block) {
                if (fsdp) gather(trace, block);
                trace.node("AddmmBackward0", block + 1, [&] {
                    trace.operation("aten::mm", {{kBatch, kWidth}, {kWidth, kWidth}}, kBackward);
                    if (!fsdp && block % 2 == 0)
                        trace.collective("allreduce_", "all_reduce", 2 * kParameters, 2 * kParameters, sum,
                                         false);
                });
                if (fsdp) {
                    trace.range("FSDP::post_backward_reduce (blocks." + std::to_string(block) + ")", [&] {
                        trace.collective("_reduce_scatter_base_", "all_reduce", kParameters / 2, kParameters,
                                         kSum, true);
                    });
                }
            }
            trace.wait();
            trace.range("Optimizer.step#SGD.step", [&] {
                trace.operation("aten::add_", {{kWidth, kWidth}, {kWidth, kWidth}}, 500);
            });
        });
    }
}

Lifted lifted(bool fsdp, const std::vector<double>& slow = {1}) {
    const traces::TemporaryFolder folder;
    const std::string job = folder / "job";
    std::filesystem::create_directory(job);
    for (int rank = 0; rank < 2; ++rank) {
        GlooTrace trace(rank, rank == 0 ? std::vector<double>{1} : slow);
        train(trace, fsdp, 6);
        trace.write(job);
    }
    return lift(*traces::importer::open_any({job}));
}

std::string value_of(const Lifted& own, const std::string& key) {
    for (const job::Override& setting : own.settings)
        if (setting.key == key) return setting.value;
    return "";
}

TEST(LiftedHosts, FullyShardOnGlooIsLiftedAndReplayed) {
    const Lifted own = lifted(true);
    EXPECT_TRUE(own.hosts);
    EXPECT_TRUE(own.blocking);
    EXPECT_EQ(value_of(own, "parallel.mode"), "fsdp");
    EXPECT_EQ(value_of(own, "fsdp.sharding_strategy"), "FULL_SHARD");
    EXPECT_EQ(value_of(own, "data.batch"), std::to_string(kBatch));
    EXPECT_EQ(own.wrap, "module:Block");
    EXPECT_EQ(own.step.elements(), kBlocks * kParameters);
    const Replay unmodified = replay_unmodified(own);
    ASSERT_TRUE(unmodified.can_be()) << unmodified.impossible;
    // The trace has none of FSDP's copies, which take the assumed bandwidth in the replay.
    EXPECT_NEAR(unmodified.step_s, own.step_s, 0.06 * own.step_s);
    // Nothing runs beside a collective that stops the host.
    EXPECT_NEAR(unmodified.exposed_s, 1e-6 * kBlocks * (2 * kGather + kSum), 6e-4);
}

TEST(LiftedHosts, ReductionsOfDdpRunBesideTheBackwardAndThoseOfFsdpDoNot) {
    const Lifted own = lifted(false);
    EXPECT_EQ(value_of(own, "parallel.mode"), "ddp");
    const Replay unmodified = replay_unmodified(own);
    ASSERT_TRUE(unmodified.can_be()) << unmodified.impossible;
    EXPECT_NEAR(unmodified.step_s, own.step_s, 0.05 * own.step_s);
    // The last of two buckets is waited for, the first is not.
    EXPECT_NEAR(unmodified.exposed_s, 2e-6 * kSum, 1e-4);
    const Replay fsdp =
        replay(own, own.cluster,
               {{"parallel.mode", "fsdp"}, {"fsdp.layout", "fsdp2"}, {"fsdp.wrap", "module:Block"}}, 1);
    ASSERT_TRUE(fsdp.can_be()) << fsdp.impossible;
    EXPECT_GT(fsdp.step_s, unmodified.step_s + 1e-6 * 2 * kSum);
}

TEST(LiftedHosts, AReduceScatterTakesAsLongAsTheSumOfTheWholeBuffer) {
    const Lifted own = lifted(true);
    const auto cost = [&](traces::schema::Operation operation) {
        return sim::collective_seconds(own.cluster, {2, 1, 2}, operation, 4 * kParameters);
    };
    EXPECT_NEAR(cost(traces::schema::Operation::reduce_scatter), cost(traces::schema::Operation::all_reduce),
                1e-9);
}

// Rank 1 is slow in every second operator: where both meet once per step, it has made up for none of it;
// where they meet after each operator, each slow one of either rank costs.
TEST(LiftedHosts, RanksThatMeetMoreOftenWaitMore) {
    const Lifted own = lifted(true, {1.2, 0.8});
    ASSERT_TRUE(own.skew.known());
    EXPECT_NEAR(own.skew.waiting({1.0}), 0, 0.02);
    std::vector<double> often;
    for (int i = 1; i <= 24; ++i) often.push_back(i / 24.0);
    EXPECT_GT(own.skew.waiting(often), 0.05);
    const Replay unmodified = replay_unmodified(own);
    const Replay root = replay(own, own.cluster, {{"fsdp.wrap", "root"}}, 1);
    ASSERT_TRUE(root.can_be()) << root.impossible;
    EXPECT_LT(root.step_s, unmodified.step_s);
}

TEST(LiftedHosts, BatchRanksAccumulationAndCheckpointingCanBeChanged) {
    const Lifted own = lifted(true);
    const double step = replay_unmodified(own).step_s;
    const double forward = 1e-6 * kBlocks * kForward, backward = 1e-6 * kBlocks * kBackward;
    const auto of = [&](const char* key, const char* value) {
        Question question;
        question.given = {
            {key, {value}}, {"fsdp.wrap", {"module:Block"}}, {"fsdp.sharding_strategy", {"FULL_SHARD"}}};
        const Replay row = replay(own, own.cluster, changes_to_try(own, question).back(), 1);
        EXPECT_TRUE(row.can_be()) << row.impossible;
        return row.step_s;
    };
    EXPECT_NEAR(of("data.batch", "128"), step + forward + backward, 0.05 * step);
    EXPECT_NEAR(of("memory.activation_checkpointing", "module:Block"), step + forward, 0.05 * step);
    EXPECT_GT(of("train.accumulation", "2"), step + forward + backward);
    EXPECT_LT(of("run.ranks", "1"), step - 1e-6 * kBlocks * kSum);
    Question question;
    question.given = {{"precision.param", {"bf16"}}};
    try {
        changes_to_try(own, question);
        FAIL() << "the precision is what was recorded";
    } catch (const job::JobError& error) {
        EXPECT_THAT(error.what(), HasSubstr("data.batch"));
    }
}

// The cores carry out the transfers of all buckets but the last beside the backward.
TEST(LiftedHosts, SmallerBucketsOfDdpSlowTheBackwardInsteadOfBeingFree) {
    const Lifted own = lifted(false);
    const Replay two = replay_unmodified(own);
    const Replay four =
        replay(own, own.cluster, {{"ddp.bucket_cap_mb", "1"}, {"ddp.first_bucket_mb", "1"}}, 1);
    ASSERT_TRUE(four.can_be()) << four.impossible;
    EXPECT_GT(four.units, two.units);
    EXPECT_LT(four.exposed_s, two.exposed_s);
    EXPECT_GT(four.step_s, two.step_s);
}

// However long the recorded transfers beside the backward were, a replay without them has half of its
// operators' time.
TEST(LiftedHosts, OperatorsBesideTransfersHadHalfOfACoreAtLeast) {
    const traces::TemporaryFolder folder;
    for (int rank = 0; rank < 2; ++rank) {
        GlooTrace trace(rank);
        train(trace, false, 6, 60 * kBackward);
        trace.write(folder / "");
    }
    const Lifted own = lift(*traces::importer::open_any({folder / "rank0.json", folder / "rank1.json"}));
    const Replay fsdp = replay(own, own.cluster, {{"parallel.mode", "fsdp"}, {"fsdp.layout", "fsdp2"}}, 1);
    ASSERT_TRUE(fsdp.can_be()) << fsdp.impossible;
    EXPECT_GE(fsdp.kernel_s, 0.45e-6 * kBlocks * (kForward + kBackward));
}

// The first of the buckets gets a core late: the others say what a bucket costs. Two sizes that hardly differ
// leave the ratio of latency and bandwidth as it typically is, and the recorded sum.
TEST(LiftedHosts, TheLineThroughCollectivesKeepsTheirSumAndATypicalLatency) {
    const Lifted own = lifted(true);
    const auto& gather =
        own.cluster.collectives.measured[static_cast<std::size_t>(traces::schema::Operation::all_gather)];
    const double block = 4.0 * static_cast<double>(kParameters), sum_s = 1e-6 * (2 * kGather + kSum);
    // Two gathers send half of a block each, the sum a block.
    EXPECT_NEAR(3 * gather.latency + 2 * block / gather.bandwidth, sum_s, 0.02 * sum_s);
    EXPECT_NEAR(gather.latency * gather.bandwidth, 1e6, 4e5);
}

// One rank requests no collective, copies nothing in or out, has lighter hooks and the machine to itself.
TEST(LiftedHosts, OneRankUnderFsdpPaysForNoCollective) {
    const Lifted own = lifted(true);
    const Replay one = replay(own, own.cluster, {{"run.ranks", "1"}}, 1);
    ASSERT_TRUE(one.can_be()) << one.impossible;
    EXPECT_LT(one.exposed_s, 1e-6);
    const double work = 1e-6 * (kBlocks * (kForward + kBackward) + 2 * 500);
    EXPECT_GT(one.step_s, 0.8 * work);
    EXPECT_LT(one.step_s, work);
}

// The trace of one rank shows no transfer: those of two are assumed, with a note.
TEST(LiftedHosts, TwoRanksFromATraceOfOneTakeWhatGlooWasMeasuredToTake) {
    const traces::TemporaryFolder folder;
    GlooTrace trace(0, {1}, 1);
    train(trace, false, 6, 20);
    trace.write(folder / "");
    const Lifted own = lift(*traces::importer::open_any({folder / "rank0.json"}));
    EXPECT_EQ(own.ranks, 1);
    EXPECT_THAT(
        own.notes,
        Contains(HasSubstr(
            "No collective between ranks was recorded: each is assumed to take 1 ms and 1 ms a MiB")));
    const Replay one = replay_unmodified(own);
    const Replay two = replay(own, own.cluster, {{"run.ranks", "2"}, {"parallel.mode", "ddp"}}, 1);
    ASSERT_TRUE(two.can_be()) << two.impossible;
    // The first bucket holds a block, whose transfer slows the backward; the rest is waited for.
    const double block_s = 1e-9 * 4 * static_cast<double>(kParameters);
    EXPECT_NEAR(two.exposed_s, 1e-3 + (kBlocks - 1) * block_s, 1e-4);
    // A transfer beside the backward occupies half a core; and each bucket has its hooks.
    const double hooks_s = 1.1 * 45e-6 * 2 * 6;
    EXPECT_NEAR(two.step_s, 1.1 * one.step_s + two.exposed_s + block_s / 2 + hooks_s, 0.05 * one.step_s);
}

TEST(LiftedHosts, ATraceWithoutCollectivesIsRefused) {
    const traces::TemporaryFolder folder;
    GlooTrace trace(0);
    trace.range("ProfilerStep#1", [&] { forward_of(trace, 0); });
    trace.write(folder / "");
    try {
        lift(*traces::importer::open_any({folder / "rank0.json"}));
        FAIL() << "there is nothing to replay";
    } catch (const LiftError& error) {
        EXPECT_THAT(error.what(), HasSubstr("no ranks communicated over Gloo"));
    }
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::lift
