// Traces of PyTorch that several tests analyse.
#pragma once

#include <fstream>
#include <string>

#include "pytorch_trace.h"
#include "tests/traces/temporary_folder.h"
#include "trainer/lift/counterfactuals.h"

namespace shardscope::trainer::lift {

using testing::PytorchTrace;

inline constexpr std::int64_t kWidth = 256, kRows = 64;
inline constexpr std::int64_t kParameters = kWidth * kWidth + kWidth;  // elements of a Linear with its bias

// Two blocks of a Linear and a ReLU, each a unit of fully_shard; gathered before its forward and its
// backward.
struct FullyShardTrace {
    int steps = 5;
    bool own_ranges = false;  // one range per module's backward instead of autograd nodes
    bool clips = false;  // the norm of the gradients is summed over the ranks, which waits for the others
    bool norms = false;  // each block has a weight that only an elementwise operator reads
};

inline std::string fully_shard_json(const FullyShardTrace& options) {
    PytorchTrace trace;
    const bool own_ranges = options.own_ranges;
    const std::int64_t gathered = kParameters + (options.norms ? kWidth : 0);
    const auto node = [&](const std::string& name, const std::string& module, int key, const auto& body) {
        if (own_ranges) {
            trace.range("nn.Module: " + module + " (backward)", "user_annotation", body);
        } else {
            trace.node(name, key, body);
        }
    };
    const auto gather = [&](int block) {
        trace.range("FSDP::all_gather (" + std::to_string(block) + ")", "user_annotation",
                    [&] { trace.collective("AllGather", "_allgather_base", gathered / 2, gathered, 40); });
    };
    for (int step = 0; step < options.steps; ++step) {
        trace.range("ProfilerStep#" + std::to_string(step), "user_annotation", [&] {
            trace.module("FSDPNet_0", [&] {
                for (int block = 0; block < 2; ++block) {
                    const std::string number = std::to_string(block);
                    trace.range("FSDP::pre_forward (" + number + ")", "user_annotation",
                                [&] { gather(block); });
                    trace.module("FSDPBlock_" + number, [&] {
                        if (options.norms) {
                            trace.module("RMSNorm_" + number, [&] {
                                trace.operation("aten::mul", {{kWidth}, {kRows, kWidth}}, 10 + block,
                                                [&] { trace.kernel("mul", 5); });
                            });
                        }
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
                        trace.collective("ReduceScatter", "_reduce_scatter_base", gathered, gathered / 2, 60);
                    });
                }
                trace.free("gradient");
            });
            if (options.clips) {
                trace.wait_for_communication();
                trace.collective("AllReduce", "allreduce", 57, 57, 3000);
                trace.wait_for_communication();
            }
            trace.range("Optimizer.step#AdamW.step", "user_annotation", [&] {
                trace.wait_for_communication();
                trace.kernel("multi_tensor_apply", 30);
            });
        });
    }
    return trace.json();
}

// What is lifted from the text of a trace.
inline Lifted lifted(const std::string& json) {
    const traces::TemporaryFolder folder;
    const std::string path = folder / "trace.json";
    std::ofstream(path) << json;
    return lift(*traces::importer::open_any({path}));
}

inline std::string value_of(const Lifted& of, const std::string& key) {
    std::string value;
    for (const job::Override& setting : of.settings)
        if (setting.key == key) value = setting.value;
    return value;
}

}  // namespace shardscope::trainer::lift
