// Traces as PyTorch's profiler writes them: of fully_shard with all that it can record, of DDP with as little
// as possible; and the shapes of operators as parameters.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pytorch_trace.h"
#include "tests/traces/temporary_folder.h"
#include "trainer/lift/counterfactuals.h"
#include "trainer/lift/operator_parameters.h"
#include "trainer/lift/pytorch_lines.h"

namespace shardscope::trainer::lift {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::PytorchTrace;

constexpr std::int64_t kWidth = 256, kRows = 64;
constexpr std::int64_t kParameters = kWidth * kWidth + kWidth;  // of a Linear with its bias

// Two blocks of a Linear and a ReLU, each a unit of fully_shard; gathered before its forward and its
// backward.
// `own_ranges`: the backward of a module is a range of its own, and autograd's nodes are not there.
std::string fully_shard_json(int steps, bool own_ranges = false) {
    PytorchTrace trace;
    const auto node = [&](const std::string& name, const std::string& module, int key, const auto& body) {
        if (own_ranges) {
            trace.range("nn.Module: " + module + " (backward)", "user_annotation", body);
        } else {
            trace.node(name, key, body);
        }
    };
    const auto gather = [&](int block) {
        trace.range("FSDP::all_gather (" + std::to_string(block) + ")", "user_annotation", [&] {
            trace.collective("AllGather", "_allgather_base", kParameters / 2, kParameters, 40);
        });
    };
    for (int step = 0; step < steps; ++step) {
        trace.range("ProfilerStep#" + std::to_string(step), "user_annotation", [&] {
            trace.module("FSDPNet_0", [&] {
                for (int block = 0; block < 2; ++block) {
                    const std::string number = std::to_string(block);
                    trace.range("FSDP::pre_forward (" + number + ")", "user_annotation",
                                [&] { gather(block); });
                    trace.module("FSDPBlock_" + number, [&] {
                        trace.module("Linear_" + number, [&] {
                            trace.operation("aten::linear", {{kRows, kWidth}, {kWidth, kWidth}, {kWidth}},
                                            block, [&] {
                                                trace.allocate("output " + number, kRows * kWidth * 4);
                                                trace.kernel("sgemm", 100);
                                            });
                        });
                        trace.module("ReLU_" + number, [&] {
                            trace.operation("aten::relu", {{kRows, kWidth}}, 2 + block, [&] {
                                trace.allocate("relu " + number, kRows * kWidth * 4);
                                trace.kernel("relu", 20);
                            });
                        });
                    });
                    trace.range("FSDP::post_forward (" + number + ")", "user_annotation", [] {});
                }
            });
            trace.operation("aten::mse_loss", {{kRows, kWidth}, {kRows, kWidth}}, 4,
                            [&] { trace.kernel("mse", 10); });
            trace.backward([&] {
                const auto loss = [&] {
                    trace.allocate("gradient", kRows * kWidth * 4);
                    trace.kernel("mse_backward", 10);
                };
                if (own_ranges) {
                    loss();
                } else {
                    trace.node("MseLossBackward0", 4, loss);
                }
                for (int block = 1; block >= 0; --block) {
                    const std::string number = std::to_string(block);
                    trace.range("FSDP::pre_backward (" + number + ")", "user_annotation",
                                [&] { gather(block); });
                    node("ReluBackward0", "ReLU_" + number, 2 + block, [&] {
                        trace.kernel("relu_backward", 20);
                        trace.free("relu " + number);
                    });
                    node("AddmmBackward0", "Linear_" + number, block, [&] {
                        trace.kernel("sgemm", 100);
                        trace.allocate("weight gradient " + number, kWidth * kWidth * 4);
                        trace.kernel("sgemm", 100);
                        trace.free("output " + number);
                    });
                    trace.range("FSDP::post_backward_reduce (" + number + ")", "user_annotation", [&] {
                        trace.free("weight gradient " + number);
                        trace.collective("ReduceScatter", "_reduce_scatter_base", kParameters,
                                         kParameters / 2, 60);
                    });
                }
                trace.free("gradient");
            });
            trace.range("Optimizer.step#AdamW.step", "user_annotation", [&] {
                trace.wait_for_communication();
                trace.kernel("multi_tensor_apply", 30);
            });
        });
    }
    return trace.json();
}

// One module range nowhere, no shape, no memory: 2 buckets of a DDP backward.
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

Lifted lifted(const std::string& json) {
    const traces::TemporaryFolder folder;
    const std::string path = folder / "trace.json";
    std::ofstream(path) << json;
    return lift(*traces::open_any({path}));
}

std::string value_of(const Lifted& of, const std::string& key) {
    for (const Override& setting : of.settings)
        if (setting.key == key) return setting.value;
    return "";
}

TEST(LiftedPytorch, FullyShardWithModulesShapesAndMemoryIsLiftedWhole) {
    const Lifted own = lifted(fully_shard_json(5));
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
    // All of it is gathered once, before the forward, and reduced once, behind the backward.
    EXPECT_EQ(root.moved_bytes, 2 * 2 * kParameters * 4);
    EXPECT_GT(root.exposed_s, unmodified.exposed_s);

    const auto lines = pytorch_lines(own, unmodified.job);
    ASSERT_EQ(lines.size(), 2U);
    EXPECT_THAT(lines.front().lines, Contains(HasSubstr("isinstance(module, Block): fully_shard(module)")));
}

TEST(LiftedPytorch, AModulesBackwardIsKnownByARangeOfItsOwn) {
    const Lifted own = lifted(fully_shard_json(5, true));
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

TEST(LiftedPytorch, GradientsOfTheModulesAreNoActivations) {
    const Lifted own = lifted(fully_shard_json(4));
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

TEST(LiftedPytorch, DdpWithoutModulesIsReplayedAndSaysWhatItCannotTell) {
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
    // The only wrap is the whole.
    for (const auto& changes : changes_to_try(own, {})) {
        for (const Override& change : changes)
            EXPECT_FALSE(change.key == "fsdp.wrap" && change.value != "root");
    }
}

TEST(LiftedPytorch, StepsAreWanted) {
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

TEST(OperatorParameters, OthersHaveNoneAndBrokenShapesTellNone) {
    EXPECT_FALSE(reads_parameters("aten::mm"));
    EXPECT_TRUE(elements("aten::mm", R"({"Input Dims":[[8,16],[16,32]]})").empty());
    for (const char* broken :
         {"", "[]", "{}", R"({"Input Dims":7})", R"({"Input Dims":[[8,16]]})",
          R"({"Input Dims":[[8,16],[-1,16],["x"]]})", R"({"Input Dims":[[1],[0,16],[]]})",
          R"({"Input Dims":[[1],[1099511627776,1099511627776],[]]})"})
        EXPECT_TRUE(elements("aten::linear", broken).empty()) << broken;
}

}  // namespace
}  // namespace shardscope::trainer::lift
