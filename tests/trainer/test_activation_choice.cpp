// model.activation, with each row of activations.def: which kernels and modules a model then has, and that
// the memory account agrees with a real run.
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "jobs.h"
#include "tests/trainer/model_testing.h"
#include "trainer/plan/kernel_table.h"

namespace shardscope::trainer::model {
namespace TEST_FILE {

using testing::Pass;
using testing::small_bert;
using testing::small_gpt;
using testing::small_mlp;
using testing::tree_of;

std::vector<kernels::ActivationKind> all_kinds() {
    std::vector<kernels::ActivationKind> kinds;
    for (std::size_t kind = 1; kind < std::size(kernels::kActivationNames); ++kind)
        kinds.push_back(static_cast<kernels::ActivationKind>(kind));
    return kinds;
}

job::Job with(job::Job job, kernels::ActivationKind kind) {
    job.model.activation = kind;
    return job;
}

using Counts = std::map<std::string, int>;

// How often each kernel of an activation occurs.
Counts activations_of(const job::Job& job) {
    ModuleTree tree = tree_of(job);
    const Pass pass = testing::write_pass(tree, job);
    Counts counts;
    for (const plan::Op& op : pass.plan.ops) {
        if (op.kind != plan::OpKind::kernel) continue;
        const std::string name(kernel_info(op.kernel().kernel).name);
        for (const kernels::ActivationKind kind : all_kinds())
            if (name.starts_with(std::string(name_of(kind)) + "_")) ++counts[name];
    }
    return counts;
}

TEST(ActivationChoice, IsByDefaultThatOfTheModelsType) {
    EXPECT_EQ(activations_of(small_mlp()), (Counts{{"relu_forward", 3}, {"relu_backward", 3}}));
    EXPECT_EQ(activations_of(small_gpt()), (Counts{{"gelu_forward", 2}, {"gelu_backward", 2}}));
    EXPECT_EQ(activations_of(small_bert()), (Counts{{"gelu_forward", 3}, {"gelu_backward", 3}}));
}

// Also in the head of a bert.
TEST(ActivationChoice, ReplacesEachActivationOfTheModel) {
    for (const kernels::ActivationKind kind : all_kinds()) {
        const std::string name(name_of(kind));
        for (const auto& [job, count] : {std::pair(small_mlp(), 3), {small_gpt(), 2}, {small_bert(), 3}}) {
            const Counts expected = {{name + "_forward", count}, {name + "_backward", count}};
            EXPECT_EQ(activations_of(with(job, kind)), expected);
        }
    }
}

TEST(ActivationChoice, NamesTheModuleInItsPath) {
    for (const kernels::ActivationKind kind : all_kinds()) {
        std::set<std::string> paths;
        for (const Module* module : tree_of(with(small_gpt(), kind)).modules) paths.insert(module->path);
        EXPECT_TRUE(paths.contains("blocks.1.feed_forward." + std::string(name_of(kind))));
    }
}

TEST(ActivationChoice, CanBeTheModelsOwn) {
    EXPECT_EQ(testing::run(with(testing::mlp_job(4, 24, 3, 2), kernels::ActivationKind::relu)).losses,
              testing::run(testing::mlp_job(4, 24, 3, 2)).losses);
}

// The losses of a job differ with its activation, not with the way that it is sharded.
TEST(ActivationChoice, ChangesTheLossesWhateverTheStrategy) {
    const testing::SampleText text;
    std::set<std::vector<double>> all;
    for (const kernels::ActivationKind kind : all_kinds()) {
        const job::Job job = with(testing::gpt_job(text, 2, 2), kind);
        const std::vector<double> losses = testing::run(testing::with_wrap(job, "module:Block")).losses;
        EXPECT_EQ(testing::run(testing::with_wrap(job, "root")).losses, losses) << name_of(kind);
        all.insert(losses);
    }
    EXPECT_EQ(all.size(), all_kinds().size());
}

TEST(ActivationChoice, IsInTheMemoryAccount) {
    const testing::SampleText text;
    job::Job gpt = testing::with_wrap(testing::gpt_job(text, 2, 2), "module:Block"), bf16 = gpt,
             checkpointed = gpt;
    bf16.precision = {job::Precision::bf16, job::Precision::bf16, job::Precision::bf16};
    checkpointed.memory.activation_checkpointing = job::parse_modules("module:FeedForward");
    for (const kernels::ActivationKind kind : all_kinds()) {
        for (const job::Job& model :
             {testing::with_wrap(testing::mlp_job(4, 24, 3, 2), "module:Linear"), gpt, bf16, checkpointed}) {
            const job::Job job = with(model, kind);
            const plan::MemoryPeak predicted = sharding::Program(job).predict().peak;
            for (const plan::MemoryPeak& real : testing::run(job).peaks) {
                EXPECT_EQ(real.bytes, predicted.bytes) << name_of(kind);
                EXPECT_EQ(real.at_peak, predicted.at_peak) << name_of(kind);
                EXPECT_EQ(real.modules, predicted.modules) << name_of(kind);
            }
        }
    }
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::model
