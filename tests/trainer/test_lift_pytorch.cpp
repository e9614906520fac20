// Traces as PyTorch's profiler writes them: of fully_shard with everything that it can record, of DDP with as
// little as possible; and the shapes of operators as parameters.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pytorch_models.h"
#include "trainer/lift/operator_parameters.h"
#include "trainer/lift/pytorch_lines.h"

namespace shardscope::trainer::lift {
namespace TEST_FILE {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
// Without any module range, shape or memory: 2 buckets of a DDP backward.
std::string ddp_json(int steps) {
    PytorchTrace trace;
    for (int step = 0; step < steps; ++step) {
        trace.range("ProfilerStep#" + std::to_string(step), "user_annotation", [&] {
            trace.operation("aten::conv2d", {}, 0, [&] { trace.kernel("conv", 300); });
            trace.operation("aten::linear", {}, 1, [&] { trace.kernel("sgemm", 200); });
            trace.backward([&] {
                trace.node("AddmmBackward0", 1, [&] {
                    trace.kernel("sgemm", 400);
                    trace.collective("AllReduce", "allreduce", 500000, 500000, 250);
                });
                trace.node("ConvolutionBackward0", 0, [&] {
                    trace.kernel("conv_backward", 600);
                    trace.collective("AllReduce", "allreduce", 700000, 700000, 350);
                });
            });
            trace.range("Optimizer.step#SGD.step", "user_annotation", [&] {
                trace.wait_for_communication();
                trace.kernel("sgd", 50);
            });
        });
    }
    return trace.json();
}

TEST(LiftedPytorch, FullyShardWithModulesShapesAndMemoryIsLiftedCompletely) {
    const Lifted own = lifted(fully_shard_json({}));
    EXPECT_EQ(value_of(own, "parallel.mode"), "fsdp");
    EXPECT_EQ(value_of(own, "fsdp.layout"), "fsdp2");
    EXPECT_EQ(value_of(own, "fsdp.sharding_strategy"), "FULL_SHARD");
    EXPECT_EQ(value_of(own, "optimizer.type"), "adamw");
    EXPECT_EQ(own.wrap, "module:Block");
    std::vector<std::string> names;
    for (const Node& node : own.step.nodes) names.push_back(node.class_name);
    EXPECT_THAT(names, ElementsAre("Net", "Block", "Linear", "ReLU", "Block", "Linear", "ReLU"));
    EXPECT_EQ(own.step.elements(), 2 * kParameters);
    EXPECT_EQ(own.parameters, ParametersFrom::shapes);

    const Replay unmodified = replay_unmodified(own);
    ASSERT_TRUE(unmodified.can_be()) << unmodified.impossible;
    EXPECT_EQ(unmodified.units, 2U);
    EXPECT_NEAR(unmodified.step_s, own.step_s, 0.1 * own.step_s);

    const Replay root = replay(own, own.cluster, {{"fsdp.wrap", "root"}}, 1);
    ASSERT_TRUE(root.can_be()) << root.impossible;
    EXPECT_EQ(root.units, 1U);
    EXPECT_GT(root.peak.bytes, unmodified.peak.bytes);
    // All parameters are gathered once, before the forward, and reduced once, after the backward.
    EXPECT_EQ(root.moved_bytes, 2 * 2 * kParameters * 4);
    EXPECT_GT(root.exposed_s, unmodified.exposed_s);

    const auto lines = pytorch_lines(own, unmodified.job);
    ASSERT_EQ(lines.size(), 2U);
    EXPECT_THAT(lines.front().lines, Contains(HasSubstr("isinstance(module, Block): fully_shard(module)")));
}

TEST(LiftedPytorch, AModulesBackwardIsFoundByItsOwnRange) {
    const Lifted own = lifted(fully_shard_json({.own_ranges = true}));
    for (const Node& node : own.step.nodes) {
        if (node.class_name != "Linear" && node.class_name != "ReLU") continue;
        std::vector<std::string> kernels;
        for (const Item& item : node.calls.front().own.front().backward)
            if (item.kind == Item::Kind::kernel) kernels.push_back(item.name);
        if (node.class_name == "Linear") {
            EXPECT_THAT(kernels, ElementsAre("sgemm", "sgemm"));
        } else {
            EXPECT_THAT(kernels, ElementsAre("relu_backward"));
        }
    }
    EXPECT_NEAR(replay_unmodified(own).step_s, own.step_s, 0.1 * own.step_s);
}

TEST(LiftedPytorch, GradientsOfTheModulesAreNotActivations) {
    const Lifted own = lifted(fully_shard_json({.steps = 4}));
    std::int64_t gradients = 0;
    for (const LiftedBuffer& buffer : own.step.buffers) gradients += buffer.bytes == kWidth * kWidth * 4;
    std::vector<int> allocated;
    LiftedStep step = own.step;
    step.for_each_item([&](const Item& item) {
        if (item.kind == Item::Kind::allocate) allocated.push_back(item.index);
    });
    for (const int buffer : allocated)
        EXPECT_NE(step.buffers[static_cast<std::size_t>(buffer)].bytes, kWidth * kWidth * 4);
    EXPECT_EQ(gradients, 2);
}

TEST(LiftedPytorch, DdpWithoutModulesIsReplayedAndNotesWhatIsUnknown) {
    const Lifted own = lifted(ddp_json(5));
    EXPECT_EQ(value_of(own, "parallel.mode"), "ddp");
    EXPECT_EQ(own.parameters, ParametersFrom::buckets);
    EXPECT_EQ(own.step.elements(), 1200000);
    EXPECT_THAT(own.notes, Contains(AllOf(HasSubstr("with_modules=True"), HasSubstr("record_function"))));
    EXPECT_THAT(own.notes, Contains(HasSubstr("profile_memory=True")));
    const Replay unmodified = replay_unmodified(own);
    ASSERT_TRUE(unmodified.can_be()) << unmodified.impossible;
    EXPECT_EQ(unmodified.units, 2U);
    EXPECT_EQ(unmodified.moved_bytes, 1200000 * 4);
    EXPECT_NEAR(unmodified.step_s, own.step_s, 0.1 * own.step_s);
    // The only wrap is the whole model.
    for (const auto& changes : changes_to_try(own, {})) {
        for (const job::Override& change : changes)
            EXPECT_FALSE(change.key == "fsdp.wrap" && change.value != "root");
    }
}

// Two Linears of 4 MB and a norm whose weight only an elementwise operator reads, under DDP, in these
// buckets.
std::string ddp_with_modules_json(const std::vector<std::int64_t>& buckets) {
    PytorchTrace trace;
    for (int step = 0; step < 5; ++step) {
        trace.range("ProfilerStep#" + std::to_string(step), "user_annotation", [&] {
            trace.module("DistributedDataParallel_0", [&] {
                trace.module("Net_0", [&] {
                    for (int layer = 0; layer < 2; ++layer) {
                        trace.module("Linear_" + std::to_string(layer), [&] {
                            trace.operation("aten::linear", {{64, 1024}, {1024, 1024}, {1024}}, layer,
                                            [&] { trace.kernel("sgemm", 100); });
                        });
                    }
                    trace.operation("aten::mul", {{1024}, {64, 1024}}, 2, [&] { trace.kernel("mul", 5); });
                });
            });
            trace.backward([&] {
                trace.node("MulBackward0", 2, [&] { trace.kernel("mul_backward", 5); });
                for (int layer = 1; layer >= 0; --layer) {
                    trace.node("AddmmBackward0", layer, [&] {
                        trace.kernel("sgemm", 200);
                        if (buckets.size() == 1 && layer == 1) return;
                        const std::int64_t size = buckets[buckets.size() == 1 || layer == 1 ? 0 : 1];
                        trace.collective("AllReduce", "allreduce", size, size, 300);
                    });
                }
            });
            trace.range("Optimizer.step#SGD.step", "user_annotation", [&] {
                trace.wait_for_communication();
                trace.kernel("sgd", 50);
            });
        });
    }
    return trace.json();
}

// An embedding and a head that read one weight, in a unit that is the root alone.
std::string tied_json() {
    constexpr std::int64_t kWeight = 1000 * 64;
    PytorchTrace trace;
    for (int step = 0; step < 5; ++step) {
        trace.range("ProfilerStep#" + std::to_string(step), "user_annotation", [&] {
            trace.module("FSDPNet_0", [&] {
                trace.range("FSDP::pre_forward", "user_annotation", [&] {
                    trace.collective("AllGather", "_allgather_base", kWeight / 2, kWeight, 40);
                });
                trace.module("Embedding_0", [&] {
                    trace.operation("aten::embedding", {{1000, 64}, {8, 32}}, 0,
                                    [&] { trace.kernel("gather", 20); });
                });
                trace.module("Linear_0", [&] {
                    trace.operation("aten::linear", {{256, 64}, {1000, 64}, {}}, 1,
                                    [&] { trace.kernel("sgemm", 100); });
                });
            });
            trace.backward([&] {
                trace.node("AddmmBackward0", 1, [&] { trace.kernel("sgemm", 200); });
                trace.node("EmbeddingBackward0", 0, [&] { trace.kernel("scatter", 30); });
                trace.range("FSDP::post_backward_reduce", "user_annotation", [&] {
                    trace.collective("ReduceScatter", "_reduce_scatter_base", kWeight, kWeight / 2, 60);
                });
            });
            trace.range("Optimizer.step#AdamW.step", "user_annotation", [&] {
                trace.wait_for_communication();
                trace.kernel("multi_tensor_apply", 30);
            });
        });
    }
    return trace.json();
}

TEST(LiftedPytorch, ParametersThatOnlyElementwiseOperatorsReadAreInTheUnitsGather) {
    const Lifted own = lifted(fully_shard_json({.norms = true}));
    EXPECT_EQ(own.step.elements(), 2 * (kParameters + kWidth));
    const Replay unmodified = replay_unmodified(own);
    ASSERT_TRUE(unmodified.can_be()) << unmodified.impossible;
    // Each block is gathered twice and reduced once.
    EXPECT_EQ(unmodified.moved_bytes, 3 * 2 * (kParameters + kWidth) * 4);
}

TEST(LiftedPytorch, AWeightThatTwoModulesReadIsGatheredOnceAndInFp32) {
    const Lifted own = lifted(tied_json());
    EXPECT_EQ(own.step.elements(), 1000 * 64);
    EXPECT_EQ(value_of(own, "precision.param"), "");
    const Replay unmodified = replay_unmodified(own);
    ASSERT_TRUE(unmodified.can_be()) << unmodified.impossible;
    EXPECT_EQ(unmodified.moved_bytes, 2 * 1000 * 64 * 4);
}

// Gathered once per step, as under SHARD_GRAD_OP, which was not set.
TEST(LiftedPytorch, ARootThatIsTheOnlyUnitCountsAsFullShard) {
    const Lifted own = lifted(tied_json());
    EXPECT_EQ(value_of(own, "fsdp.sharding_strategy"), "FULL_SHARD");
    EXPECT_THAT(own.notes, Contains(AllOf(HasSubstr("root alone"), HasSubstr("FULL_SHARD"))));
}

TEST(LiftedPytorch, TheNormOfTheGradientsGivesNoBandwidth) {
    const Lifted own = lifted(fully_shard_json({.clips = true}));
    EXPECT_THAT(own.notes, Contains(AllOf(HasSubstr("all_reduce move 228 bytes"), HasSubstr("GB/s"))));
    const Replay unmodified = replay_unmodified(own);
    const Replay ddp = replay(own, own.cluster, {{"parallel.mode", "ddp"}}, 1);
    ASSERT_TRUE(ddp.can_be()) << ddp.impossible;
    // At the rate of 228 bytes in 3 ms, the two blocks' 526,336 bytes would take 6.9 s.
    EXPECT_LT(ddp.step_s, 3 * unmodified.step_s);
}

TEST(LiftedPytorch, FullyShardIsTriedUnderItsOwnOptions) {
    const Lifted own = lifted(fully_shard_json({}));
    for (const auto& changes : changes_to_try(own, {})) {
        for (const job::Override& change : changes) {
            EXPECT_NE(change.key, "fsdp.backward_prefetch") << change.value;
            EXPECT_NE(change.key, "fsdp.limit_all_gathers") << change.value;
            EXPECT_NE(change.value, "NO_SHARD");
        }
    }
    // The requested combination is impossible, and the error does not claim that the command line said
    // "fsdp2".
    Question question;
    question.given = {{"fsdp.sharding_strategy", {"NO_SHARD"}}};
    const Replay row = replay(own, own.cluster, changes_to_try(own, question).back(), 2);
    EXPECT_THAT(row.impossible, AllOf(HasSubstr("NO_SHARD"), ::testing::Not(HasSubstr("command line"))));
}

TEST(LiftedPytorch, BucketsOfDdpAreTheRecordedOnes) {
    constexpr std::int64_t kLinear = 1024 * 1024 + 1024, kAll = 2 * kLinear + 1024;
    // bucket_cap_mb=25 applies to the first bucket, too, so there is one of 8 MB.
    const Lifted one = lifted(ddp_with_modules_json({kAll}));
    EXPECT_EQ(one.step.elements(), kAll);
    const Replay of_one = replay_unmodified(one);
    EXPECT_EQ(of_one.units, 1U);
    EXPECT_EQ(of_one.moved_bytes, kAll * 4);
    EXPECT_THAT(pytorch_lines(one, of_one.job).front().lines, Contains(HasSubstr("bucket_cap_mb=25")));
    // By default the first bucket is closed at 1 MB.
    const Lifted two = lifted(ddp_with_modules_json({kLinear + 1024, kLinear}));
    const Replay of_two = replay_unmodified(two);
    EXPECT_EQ(of_two.units, 2U);
    EXPECT_THAT(pytorch_lines(two, of_two.job).front().lines, Contains("model = DDP(model)"));
}

TEST(LiftedPytorch, SmallerDdpBucketsMeanFrozenParametersOrTwoByteElements) {
    constexpr std::int64_t kLinear = 1024 * 1024 + 1024;
    // A quarter is not reduced. The Linears have the same shape, but different parameters.
    const Lifted frozen = lifted(ddp_with_modules_json({kLinear * 3 / 2}));
    EXPECT_EQ(frozen.step.elements(), 2 * kLinear);
    EXPECT_THAT(frozen.notes, Contains(HasSubstr("some parameters are frozen")));
    // The bytes of both Linears and the norm in fp32 are halved: half as many fp32 elements, or all of two
    // bytes.
    const Lifted half = lifted(ddp_with_modules_json({(2 * kLinear + 1024) / 2}));
    EXPECT_EQ(half.step.elements(), 2 * kLinear + 1024);
    EXPECT_THAT(half.notes, Contains(HasSubstr("two bytes per element")));
}

TEST(LiftedPytorch, StepsAreRequired) {
    std::string json = ddp_json(3);
    for (std::size_t at = json.find("ProfilerStep#"); at != json.npos; at = json.find("ProfilerStep#", at))
        json.replace(at, 13, "SomethingElse");
    try {
        lifted(json);
        FAIL();
    } catch (const LiftError& error) {
        EXPECT_THAT(error.what(), HasSubstr("ProfilerStep#N"));
    }
}

std::vector<std::int64_t> elements(std::string_view operation, std::string_view detail) {
    std::vector<std::int64_t> all;
    for (const OperatorParameter& parameter : parameters_of(operation, detail))
        all.push_back(parameter.elements);
    return all;
}

TEST(OperatorParameters, AreTheInputsThatTheSignatureCallsWeightAndBias) {
    EXPECT_EQ(elements("aten::linear", R"({"Input Dims":[[8,16],[32,16],[32]]})"),
              (std::vector<std::int64_t>{512, 32}));
    EXPECT_EQ(elements("aten::linear", R"({"Input Dims":[[8,16],[32,16],[]]})"),
              (std::vector<std::int64_t>{512}));
    EXPECT_EQ(elements("aten::conv2d", R"({"Input Dims":[[1,3,8,8],[64,3,7,7],[],[],[],[],[]]})"),
              (std::vector<std::int64_t>{64 * 3 * 7 * 7}));
    EXPECT_EQ(elements("aten::layer_norm", R"({"Input Dims":[[8,16],[],[16],[16],[],[]]})"),
              (std::vector<std::int64_t>{16, 16}));
    EXPECT_EQ(elements("aten::embedding", R"({"Input Dims":[[1000,64],[8,4],[],[],[]]})"),
              (std::vector<std::int64_t>{64000}));
}

TEST(OperatorParameters, OtherOperatorsAndBrokenShapesHaveNone) {
    EXPECT_FALSE(reads_parameters("aten::mm"));
    EXPECT_TRUE(elements("aten::mm", R"({"Input Dims":[[8,16],[16,32]]})").empty());
    for (const char* broken :
         {"", "[]", "{}", R"({"Input Dims":7})", R"({"Input Dims":[[8,16]]})",
          R"({"Input Dims":[[8,16],[-1,16],["x"]]})", R"({"Input Dims":[[1],[0,16],[]]})",
          R"({"Input Dims":[[1],[1099511627776,1099511627776],[]]})"})
        EXPECT_TRUE(elements("aten::linear", broken).empty()) << broken;
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::lift
