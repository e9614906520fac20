// Memory of lifted traces of PyTorch: what an optimizer's step allocates for itself, gradients that have the
// size of others, and copies that the library of collectives makes.
#include <filesystem>
#include <set>

#include <gtest/gtest.h>

#include "gloo_trace.h"
#include "pytorch_models.h"
#include "tests/traces/temporary_folder.h"
#include "traces/import/open.h"
#include "trainer/lift/counterfactuals.h"
#include "trainer/lift/optimizer_memory.h"

namespace shardscope::trainer::lift {
namespace TEST_FILE {

using testing::GlooTrace;

constexpr std::int64_t kBytes = 4 * kWidth * kWidth;

// Two Linear without bias under DDP, a batch of as many rows as columns, so that an input's gradient has the
// size of the weight's. The optimizer's step allocates `own` bytes for itself at a time; `copies`: Gloo's
// requests allocate.
Lifted lifted(std::int64_t own, bool copies = false) {
    const traces::TemporaryFolder folder;
    std::filesystem::create_directory(folder / "job");
    for (int rank = 0; rank < 2; ++rank) {
        GlooTrace trace(rank);
        for (int step = 0; step < 4; ++step) {
            trace.range("ProfilerStep#" + std::to_string(step), [&] {
                trace.range("Optimizer.zero_grad#SGD.zero_grad", [&] {
                    if (step > 0)
                        for (const char* name : {"weight 0", "weight 1"}) trace.free(name);
                });
                trace.module("DistributedDataParallel_0", [&] {
                    trace.module("Net_0", [&] {
                        for (int layer = 0; layer < 2; ++layer) {
                            trace.module("Linear_" + std::to_string(layer), [&] {
                                trace.operation("aten::linear", {{kWidth, kWidth}, {kWidth, kWidth}}, 100,
                                                layer + 1);
                                trace.allocate("output " + std::to_string(layer), kBytes);
                            });
                        }
                    });
                });
                for (int layer = 1; layer >= 0; --layer) {
                    trace.node("MmBackward0", layer + 1, [&] {
                        trace.operation("aten::mm", {{kWidth, kWidth}, {kWidth, kWidth}}, 100);
                        trace.allocate("input " + std::to_string(layer), kBytes);
                        trace.operation("aten::mm", {{kWidth, kWidth}, {kWidth, kWidth}}, 100);
                        trace.allocate("weight " + std::to_string(layer), kBytes);
                        if (layer == 0) trace.free("input 1");
                        if (layer == 0) trace.free("input 0");
                        trace.free("output " + std::to_string(layer));
                    });
                }
                trace.range(
                    "c10d::allreduce_",
                    [&] {
                        if (copies) trace.allocate("copy", 2 * kBytes, kBytes);
                    },
                    "cpu_op");
                trace.collective("allreduce_", "all_reduce", 2 * kWidth * kWidth, 2 * kWidth * kWidth, 1500,
                                 false);
                trace.wait();
                trace.range("Optimizer.step#SGD.step", [&] {
                    for (int layer = 0; layer < 2; ++layer) {
                        trace.operation("aten::add_", {{kWidth, kWidth}, {kWidth, kWidth}}, 50);
                        if (own > 0) trace.allocate("own", own);
                        if (own > 0) trace.free("own");
                    }
                });
            });
        }
        trace.write(folder / "job");
    }
    return lift(*traces::importer::open_any({folder / "job"}));
}

TEST(LiftedMemory, AGradientIsTheAllocationOfItsSizeThatLivesLongest) {
    const Lifted own = lifted(0);
    LiftedStep step = own.step;
    std::set<int> allocated, freed;
    step.for_each_item([&](const Item& item) {
        if (item.kind == Item::Kind::allocate) allocated.insert(item.index);
        if (item.kind == Item::Kind::free) freed.insert(item.index);
    });
    // What is left are the outputs and the gradients of inputs, which the backward frees.
    EXPECT_EQ(allocated.size(), 4);
    EXPECT_EQ(freed, allocated);
    EXPECT_EQ(replay_unmodified(own).peak.bytes, own.peak_bytes);
}

TEST(LiftedMemory, CopiesOfTheLibraryAreNotCounted) {
    const Lifted plain = lifted(0), copied = lifted(0, true);
    EXPECT_EQ(copied.peak_bytes, plain.peak_bytes);
    EXPECT_EQ(replay_unmodified(copied).peak.bytes, replay_unmodified(plain).peak.bytes);
}

TEST(LiftedMemory, TheOptimizersOwnBuffersRaiseThePeak) {
    const std::int64_t most = 20 * kBytes;  // more than anything else in the step
    const Lifted own = lifted(most);
    EXPECT_EQ(replay_unmodified(own).peak.bytes, own.peak_bytes);
    EXPECT_GE(own.peak_bytes - lifted(0).peak_bytes, 15 * kBytes);
}

// Steps of DDP; the loop's variable "logits" is assigned after the forward, "tokens" before it.
std::string loop_json() {
    PytorchTrace trace;
    for (int step = 0; step < 3; ++step) {
        const std::string now = std::to_string(step), before = std::to_string(step - 1);
        trace.range("ProfilerStep#" + now, "user_annotation", [&] {
            trace.allocate("tokens " + now, 512);
            if (step > 0) trace.free("tokens " + before);
            trace.module("Net_0", [&] {
                trace.operation("aten::linear", {{kRows, kWidth}, {kWidth, kWidth}}, 0, [&] {
                    trace.allocate("logits " + now, kBytes);
                    trace.kernel("sgemm", 100);
                });
            });
            if (step > 0) trace.free("logits " + before);
            trace.operation("aten::mse_loss", {{kRows, kWidth}}, 1, [&] { trace.kernel("mse", 10); });
            trace.backward([&] {
                trace.node("MseLossBackward0", 1, [&] { trace.kernel("mse_backward", 10); });
                trace.node("MmBackward0", 0, [&] {
                    if (step > 0) trace.free("gradient " + before);
                    trace.allocate("gradient " + now, kBytes);
                    trace.kernel("sgemm", 100);
                    trace.collective("AllReduce", "allreduce", kWidth * kWidth, kWidth * kWidth, 250);
                });
            });
            trace.range("Optimizer.step#SGD.step", "user_annotation", [&] { trace.kernel("sgd", 50); });
        });
    }
    return trace.json();
}

TEST(LiftedMemory, AVariableOfTheLoopLivesUntilTheNextStepReplacesIt) {
    const Lifted own = lift::lifted(loop_json());
    std::vector<std::int64_t> carried;
    std::set<int> at_begin;
    for (const Item& item : own.step.data) {
        if (item.kind != Item::Kind::allocate) continue;
        carried.push_back(own.step.buffers[static_cast<std::size_t>(item.index)].bytes);
        at_begin.insert(item.index);
    }
    // The old tokens and logits, but not the gradient, which the replay has itself; then the new tokens.
    EXPECT_EQ(carried, (std::vector<std::int64_t>{512, kBytes, 512}));
    ASSERT_EQ(own.step.loss.forward.front().kind, Item::Kind::free);
    EXPECT_TRUE(at_begin.contains(own.step.loss.forward.front().index));
}

job::Job job_with(const std::vector<job::Override>& keys) {
    std::vector<job::Override> all = {{"run.ranks", "2"}};
    all.insert(all.end(), keys.begin(), keys.end());
    return parse_job("", "job.toml", all);
}

TEST(OptimizerMemory, GrowsWithTheLargestPartOfARankOrWithAllOfThem) {
    LiftedStep step;
    step.parameters = {{"weight", 1000, 100, true}, {"bias", 200, 200, true}, {"frozen", 9000, 90, false}};
    const job::Job ddp = job_with({{"parallel.mode", "ddp"}}), fsdp1 = job_with({{"fsdp.layout", "fsdp1"}}),
                   fsdp2 = job_with({{"fsdp.layout", "fsdp2"}}),
                   whole = job_with({{"fsdp.sharding_strategy", "NO_SHARD"}});
    const OptimizerMemory each(2 * 4000, step, ddp);
    EXPECT_EQ(each.of(step, ddp), 8000);
    EXPECT_EQ(each.of(step, whole), 8000);
    EXPECT_EQ(each.of(step, fsdp2), 4000);
    EXPECT_EQ(each.of(step, fsdp1), 4800);  // no more than the shard of 600 elements
    const OptimizerMemory foreach (10 * 4000, step, ddp);
    EXPECT_EQ(foreach.of(step, fsdp2), 20000);
    EXPECT_EQ(OptimizerMemory(4800, step, fsdp1, true).of(step, ddp),
              9600);  // too small to be seen by its size
    EXPECT_EQ(OptimizerMemory().of(step, ddp), 0);
    EXPECT_EQ(OptimizerMemory(8000, LiftedStep(), ddp).of(step, ddp), 0);
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::lift
