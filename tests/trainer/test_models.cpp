// What models consist of: parameters, names in the tree, initialization, tied and chosen modules.
#include <cmath>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/model_testing.h"
#include "trainer/job/shapes.h"
#include "trainer/model/gpt.h"
#include "trainer/model/llama.h"
#include "trainer/model/selection.h"

namespace shardscope::trainer::model {
namespace TEST_FILE {

using testing::elements;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::small_bert;
using testing::small_gpt;
using testing::small_llama;
using testing::small_mlp;
using testing::tree_of;

job::Job named(const std::string& name) {
    return job::parse_job("[model]\nname = '" + name + "'\n[data]\ntype = 'text'\npath = 'x'", "job.toml");
}

// V tokens, T positions, L layers of width h, f features inside the feed-forward part:
//   gpt    (V + T) h + L (4 h^2 + 4 h + 2 h f + f + h + 4 h) + 2 h, the head tied
//   bert   (V + T) h + 2 h + L (4 h^2 + 4 h + 2 h f + f + h + 4 h) + h^2 + 3 h, the head tied; released
//          models also have 2 h for segments and V biases of the head: 109,514,298 for bert-base
//   llama  V h (1 + untied) + L (h (h + 2 kv) + h^2 + 3 h f + 2 h) + h
TEST(Models, HaveThePublishedNumbersOfParameters) {
    EXPECT_EQ(elements(tree_of(named("gpt2"))), 124'439'808);
    EXPECT_EQ(elements(tree_of(named("gpt2-medium"))), 354'823'168);
    EXPECT_EQ(elements(tree_of(named("gpt2-large"))), 774'030'080);
    EXPECT_EQ(elements(tree_of(named("gpt2-xl"))), 1'557'611'200);
    EXPECT_EQ(elements(tree_of(named("bert-base"))), 109'514'298 - 2 * 768 - 30'522);
    EXPECT_EQ(elements(tree_of(named("bert-large"))), 335'174'458 - 2 * 1024 - 30'522);
    EXPECT_EQ(elements(tree_of(named("bert-2.5b"))), 2'451'307'520);
    EXPECT_EQ(elements(tree_of(named("llama-1b"))), 1'235'814'400);
    EXPECT_EQ(elements(tree_of(named("llama-8b"))), 8'030'261'248);
    EXPECT_EQ(elements(tree_of(named("llama-70b"))), 70'553'706'496);
}

TEST(Models, OfTheTestsAreSmall) {
    // 256 h + 16 h + 2 (12 h^2 + 13 h) + 2 h + 256 h with h = 32
    EXPECT_EQ(elements(tree_of(small_gpt())), (256 + 16 + 2 * 13 + 2 + 256) * 32 + 2 * 12 * 32 * 32);
    job::Job tied = small_gpt();
    tied.model.tied_embeddings = true;
    EXPECT_EQ(elements(tree_of(tied)), elements(tree_of(small_gpt())) - 256 * 32);
    // kv = 2 heads of 8; 8/3 of 32 is 85, rounded up to 96
    EXPECT_EQ(elements(tree_of(small_llama())),
              2 * 256 * 32 + 2 * (32 * (32 + 2 * 16) + 32 * 32 + 3 * 32 * 96 + 2 * 32) + 32);
}

TEST(Models, RoundTheFeedForwardWidthOfALlama) {
    EXPECT_EQ(llama_feed_forward(32), 96);       // 85
    EXPECT_EQ(llama_feed_forward(384), 1024);    // 1024 exactly
    EXPECT_EQ(llama_feed_forward(512), 1536);    // 1365, up to a multiple of 256
    EXPECT_EQ(llama_feed_forward(4096), 11008);  // Llama 7B's
}

TEST(Models, TakeTheVocabularyFromTheJob) {
    job::Job job = small_gpt();
    job.model.vocabulary = 300;
    const ModuleTree tree = tree_of(job);
    EXPECT_EQ(tree.parameters.front()->rows, 300);
    EXPECT_EQ(tree.parameters.back()->rows, 300);
}

std::string listed(const ModuleTree& tree) {
    std::string text;
    for (const Module* module : tree.modules) text += module->name + " " + module->path + "\n";
    return text;
}

TEST(Models, NameTheModulesOfAGpt) {
    job::Job job = small_gpt();
    job.model.layers = 1;
    job.model.dropout = 0.1;
    EXPECT_EQ(listed(tree_of(job)),
              "GPT_0 \n"
              "Embedding_0 token_embedding\n"
              "Embedding_1 position_embedding\n"
              "Dropout_0 dropout\n"
              "Block_0 blocks.0\n"
              "LayerNorm_0 blocks.0.norm_1\n"
              "CausalSelfAttention_0 blocks.0.attention\n"
              "Linear_0 blocks.0.attention.qkv\n"
              "Linear_1 blocks.0.attention.projection\n"
              "Dropout_1 blocks.0.attention.dropout\n"
              "LayerNorm_1 blocks.0.norm_2\n"
              "FeedForward_0 blocks.0.feed_forward\n"
              "Linear_2 blocks.0.feed_forward.expand\n"
              "GELU_0 blocks.0.feed_forward.gelu\n"
              "Linear_3 blocks.0.feed_forward.projection\n"
              "Dropout_2 blocks.0.feed_forward.dropout\n"
              "LayerNorm_2 norm\n"
              "Linear_4 head\n");
}

TEST(Models, NameTheModulesOfALlama) {
    job::Job job = small_llama();
    job.model.layers = 1;
    EXPECT_EQ(listed(tree_of(job)),
              "Llama_0 \n"
              "Embedding_0 token_embedding\n"
              "LlamaBlock_0 blocks.0\n"
              "RMSNorm_0 blocks.0.norm_1\n"
              "CausalSelfAttention_0 blocks.0.attention\n"
              "Linear_0 blocks.0.attention.qkv\n"
              "Linear_1 blocks.0.attention.projection\n"
              "RMSNorm_1 blocks.0.norm_2\n"
              "SwiGLU_0 blocks.0.feed_forward\n"
              "Linear_2 blocks.0.feed_forward.w1\n"
              "Linear_3 blocks.0.feed_forward.w3\n"
              "Linear_4 blocks.0.feed_forward.w2\n"
              "RMSNorm_2 norm\n"
              "Linear_5 head\n");
}

TEST(Models, NameTheModulesOfABert) {
    job::Job job = small_bert();
    job.model.layers = 1;
    EXPECT_EQ(listed(tree_of(job)),
              "Bert_0 \n"
              "Embedding_0 token_embedding\n"
              "Embedding_1 position_embedding\n"
              "LayerNorm_0 embedding_norm\n"
              "BertLayer_0 layers.0\n"
              "SelfAttention_0 layers.0.attention\n"
              "Linear_0 layers.0.attention.qkv\n"
              "Linear_1 layers.0.attention.projection\n"
              "LayerNorm_1 layers.0.norm_1\n"
              "FeedForward_0 layers.0.feed_forward\n"
              "Linear_2 layers.0.feed_forward.expand\n"
              "GELU_0 layers.0.feed_forward.gelu\n"
              "Linear_3 layers.0.feed_forward.projection\n"
              "LayerNorm_2 layers.0.norm_2\n"
              "Linear_4 transform\n"
              "GELU_1 gelu\n"
              "LayerNorm_3 norm\n"
              "Linear_5 head\n");
}

const Parameter& find(const ModuleTree& tree, const std::string& path) {
    for (const Parameter* parameter : tree.parameters) {
        if (parameter->path == path) return *parameter;
    }
    throw std::logic_error("no parameter " + path);
}

TEST(Models, StartAsGpt2Does) {
    const ModuleTree tree = tree_of(small_gpt());
    const float residual = 0.02F / std::sqrt(2.0F * 2);  // two layers, two additions each
    for (const auto& [path, std] :
         {std::pair{"token_embedding.weight", 0.02F}, std::pair{"blocks.1.attention.qkv.weight", 0.02F},
          std::pair{"blocks.1.attention.projection.weight", residual},
          std::pair{"blocks.1.feed_forward.expand.weight", 0.02F},
          std::pair{"blocks.1.feed_forward.projection.weight", residual}, std::pair{"head.weight", 0.02F}}) {
        EXPECT_EQ(find(tree, path).init.kind, InitKind::normal) << path;
        EXPECT_FLOAT_EQ(find(tree, path).init.b, std) << path;
    }
    EXPECT_EQ(find(tree, "blocks.0.attention.qkv.bias").init.a, 0);
    EXPECT_EQ(find(tree, "blocks.0.norm_1.weight").init.a, 1);
}

// The table is one parameter with two users; the head has none of its own.
TEST(Models, TieTheHeadToTheTokenEmbedding) {
    for (job::Job job : {small_gpt(), small_llama()}) {
        job.model.tied_embeddings = true;
        const ModuleTree tree = tree_of(job);
        const Module& embedding = *tree.modules[1];
        const Module& head = *tree.modules.back();
        EXPECT_EQ(head.path, "head");
        EXPECT_TRUE(head.parameters().empty());
        EXPECT_THAT(head.shared_parameters(), ElementsAre(&embedding.parameters().front()));
        const Parameter& table = find(tree, "token_embedding.weight");
        const auto id = static_cast<std::size_t>(table.id);
        EXPECT_EQ(tree.owners[id], embedding.id);
        EXPECT_THAT(tree.users[id], ElementsAre(embedding.id, head.id));
        for (std::size_t other = 0; other < tree.parameters.size(); ++other) {
            if (other == id) continue;
            EXPECT_THAT(tree.users[other], ElementsAre(tree.owners[other]));
        }
    }
}

TEST(Models, FreezeModulesAndWhatIsInsideThem) {
    job::Job job = small_gpt();
    job.train.freeze = job::parse_modules("module:Block,Embedding");
    for (const Parameter* parameter : tree_of(job).parameters) {
        EXPECT_EQ(parameter->trained,
                  parameter->path.starts_with("norm.") || parameter->path == "head.weight")
            << parameter->path;
    }
}

// The head's weight is the table, whichever of its two users is frozen.
TEST(Models, FreezeATiedTableWithTheHead) {
    job::Job job = small_gpt();
    job.model.tied_embeddings = true;
    job.train.freeze = job::parse_modules("module:Linear");
    const ModuleTree tree = tree_of(job);
    EXPECT_FALSE(find(tree, "token_embedding.weight").trained);
    EXPECT_TRUE(find(tree, "position_embedding.weight").trained);
}

TEST(Models, CheckpointClasses) {
    job::Job job = small_llama();
    job.memory.activation_checkpointing = job::parse_modules("module:LlamaBlock,SwiGLU");
    const ModuleTree tree = tree_of(job);
    for (const Module* module : tree.modules) {
        EXPECT_EQ(module->checkpointed,
                  module->class_name() == "LlamaBlock" || module->class_name() == "SwiGLU")
            << module->path;
    }
}

std::string error_of(const job::Job& job) {
    try {
        make_model(job);
    } catch (const job::JobError& error) {
        return error.what();
    }
    return "no error";
}

TEST(Models, RefuseClassesThatTheyLack) {
    job::Job job = small_mlp();
    job.origins["train.freeze"] = "job.toml:3";
    job.origins["memory.activation_checkpointing"] = "command line";
    job.train.freeze = job::parse_modules("module:Block");
    EXPECT_EQ(error_of(job),
              "job.toml:3: train.freeze: the model has no module of class Block; its classes are Linear, "
              "MLP, ReLU, Sequential");
    job.train.freeze = {};
    job.memory.activation_checkpointing = job::parse_modules("module:ReLU,Block");
    EXPECT_EQ(error_of(job),
              "command line: memory.activation_checkpointing: the model has no module of class Block; its "
              "classes are Linear, MLP, ReLU, Sequential");
}

TEST(Models, RefuseToFreezeWhatHasNoParameters) {
    job::Job job = small_mlp();
    job.train.freeze = job::parse_modules("module:ReLU");
    EXPECT_EQ(error_of(job), "train.freeze: modules of class ReLU have no parameters; omit it");
}

TEST(Models, FreezeByNamesThatOverlap) {
    job::Job job = small_mlp();
    job.train.freeze = job::parse_modules("path:net.?,net.0");
    EXPECT_EQ(error_of(job),
              "train.freeze: path:net.?,net.0 leaves no parameter to train; name fewer modules");
}

TEST(Models, FreezeAndCheckpointByPath) {
    job::Job job = small_mlp();
    job.train.freeze = job::parse_modules("path:net.0");
    job.memory.activation_checkpointing = job::parse_modules("every:2,Linear");
    const ModuleTree tree = number_modules(make_model(job));
    for (const Module* module : tree.modules) {
        if (module->class_name() != "Linear") continue;
        EXPECT_EQ(module->parameters()[0].trained, module->path != "net.0") << module->path;
        EXPECT_EQ(module->checkpointed, module->name == "Linear_0" || module->name == "Linear_2")
            << module->path;
    }
    job.train.freeze = job::parse_modules("path:net.1");
    EXPECT_EQ(error_of(job), "train.freeze: modules of path net.1 have no parameters; omit it");
}

TEST(Models, RefuseToTrainNothing) {
    job::Job job = small_mlp();
    job.train.freeze = job::parse_modules("module:Linear");
    EXPECT_EQ(error_of(job), "train.freeze: module:Linear leaves no parameter to train; name fewer modules");
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::model
