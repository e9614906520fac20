// The Plans that models write: what is kept, what is recomputed, what is omitted.
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/model_testing.h"
#include "trainer/kernels/random.h"

namespace shardscope::trainer::model {
namespace TEST_FILE {

using ::testing::EndsWith;
using ::testing::Not;
using testing::Pass;
using testing::PassOptions;
using testing::small_bert;
using testing::small_gpt;
using testing::small_llama;
using testing::small_mlp;
using testing::tree_of;
using testing::write_pass;

Pass pass_of(const job::Job& job, PassOptions options = {}) {
    ModuleTree tree = tree_of(job);
    return write_pass(tree, job, options);
}

job::Job checkpointed(job::Job job, const std::string& classes) {
    job.memory.activation_checkpointing = job::parse_modules(classes);
    return job;
}

job::Job frozen(job::Job job, const std::string& classes) {
    job.train.freeze = job::parse_modules(classes);
    return job;
}

job::Job in_bf16(job::Job job) {
    job.precision = {job::Precision::bf16, job::Precision::bf16, job::Precision::bf16};
    return job;
}

std::vector<job::Job> all_models() {
    job::Job tied = small_gpt();
    tied.model.tied_embeddings = true;
    tied.model.dropout = 0.1;
    job::Job llama = small_llama();
    llama.model.dropout = 0.1;
    job::Job fused = llama;
    fused.model.attention = job::AttentionKind::fused;
    job::Job mlp = small_mlp(), gpt = small_gpt();  // the matmul computes the activation, too
    mlp.model.fused_activation = gpt.model.fused_activation = true;
    job::Job bert = small_bert();
    bert.model.tied_embeddings = true;
    bert.model.dropout = 0.1;
    return {small_mlp(), small_gpt(), tied, small_llama(), llama, fused, mlp, gpt, small_bert(), bert};
}

// --- in general ------------------------------------------------------------------------------------------

TEST(ModelPlans, UseNothingThatIsFreedAndFreeAll) {
    for (const job::Job& model : all_models()) {
        const std::string block = model.model.type == job::ModelType::mlp    ? "module:Sequential"
                                  : model.model.type == job::ModelType::gpt  ? "module:Block"
                                  : model.model.type == job::ModelType::bert ? "module:BertLayer"
                                                                             : "module:LlamaBlock";
        for (const job::Job& job :
             {model, in_bf16(model), checkpointed(model, block), frozen(model, "none")}) {
            const Pass pass = pass_of(job, {.finite_flag = true});
            EXPECT_EQ(pass.dangling(), 0);
            plan::MemoryAccount account;
            account.walk(pass.plan);
            EXPECT_EQ(account.counter().live_bytes(), 0);
            EXPECT_GT(account.counter().peak().bytes, 0);
        }
    }
}

TEST(ModelPlans, MakeEachGradientOnce) {
    for (const job::Job& job : all_models()) {
        const ModuleTree tree = tree_of(job);
        const Pass pass = pass_of(job);
        for (const Parameter* parameter : tree.parameters) {
            const bool tied = job.model.tied_embeddings && parameter->path == "token_embedding.weight";
            ASSERT_TRUE(pass.ready.contains(parameter->path)) << parameter->path;
            EXPECT_EQ(pass.ready.at(parameter->path), tied ? 2 : 1) << parameter->path;
        }
    }
}

// Evaluation: no backward, no dropout, and no activation outlives its last use.
TEST(ModelPlans, WithoutABackwardKeepNothing) {
    for (const job::Job& job : all_models()) {
        const Pass pass = pass_of(job, {.backward = false, .training = false});
        EXPECT_TRUE(pass.kernels(plan::Phase::backward).empty());
        EXPECT_EQ(pass.count(plan::Kernel::dropout_forward), 0);
        EXPECT_EQ(pass.dangling(), 0);
        EXPECT_TRUE(pass.ready.empty());
        if (job.model.type == job::ModelType::mlp) continue;
        // Twice the layers need no more memory, since no block keeps anything.
        job::Job deeper = job;
        deeper.model.layers *= 2;
        EXPECT_EQ(pass_of(deeper, {.backward = false, .training = false}).peak(), pass.peak());
    }
}

TEST(ModelPlans, TakeAnyBatch) {
    for (job::Job job : {small_gpt(), small_llama()}) {
        job.data.batch = 1;
        const Pass pass = pass_of(job, {.backward = false, .training = false});
        EXPECT_EQ(pass.all(plan::Kernel::attention_forward).front()->kernel().dims[0], 1);
    }
}

// --- attention -------------------------------------------------------------------------------------------

// 2 blocks. Plain keeps the probabilities of each, batch * heads * context^2 = 2 * 2 * 128^2 floats; fused
// keeps one number per row.
TEST(ModelPlans, KeepNoProbabilitiesWithFusedAttention) {
    job::Job job = small_gpt();
    job.model.context = 128;  // so that the probabilities are the largest part
    job.model.attention = job::AttentionKind::plain;
    const Pass plain = pass_of(job);
    job.model.attention = job::AttentionKind::fused;
    const Pass fused = pass_of(job);
    EXPECT_EQ(fused.count(plan::Kernel::attention_forward), 0);
    EXPECT_EQ(fused.count(plan::Kernel::fused_attention_forward), 2);
    EXPECT_EQ(fused.count(plan::Kernel::fused_attention_backward), 2);
    EXPECT_EQ(fused.dangling(), 0);
    for (const plan::Buffer& buffer : fused.plan.buffers) {
        EXPECT_THAT(buffer.name, Not(EndsWith("attention.probabilities")));
        const bool of_rows = buffer.name.ends_with("logsumexp") || buffer.name.ends_with(".delta");
        EXPECT_TRUE(!of_rows || buffer.bytes == 2 * 2 * 128 * 4) << buffer.name;
    }
    // For each block, the probabilities are saved, and one number per row is added.
    const std::int64_t saved = 2 * (2 * 2 * 128 * 128 - 2 * 2 * 128) * 4;
    EXPECT_GE(plain.peak() - fused.peak(), saved / 2);
    EXPECT_LE(plain.peak() - fused.peak(), saved + 128 * 128 * 4);
}

// --- dropout ---------------------------------------------------------------------------------------------

// After the embedding, and in each of the 2 blocks after the attention and after the feed-forward part.
TEST(ModelPlans, DropInFivePlacesWithTheMaskOfTheModule) {
    for (job::Job job : {small_gpt(), small_llama()}) {
        job.model.dropout = 0.25;
        const Pass pass = pass_of(job);
        const auto forward = pass.all(plan::Kernel::dropout_forward);
        const auto backward = pass.all(plan::Kernel::dropout_backward);
        ASSERT_EQ(forward.size(), 5);
        ASSERT_EQ(backward.size(), 5);
        std::set<std::int64_t> keys;
        for (std::size_t i = 0; i < 5; ++i) {
            EXPECT_EQ(forward[i]->kernel().scalars[0], 0.25);
            EXPECT_EQ(forward[i]->kernel().dims[0], 2 * 16 * 32);  // batch, context, width
            EXPECT_EQ(backward[4 - i]->kernel().dims, forward[i]->kernel().dims);
            EXPECT_EQ(backward[4 - i]->kernel().scalars, forward[i]->kernel().scalars);
            keys.insert(forward[i]->kernel().dims[1]);
        }
        EXPECT_EQ(keys.size(), 5);
        EXPECT_TRUE(
            keys.contains(static_cast<std::int64_t>(kernels::stream_of("blocks.1.attention.dropout"))));
    }
}

// --- bf16 ------------------------------------------------------------------------------------------------

TEST(ModelPlans, InBf16ComputeInBf16ExceptTheLoss) {
    for (const job::Job& model : all_models()) {
        const Pass pass = pass_of(in_bf16(model));
        for (const plan::Phase phase : {plan::Phase::forward, plan::Phase::backward}) {
            for (const plan::Op* op : pass.kernels(phase)) {
                const bool loss = op->kernel().kernel == plan::Kernel::mse_forward ||
                                  op->kernel().kernel == plan::Kernel::mse_backward ||
                                  op->kernel().kernel == plan::Kernel::cross_entropy_forward ||
                                  op->kernel().kernel == plan::Kernel::cross_entropy_backward;
                EXPECT_EQ(op->kernel().dtype, loss ? plan::DType::fp32 : plan::DType::bf16)
                    << pass.plan.names[static_cast<std::size_t>(op->name)];
            }
        }
        // The output is converted to fp32, its gradient to bf16; an MLP's input is converted to bf16, and has
        // no gradient.
        const bool mlp = model.model.type == job::ModelType::mlp;
        EXPECT_EQ(pass.count(plan::Kernel::cast_to_fp32), 1);
        EXPECT_EQ(pass.count(plan::Kernel::cast_from_fp32), mlp ? 2 : 1);
        EXPECT_EQ(pass.all(plan::Kernel::cast_from_fp32).back()->phase, plan::Phase::backward);
        // Activations take half the bytes, except the logits' fp32 copy, probabilities and gradient.
        EXPECT_LT(pass.peak(), pass_of(model).peak());
    }
}

TEST(ModelPlans, InFp32CastNothing) {
    for (const job::Job& job : all_models()) {
        const Pass pass = pass_of(job);
        EXPECT_EQ(pass.count(plan::Kernel::cast_to_fp32) + pass.count(plan::Kernel::cast_from_fp32), 0);
    }
}

TEST(ModelPlans, InBf16KeepTheStatisticsOfNormsInFp32) {
    const Pass gpt = pass_of(in_bf16(small_gpt()));
    const plan::Op& norm = *gpt.all(plan::Kernel::layer_norm_forward).front();
    EXPECT_EQ(norm.args[0].bytes, 2 * 16 * 32 * 2);  // rows * width * bf16
    EXPECT_EQ(norm.args[1].bytes, 2 * 16 * 4);       // rows * fp32
    EXPECT_EQ(norm.args[2].bytes, 2 * 16 * 4);
    const Pass llama = pass_of(in_bf16(small_llama()));
    EXPECT_EQ(llama.all(plan::Kernel::rms_norm_forward).front()->args[1].bytes, 2 * 16 * 4);
}

TEST(ModelPlans, KeepTheRotaryTableInTheTypeOfBuffers) {
    job::Job job = in_bf16(small_llama());
    job.precision.buffer = job::Precision::fp32;
    const Pass pass = pass_of(job);
    ASSERT_EQ(pass.count(plan::Kernel::rotary_table), 1);
    const plan::Op& table = *pass.all(plan::Kernel::rotary_table).front();
    EXPECT_EQ(table.kernel().dtype, plan::DType::fp32);
    EXPECT_EQ(table.args[0].bytes, 16 * 8 * 4);  // context * head width * fp32: half cosines, half sines
    EXPECT_EQ(table.kernel().scalars[0], 10000);
    for (const plan::Op* turn : pass.all(plan::Kernel::rotary_forward)) {
        EXPECT_EQ(turn->args[2].buffer, table.args[0].buffer);
        // batch, context, rotated heads (4 of queries, 2 of keys), all heads, head width, type of the table
        EXPECT_EQ(turn->kernel().dims,
                  (std::array<std::int64_t, 6>{2, 16, 6, 8, 8, input_dim(plan::DType::fp32)}));
    }
}

// --- frozen parameters -----------------------------------------------------------------------------------

// GPT with frozen embeddings: the lowest trained parameter is blocks.0.norm_1's weight.
TEST(ModelPlans, FrozenEmbeddingsEndTheBackwardAtTheFirstNorm) {
    const Pass pass = pass_of(frozen(small_gpt(), "module:Embedding"));
    EXPECT_EQ(pass.count(plan::Kernel::embedding_backward), 0);
    EXPECT_EQ(pass.count(plan::Kernel::position_backward), 0);
    const plan::Op& last = *pass.kernels(plan::Phase::backward).back();
    ASSERT_EQ(last.kernel().kernel, plan::Kernel::layer_norm_backward);
    EXPECT_LT(last.args[0].buffer, 0) << "nobody wants the gradient of the first norm's input";
    EXPECT_GE(last.args[1].buffer, 0);
    EXPECT_FALSE(pass.ready.contains("token_embedding.weight"));
    EXPECT_TRUE(pass.ready.contains("blocks.0.norm_1.weight"));
}

// Frozen Linear layers pass the gradient on (dx) but compute none of their own, and do not keep their input.
TEST(ModelPlans, FrozenLayersPassTheGradientOn) {
    const Pass all = pass_of(small_gpt());
    const Pass pass = pass_of(frozen(small_gpt(), "module:Linear"));
    EXPECT_EQ(pass.count(plan::Kernel::linear_backward_weight), 0);
    EXPECT_EQ(pass.count(plan::Kernel::linear_backward_bias), 0);
    EXPECT_EQ(pass.count(plan::Kernel::linear_backward_input),
              all.count(plan::Kernel::linear_backward_input));
    EXPECT_TRUE(pass.ready.contains("token_embedding.weight"));
    EXPECT_FALSE(pass.ready.contains("head.weight"));
    EXPECT_LT(pass.peak(), all.peak());
}

// Frozen norms: only dx; their args for dgamma and dbeta have no buffer.
TEST(ModelPlans, FrozenNormsComputeOnlyTheInputsGradient) {
    const Pass gpt = pass_of(frozen(small_gpt(), "module:LayerNorm"));
    for (const plan::Op* op : gpt.all(plan::Kernel::layer_norm_backward)) {
        EXPECT_GE(op->args[0].buffer, 0);
        EXPECT_LT(op->args[1].buffer, 0);
        EXPECT_LT(op->args[2].buffer, 0);
    }
    const Pass llama = pass_of(frozen(small_llama(), "module:RMSNorm"));
    for (const plan::Op* op : llama.all(plan::Kernel::rms_norm_backward)) {
        EXPECT_GE(op->args[0].buffer, 0);
        EXPECT_LT(op->args[1].buffer, 0);
    }
}

// Everything is frozen except the last norm and the head: the blocks keep nothing and have no backward.
TEST(ModelPlans, HaveNoGradientBelowTheLowestTrainedParameter) {
    job::Job job = small_gpt();
    ModuleTree tree = tree_of(job);
    for (Parameter* parameter : tree.parameters) parameter->trained = parameter->path == "head.weight";
    const Pass pass = write_pass(tree, job);
    EXPECT_THAT(
        pass.kinds(plan::Phase::backward),
        ::testing::ElementsAre(plan::Kernel::cross_entropy_backward, plan::Kernel::linear_backward_weight));
    EXPECT_EQ(pass.ready.size(), 1);
}

TEST(ModelPlans, ATiedFrozenTableLeavesTheRestTrainable) {
    job::Job job = small_gpt();
    job.model.tied_embeddings = true;
    const Pass pass = pass_of(frozen(job, "module:Embedding"));
    EXPECT_FALSE(pass.ready.contains("token_embedding.weight"));
    EXPECT_TRUE(pass.ready.contains("norm.weight"));
}

TEST(ModelPlans, FrozenBlocksPassTheGradientThrough) {
    const Pass pass = pass_of(frozen(small_llama(), "module:LlamaBlock"));
    EXPECT_EQ(pass.ready.size(), 3);  // the embedding, the last norm, the head
    EXPECT_EQ(pass.count(plan::Kernel::linear_backward_weight), 1);
    EXPECT_EQ(pass.count(plan::Kernel::linear_backward_input), 2 * 5 + 1);
    EXPECT_EQ(pass.dangling(), 0);
}

// --- activation checkpointing ----------------------------------------------------------------------------

TEST(ModelPlans, CheckpointedModulesRecomputeTheForward) {
    for (job::Job job : {small_gpt(), small_llama()}) {
        job.model.dropout = 0.1;
        const char* block = job.model.type == job::ModelType::gpt ? "module:Block" : "module:LlamaBlock";
        const Pass plain = pass_of(job);
        const Pass pass = pass_of(checkpointed(job, block));
        // The same forward.
        EXPECT_EQ(pass.kinds(plan::Phase::forward), plain.kinds(plan::Phase::forward));
        // The recomputation of the blocks, last first, equals their forward, kernel for kernel and with the
        // same dims, but for the last addition: no node saves its result.
        const auto of_block = [&](const Pass& in, plan::Phase phase, const std::string& path) {
            const ModuleTree tree = tree_of(job);
            std::vector<std::pair<plan::Kernel, std::array<std::int64_t, 6>>> found;
            for (const plan::Op* op : in.kernels(phase)) {
                if (op->module < 0) continue;
                const std::string& of = tree.modules[static_cast<std::size_t>(op->module)]->path;
                if (of.starts_with(path)) found.emplace_back(op->kernel().kernel, op->kernel().dims);
            }
            return found;
        };
        for (const char* path : {"blocks.0", "blocks.1"}) {
            auto needed = of_block(pass, plan::Phase::forward, path);
            ASSERT_EQ(needed.back().first, plan::Kernel::add);
            needed.pop_back();
            EXPECT_EQ(of_block(pass, plan::Phase::recompute, path), needed);
            EXPECT_EQ(of_block(pass, plan::Phase::backward, path),
                      of_block(plain, plan::Phase::backward, path));
        }
        EXPECT_TRUE(of_block(pass, plan::Phase::recompute, "norm").empty());
        EXPECT_EQ(pass.kinds(plan::Phase::backward), plain.kinds(plan::Phase::backward));
        EXPECT_EQ(pass.ready, plain.ready);
    }
}

// Only the input of a block is kept: one more layer costs batch * context * width floats.
TEST(ModelPlans, CheckpointedModulesKeepOnlyTheInput) {
    for (job::Job job :
         {checkpointed(small_gpt(), "module:Block"), checkpointed(small_llama(), "module:LlamaBlock")}) {
        job.model.layers = 4;
        const std::int64_t four = pass_of(job).peak();
        job.model.layers = 5;
        const std::int64_t five = pass_of(job).peak();
        EXPECT_EQ(five - four, 2 * 16 * 32 * 4);
        job.memory.activation_checkpointing = {};
        EXPECT_GT(pass_of(job).peak(), five);
    }
}

// A recomputation opens no range of the module (it would count as an occurrence) but one named "recompute".
TEST(ModelPlans, EnterEachCheckpointedModuleOnce) {
    const Pass pass = pass_of(checkpointed(small_gpt(), "module:Block"));
    const auto ranges = [&](const std::string& name) {
        return std::count_if(pass.plan.ops.begin(), pass.plan.ops.end(), [&](const plan::Op& op) {
            return op.kind == plan::OpKind::push_range &&
                   pass.plan.names[static_cast<std::size_t>(op.name)] == name;
        });
    };
    EXPECT_EQ(ranges("nn.Module: Block_0"), 1);
    EXPECT_EQ(ranges("nn.Module: Block_1"), 1);
    EXPECT_EQ(ranges("recompute"), 2);
    EXPECT_EQ(ranges("CheckpointFunctionBackward"), 2);
}

TEST(ModelPlans, NestedCheckpointsComputeTheInnerPartTwiceMore) {
    const Pass pass = pass_of(checkpointed(small_gpt(), "module:Block,FeedForward"));
    // Each of 2 blocks: forward, the block's recomputation, the feed-forward part's own.
    EXPECT_EQ(pass.count(plan::Kernel::gelu_forward), 2 * 3);
    EXPECT_EQ(pass.count(plan::Kernel::attention_forward), 2 * 2);
    EXPECT_EQ(pass.ready, pass_of(small_gpt()).ready);
    EXPECT_EQ(pass.dangling(), 0);
}

// Covers a block below which no gradient is needed, and the model as a whole.
TEST(ModelPlans, CheckpointedModulesRespectFrozenParameters) {
    const Pass pass = pass_of(frozen(checkpointed(small_gpt(), "module:Block"), "module:Embedding"));
    EXPECT_EQ(pass.kernels(plan::Phase::backward).back()->kernel().kernel, plan::Kernel::layer_norm_backward);
    EXPECT_EQ(pass.dangling(), 0);
    const Pass whole = pass_of(checkpointed(small_llama(), "module:Llama"));
    EXPECT_EQ(whole.count(plan::Kernel::rotary_table), 2);
    EXPECT_EQ(whole.dangling(), 0);
}

TEST(ModelPlans, CheckpointedModulesRunPlainlyWithoutABackward) {
    const PassOptions evaluation{.backward = false, .training = false};
    EXPECT_EQ(pass_of(checkpointed(small_gpt(), "module:Block"), evaluation).plan.ops.size(),
              pass_of(small_gpt(), evaluation).plan.ops.size());
}

// --- the finite check ------------------------------------------------------------------------------------

TEST(ModelPlans, CheckTheOutputOfEachLeafModuleOnce) {
    for (const job::Job& job : all_models()) {
        const ModuleTree tree = tree_of(job);
        const Pass pass = pass_of(job, {.finite_flag = true});
        std::multiset<std::string> checked;
        for (const plan::Op& op : pass.plan.ops) {
            if (op.kind != plan::OpKind::kernel || !op.kernel().checks_output) continue;
            EXPECT_EQ(op.phase, plan::Phase::forward);
            EXPECT_EQ(op.args.back().buffer, pass.finite_flag);
            EXPECT_EQ(op.args.back().bytes, 4);
            checked.insert(tree.modules[static_cast<std::size_t>(op.module)]->path);
        }
        for (const Module* module : tree.modules) {
            const bool leaf = module->children().empty() && module->class_name() != "Dropout";
            const bool computes = module->class_name().ends_with("SelfAttention") ||  // the attention itself
                                  module->class_name() == "SwiGLU";                   // its matmul
            const bool in_product = job.model.fused_activation &&
                                    (module->class_name() == "ReLU" || module->class_name() == "GELU");
            EXPECT_EQ(checked.count(module->path), (leaf && !in_product) || computes ? 1 : 0) << module->path;
        }
    }
}

TEST(ModelPlans, DoNotCheckARecomputation) {
    const Pass pass = pass_of(checkpointed(small_gpt(), "module:Block"), {.finite_flag = true});
    for (const plan::Op* op : pass.kernels(plan::Phase::recompute)) EXPECT_FALSE(op->kernel().checks_output);
    EXPECT_TRUE(std::any_of(pass.plan.ops.begin(), pass.plan.ops.end(), [](const plan::Op& op) {
        return op.kind == plan::OpKind::kernel && op.kernel().checks_output;
    }));
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::model
