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
#include "trainer/lift/host_memory.h"
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

// A thread of Gloo's frees it, which PyTorch does not record: it would be there until the trace ends.
TEST(HostMemory, OmitsABufferOfFullyShardThatIsNeverFreed) {
    traces::store::Trace trace;
    trace.ranks.resize(1);
    traces::store::MemoryEvents& memory = trace.memory;
    const auto add = [&](std::int64_t time, std::int64_t bytes, std::uint64_t address) {
        memory.time.push_back(time);
        memory.bytes.push_back(bytes);
        memory.address.push_back(address);
        memory.unit.push_back(-1);
        memory.module.push_back(-1);
        memory.name.push_back(trace.strings.intern("aten::empty"));
        memory.rank.push_back(0);
        memory.category.push_back(traces::schema::MemoryCategory::other);
        memory.space.push_back(traces::schema::MemorySpace::host);
        memory.phase.push_back(traces::schema::Phase::none);
    };
    add(10, 100, 1);  // in a gather, never freed
    add(12, 200, 2);  // in a gather, freed
    add(20, 300, 3);  // beside it, never freed
    add(30, -200, 2);
    const std::vector<traces::analysis::IntervalSet> none(1), gathers(1, {{5, 15}});
    const traces::store::MemoryEvents kept = host_memory(trace, none, gathers);
    EXPECT_EQ(kept.bytes, (std::vector<std::int64_t>{200, 300, -200}));
    EXPECT_EQ(host_memory(trace, none, none).bytes, (std::vector<std::int64_t>{100, 200, 300, -200}));
}

// AdamW of PyTorch, one parameter after another: a square root and a quotient of this one, and the quotient
// of the one before.
TEST(OptimizerMemory, GrowsWithTheParametersThatFollowEachOtherOnARank) {
    const auto with = [](std::vector<job::Override> keys) {
        keys.insert(keys.begin(), {{"model.type", "mlp"}, {"model.width", "32"}, {"model.layers", "3"}});
        return job_with(keys);
    };
    const sharding::Program ddp(with({{"parallel.mode", "ddp"}})),
        whole(with({{"fsdp.sharding_strategy", "NO_SHARD"}})),
        rows(with({{"fsdp.layout", "fsdp2"}, {"fsdp.wrap", "module:Linear"}})),
        flat(with({{"fsdp.layout", "fsdp1"}, {"fsdp.wrap", "module:Linear"}}));
    const std::int64_t weight = 4 * 32 * 32, bias = 4 * 32;
    const OptimizerMemory each(2 * weight + bias, ddp);
    EXPECT_EQ(each.of(ddp), 2 * weight + bias);
    EXPECT_EQ(each.of(whole), 2 * weight + bias);
    EXPECT_EQ(each.of(rows), (2 * weight + bias) / 2);
    EXPECT_EQ(each.of(flat), 3 * (weight + bias) / 2);  // the first half of each unit: of its weight alone
    EXPECT_EQ(OptimizerMemory(3 * (weight + bias) / 2, flat).of(ddp), 2 * weight + bias);
    EXPECT_EQ(OptimizerMemory().of(ddp), 0);
    EXPECT_EQ(OptimizerMemory(0, ddp).of(ddp), 0);
}

TEST(OptimizerMemory, OfAllParametersTogetherIsSharedByTheRanks) {
    const std::vector<job::Override> model = {
        {"model.type", "mlp"}, {"model.width", "32"}, {"model.layers", "3"}};
    const auto with = [&](const char* mode) {
        std::vector<job::Override> keys = model;
        keys.push_back({"parallel.mode", mode});
        return job_with(keys);
    };
    const sharding::Program ddp(with("ddp")), fsdp(with("fsdp"));
    std::int64_t all = 0;
    for (const model::Parameter* parameter : ddp.modules().parameters) all += 4 * parameter->elements();
    EXPECT_EQ(OptimizerMemory(3 * all, ddp).of(ddp), 3 * all);  // too much for one parameter
    EXPECT_NEAR(static_cast<double>(OptimizerMemory(3 * all, ddp).of(fsdp)), 1.5 * static_cast<double>(all),
                64);
    EXPECT_EQ(OptimizerMemory(all / 8, ddp, true).of(ddp), all / 8);  // as its operators show
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::lift
