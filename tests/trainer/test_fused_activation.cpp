// model.fused_activation: the matmul before a ReLU or GELU computes it, too. How the Plan changes, that
// losses keep their bits on the CPU, and that the memory account agrees with a real run.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "jobs.h"
#include "tests/trainer/model_testing.h"

namespace shardscope::trainer::model {
namespace TEST_FILE {

using testing::Pass;
using testing::PassOptions;
using testing::small_gpt;
using testing::small_mlp;
using testing::tree_of;

job::Job fused(job::Job job) {
    job.model.fused_activation = true;
    return job;
}

job::Job checkpointed(job::Job job, const std::string& classes) {
    job.memory.activation_checkpointing = job::parse_modules(classes);
    return job;
}

job::Job in_bf16(job::Job job) {
    job.precision = {job::Precision::bf16, job::Precision::bf16, job::Precision::bf16};
    return job;
}

Pass pass_of(const job::Job& job, PassOptions options = {}) {
    ModuleTree tree = tree_of(job);
    return testing::write_pass(tree, job, options);
}

// Forward kernels and the class of the module of each, as "linear_gelu_forward in Linear".
std::vector<std::pair<plan::Kernel, std::string>> forward_of(const job::Job& job) {
    const ModuleTree tree = tree_of(job);
    std::vector<std::pair<plan::Kernel, std::string>> found;
    const Pass pass = pass_of(job);
    for (const plan::Op* op : pass.kernels(plan::Phase::forward)) {
        const bool inside = op->module >= 0;
        found.emplace_back(op->kernel().kernel,
                           inside ? tree.modules[static_cast<std::size_t>(op->module)]->class_name() : "");
    }
    return found;
}

// --- the Plan ----------------------------------------------------------------------------------------------

// 4 Linears, 3 ReLUs: each except the last Linear computes the ReLU after it.
TEST(FusedActivation, OfAnMlpLeavesNoReluInTheForward) {
    using Work = std::pair<plan::Kernel, std::string>;
    EXPECT_THAT(forward_of(fused(small_mlp())),
                ::testing::ElementsAre(Work{plan::Kernel::linear_relu_forward, "Linear"},
                                       Work{plan::Kernel::linear_relu_forward, "Linear"},
                                       Work{plan::Kernel::linear_relu_forward, "Linear"},
                                       Work{plan::Kernel::linear_forward, "Linear"},
                                       Work{plan::Kernel::mse_forward, ""}));
}

TEST(FusedActivation, OfAGptIsInEachFeedForwardPart) {
    const Pass pass = pass_of(fused(small_gpt()));
    EXPECT_EQ(pass.count(plan::Kernel::linear_gelu_forward), 2);
    EXPECT_EQ(pass.count(plan::Kernel::gelu_forward), 0);
    // Two blocks with the attention's qkv and projection and the feed-forward part's projection; the head.
    EXPECT_EQ(pass.count(plan::Kernel::linear_forward), 2 * 3 + 1);
}

TEST(FusedActivation, ChangesNothingUnlessItIsRequested) {
    for (const job::Job& job : {small_mlp(), small_gpt()}) {
        const Pass pass = pass_of(job);
        EXPECT_EQ(
            pass.count(plan::Kernel::linear_relu_forward) + pass.count(plan::Kernel::linear_gelu_forward), 0);
        EXPECT_EQ(pass.count(plan::Kernel::relu_forward) + pass.count(plan::Kernel::gelu_forward),
                  job.model.type == job::ModelType::mlp ? 3 : 2);
    }
}

// The same gradients in the same modules and order, from the same operands: GELU's backward reads the sum,
// ReLU's the result.
TEST(FusedActivation, DoesNotChangeTheBackward) {
    for (const job::Job& job : {small_mlp(), small_gpt()}) {
        const Pass plain = pass_of(job), pass = pass_of(fused(job));
        const auto work = [](const Pass& in) {
            std::vector<std::pair<plan::Kernel, int>> found;
            for (const plan::Op* op : in.kernels(plan::Phase::backward))
                found.emplace_back(op->kernel().kernel, op->module);
            return found;
        };
        EXPECT_EQ(work(pass), work(plain));
        EXPECT_EQ(pass.ready, plain.ready);
        EXPECT_EQ(pass.dangling(), 0);
    }
    const Pass gpt = pass_of(fused(small_gpt())), mlp = pass_of(fused(small_mlp()));
    EXPECT_EQ(gpt.all(plan::Kernel::gelu_backward).back()->args[2].buffer,
              gpt.all(plan::Kernel::linear_gelu_forward).front()->args[1].buffer);
    EXPECT_EQ(mlp.all(plan::Kernel::relu_backward).back()->args[2].buffer,
              mlp.all(plan::Kernel::linear_relu_forward).front()->args[0].buffer);
}

TEST(FusedActivation, KeepsTheModulesRangeEmpty) {
    const job::Job job = fused(small_gpt());
    const ModuleTree tree = tree_of(job);
    const Pass pass = pass_of(job);
    int ranges = 0;
    for (std::size_t i = 0; i + 1 < pass.plan.ops.size(); ++i) {
        const plan::Op& op = pass.plan.ops[i];
        if (op.kind != plan::OpKind::push_range || op.phase != plan::Phase::forward || op.range_module() < 0)
            continue;
        if (tree.modules[static_cast<std::size_t>(op.range_module())]->class_name() != "GELU") continue;
        EXPECT_EQ(pass.plan.ops[i + 1].kind, plan::OpKind::pop_range);
        ++ranges;
    }
    EXPECT_EQ(ranges, 2);
}

TEST(FusedActivation, KeepsNoSumWithoutABackward) {
    const PassOptions evaluation{.backward = false, .training = false};
    const Pass plain = pass_of(small_gpt(), evaluation), pass = pass_of(fused(small_gpt()), evaluation);
    ASSERT_EQ(pass.count(plan::Kernel::linear_gelu_forward), 2);
    for (const plan::Op* op : pass.all(plan::Kernel::linear_gelu_forward)) EXPECT_LT(op->args[1].buffer, 0);
    // The same holds in the first forward of a checkpointed block; the second forward keeps the sum.
    const Pass twice = pass_of(fused(checkpointed(small_gpt(), "module:Block")));
    for (const plan::Op* op : twice.all(plan::Kernel::linear_gelu_forward))
        EXPECT_EQ(op->args[1].buffer >= 0, op->phase == plan::Phase::recompute);
    EXPECT_EQ(pass.dangling(), 0);
    EXPECT_LE(pass.peak(), plain.peak());
}

// 3 ReLUs of 32 x 16 whose inputs are never stored; a GELU's are, for its backward.
TEST(FusedActivation, NeedsNoMoreMemoryThanTheTwoSeparately) {
    const auto allocated = [](const Pass& pass) {
        std::int64_t bytes = 0;
        for (const plan::Op& op : pass.plan.ops) {
            if (op.kind == plan::OpKind::allocate && op.phase == plan::Phase::forward)
                bytes += op.args[0].bytes;
        }
        return bytes;
    };
    EXPECT_EQ(allocated(pass_of(small_mlp())) - allocated(pass_of(fused(small_mlp()))), 3 * 32 * 16 * 4);
    EXPECT_EQ(allocated(pass_of(small_gpt())), allocated(pass_of(fused(small_gpt()))));
    for (const job::Job& job : {small_mlp(), small_gpt(), checkpointed(small_gpt(), "module:Block")})
        EXPECT_LE(pass_of(fused(job)).peak(), pass_of(job).peak());
}

// If recomputed alone, a Linear has no module after it, and an activation none before it.
TEST(FusedActivation, IsSeparateIfOneOfTheTwoIsRecomputed) {
    const Pass linear = pass_of(checkpointed(fused(small_gpt()), "module:Linear"));
    EXPECT_EQ(linear.count(plan::Kernel::linear_gelu_forward), 2);
    for (const plan::Op* op : linear.all(plan::Kernel::linear_gelu_forward)) {
        EXPECT_EQ(op->phase, plan::Phase::forward);
        EXPECT_GE(op->args[1].buffer, 0) << "the GELU keeps its input";
    }
    const Pass gelu = pass_of(checkpointed(fused(small_gpt()), "module:GELU"));
    ASSERT_EQ(gelu.count(plan::Kernel::gelu_forward), 2);
    for (const plan::Op* op : gelu.all(plan::Kernel::gelu_forward))
        EXPECT_EQ(op->phase, plan::Phase::recompute);
    const Pass relu = pass_of(checkpointed(fused(small_mlp()), "module:ReLU"));
    EXPECT_EQ(relu.count(plan::Kernel::relu_forward), 3);  // for an activation that is already fused
    for (const Pass* pass : {&linear, &gelu, &relu}) EXPECT_EQ(pass->dangling(), 0);
}

TEST(FusedActivation, ChecksTheResultForTheLinear) {
    for (const job::Job& job : {fused(small_mlp()), fused(small_gpt())}) {
        const ModuleTree tree = tree_of(job);
        const Pass pass = pass_of(job, {.finite_flag = true});
        int checked = 0;
        for (const plan::Op& op : pass.plan.ops) {
            if (op.kind != plan::OpKind::kernel || (op.kernel().kernel != plan::Kernel::linear_relu_forward &&
                                                    op.kernel().kernel != plan::Kernel::linear_gelu_forward))
                continue;
            EXPECT_TRUE(op.kernel().checks_output);
            EXPECT_EQ(op.args.back().buffer, pass.finite_flag);
            EXPECT_EQ(tree.modules[static_cast<std::size_t>(op.module)]->class_name(), "Linear");
            ++checked;
        }
        EXPECT_EQ(checked, job.model.type == job::ModelType::mlp ? 3 : 2);
    }
}

// The operations are the sum of the matmul's and the activation's; the bytes lack those that the activation
// read and, for ReLU, wrote.
TEST(FusedActivation, CountsTheArithmeticOfBoth) {
    for (const job::Job& job : {small_mlp(), small_gpt()}) {
        const auto totals = [](const Pass& pass) {
            std::pair<std::int64_t, std::int64_t> sum;
            for (const plan::Op* op : pass.kernels(plan::Phase::forward)) {
                sum.first += op->flops;
                sum.second += op->bytes;
            }
            return sum;
        };
        const auto apart = totals(pass_of(job)), together = totals(pass_of(fused(job)));
        EXPECT_EQ(together.first, apart.first);
        const bool mlp = job.model.type == job::ModelType::mlp;
        EXPECT_EQ(apart.second - together.second, mlp ? 3 * 2 * 32 * 16 * 4 : 2 * 2 * 16 * 4 * 32 * 4);
    }
}

// --- runs --------------------------------------------------------------------------------------------------

std::vector<job::Job> jobs(const testing::SampleText& text) {
    job::Job no_bias = testing::with_wrap(testing::mlp_job(4, 24, 3, 2), "module:Linear");
    no_bias.model.bias = false;
    job::Job offloaded = testing::with_wrap(testing::mlp_job(4, 24, 3, 2), "module:Linear");
    offloaded.fsdp.cpu_offload = true;
    const job::Job gpt = testing::gpt_job(text, 2, 2);
    job::Job frozen = testing::with_wrap(gpt, "module:Block");
    frozen.train.freeze = job::parse_modules("module:FeedForward,Embedding");
    return {testing::with_wrap(testing::mlp_job(4, 24, 3, 2), "root"),
            no_bias,
            offloaded,
            testing::with_mode(testing::mlp_job(4, 24, 3, 2), job::ParallelMode::ddp),
            checkpointed(testing::with_mode(testing::mlp_job(4, 24, 3, 1), job::ParallelMode::none),
                         "module:ReLU"),
            checkpointed(testing::with_wrap(testing::mlp_job(4, 24, 3, 2), "module:Linear"), "module:Linear"),
            testing::with_wrap(gpt, "module:Block"),
            testing::with_wrap(gpt, "module:Linear"),
            in_bf16(testing::with_wrap(gpt, "module:Linear")),
            in_bf16(testing::with_wrap(testing::mlp_job(4, 24, 3, 2), "module:Linear")),
            frozen,
            checkpointed(testing::with_wrap(gpt, "module:FeedForward"), "module:Block"),
            checkpointed(testing::with_wrap(gpt, "module:Linear"), "module:Linear"),
            checkpointed(testing::with_wrap(gpt, "module:Linear"), "module:Block,Linear"),
            checkpointed(testing::with_mode(gpt, job::ParallelMode::ddp), "module:GELU")};
}

// In bf16, too: the CPU rounds the sum before it applies the activation.
TEST(FusedActivation, ChangesNoBitOfALossOnTheCpu) {
    const testing::SampleText text;
    const std::vector<job::Job> all = jobs(text);
    for (std::size_t i = 0; i < all.size(); ++i)
        EXPECT_EQ(testing::run(fused(all[i])).losses, testing::run(all[i]).losses) << "job " << i;
}

TEST(FusedActivation, IsInTheMemoryAccount) {
    const testing::SampleText text;
    const std::vector<job::Job> all = jobs(text);
    for (std::size_t i = 0; i < all.size(); ++i) {
        const job::Job job = fused(all[i]);
        const plan::MemoryPeak predicted = sharding::Program(job).predict().peak;
        for (const plan::MemoryPeak& real : testing::run(job).peaks) {
            EXPECT_EQ(real.bytes, predicted.bytes) << "job " << i;
            EXPECT_EQ(real.at_peak, predicted.at_peak) << "job " << i;
            EXPECT_EQ(real.modules, predicted.modules) << "job " << i;
        }
    }
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::model
