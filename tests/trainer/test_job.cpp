// A job file describes a training run: its keys, overrides on the command line, and the help about them.
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trainer/job/job.h"
#include "trainer/job/keys.h"

namespace shardscope::trainer::job {
namespace TEST_FILE {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Job read(const std::string& toml, const std::vector<Override>& overrides = {}) {
    return parse_job(toml, "job.toml", overrides);
}

TEST(Job, AnEmptyFileIsTheDefaultMlpUnderFullShard) {
    const Job job = read("");
    EXPECT_EQ(job.run.steps, 20);
    EXPECT_EQ(job.run.ranks, 1);
    EXPECT_EQ(job.run.trace, "");
    EXPECT_EQ(job.model.type, ModelType::mlp);
    EXPECT_EQ(job.model.width, 256);
    EXPECT_EQ(job.model.layers, 8);
    EXPECT_EQ(job.data.type, DataType::synthetic);
    EXPECT_EQ(job.parallel.mode, ParallelMode::fsdp);
    EXPECT_EQ(job.fsdp.wrap, Wrap{});
    EXPECT_EQ(job.fsdp.backward_prefetch, BackwardPrefetch::pre);
    EXPECT_TRUE(job.fsdp.limit_all_gathers);
    EXPECT_EQ(job.optimizer.type, OptimizerType::sgd);
    EXPECT_EQ(job.optimizer.weight_decay, 0.0);
}

TEST(Job, EveryKeyOfTheFileIsRead) {
    const Job job = read(R"(
        [run]
        steps = 7
        seed = 11
        ranks = 4
        workers = 3
        blas_threads = 2
        trace = "out.sqlite"
        overwrite = true
        [model]
        type = "gpt"
        width = 96
        layers = 5
        bias = false
        heads = 6
        context = 33
        [data]
        type = "text"
        path = "corpus"
        batch = 12
        [parallel]
        mode = "ddp"
        [fsdp]
        sharding_strategy = "FULL_SHARD"
        wrap = "module:Block,Embedding"
        layout = "fsdp1"
        backward_prefetch = "BACKWARD_POST"
        limit_all_gathers = false
        [ddp]
        bucket_cap_mb = 2.5
        first_bucket_mb = 2
        [optimizer]
        type = "adamw"
        lr = 3e-4
        betas = [0.8, 0.95]
        eps = 1e-6
        weight_decay = 0.1
    )");
    EXPECT_EQ(job.run.steps, 7);
    EXPECT_EQ(job.run.seed, 11);
    EXPECT_EQ(job.run.ranks, 4);
    EXPECT_EQ(job.run.workers, 3);
    EXPECT_EQ(job.run.blas_threads, 2);
    EXPECT_EQ(job.run.trace, "out.sqlite");
    EXPECT_TRUE(job.run.overwrite);
    EXPECT_EQ(job.model.type, ModelType::gpt);
    EXPECT_EQ(job.model.width, 96);
    EXPECT_EQ(job.model.layers, 5);
    EXPECT_FALSE(job.model.bias);
    EXPECT_EQ(job.model.heads, 6);
    EXPECT_EQ(job.model.context, 33);
    EXPECT_EQ(job.data.type, DataType::text);
    EXPECT_EQ(job.data.path, "corpus");
    EXPECT_EQ(job.data.batch, 12);
    EXPECT_EQ(job.parallel.mode, ParallelMode::ddp);
    EXPECT_EQ(job.fsdp.wrap.kind, Wrap::Kind::modules);
    EXPECT_THAT(job.fsdp.wrap.modules.names, ElementsAre("Block", "Embedding"));
    EXPECT_EQ(job.fsdp.backward_prefetch, BackwardPrefetch::post);
    EXPECT_FALSE(job.fsdp.limit_all_gathers);
    EXPECT_EQ(job.ddp.bucket_cap_mb, 2.5);
    EXPECT_EQ(job.ddp.first_bucket_mb, 2.0);  // an integer is a number, too
    EXPECT_EQ(job.optimizer.type, OptimizerType::adamw);
    EXPECT_EQ(job.optimizer.lr, 3e-4);
    EXPECT_THAT(job.optimizer.betas, ElementsAre(0.8, 0.95));
    EXPECT_EQ(job.optimizer.eps, 1e-6);
    EXPECT_EQ(job.optimizer.weight_decay, 0.1);
}

TEST(Job, AdamwDecaysWeightsByPyTorchsDefault) {
    EXPECT_EQ(read("[optimizer]\ntype = 'adamw'").optimizer.weight_decay, 0.01);
    EXPECT_EQ(read("[optimizer]\ntype = 'adamw'\nweight_decay = 0").optimizer.weight_decay, 0.0);
    EXPECT_EQ(read("[optimizer]\ntype = 'adamw'", {{"optimizer.weight_decay", "0"}}).optimizer.weight_decay,
              0.0);
    EXPECT_EQ(read("[optimizer]\ntype = 'sgd'").optimizer.weight_decay, 0.0);
}

TEST(Job, TheCommandLineOverridesTheFileAndTheLastValueCounts) {
    const Job job = read("[model]\nwidth = 64\nlayers = 2", {{"model.width", "128"},
                                                             {"run.ranks", "2"},
                                                             {"run.ranks", "8"},
                                                             {"fsdp.wrap", "size:1000"},
                                                             {"fsdp.limit_all_gathers", "off"},
                                                             {"optimizer.betas", "0.5,0.75"}});
    EXPECT_EQ(job.model.width, 128);
    EXPECT_EQ(job.model.layers, 2);
    EXPECT_EQ(job.run.ranks, 8);
    EXPECT_EQ(job.fsdp.wrap.threshold, 1000);
    EXPECT_FALSE(job.fsdp.limit_all_gathers);
    EXPECT_THAT(job.optimizer.betas, ElementsAre(0.5, 0.75));
}

TEST(Overrides, AreTakenOutOfTheCommandLineInBothSpellings) {
    std::vector<std::string> arguments = {
        "--model.width=64", "job.toml", "--optimizer.lr", "-1", "--format",     "json", "--run.overwrite",
        "--data.path",      "a b=c",    "--trace=x.y.z",  "--", "--run.steps=1"};
    const std::vector<Override> overrides = take_overrides(arguments);
    EXPECT_THAT(overrides, ElementsAre(Override{"model.width", "64"}, Override{"optimizer.lr", "-1"},
                                       Override{"run.overwrite", "true"}, Override{"data.path", "a b=c"}));
    EXPECT_THAT(arguments,
                ElementsAre("job.toml", "--format", "json", "--trace=x.y.z", "--", "--run.steps=1"));
}

TEST(Overrides, ASwitchTakesTheNextWordOnlyIfItIsAYesOrNo) {
    std::vector<std::string> arguments = {"--run.overwrite", "job.toml", "--fsdp.limit_all_gathers", "false"};
    const std::vector<Override> overrides = take_overrides(arguments);
    EXPECT_THAT(overrides,
                ElementsAre(Override{"run.overwrite", "true"}, Override{"fsdp.limit_all_gathers", "false"}));
    EXPECT_THAT(arguments, ElementsAre("job.toml"));
}

TEST(Wrap, ReadsWhatItWrites) {
    for (const std::string text :
         {"root", "module:Linear", "module:Linear,Embedding", "size:1000000", "path:blocks.*.mlp,head",
          "path:**.qkv,blocks.?", "every:2,Block,Linear"}) {
        EXPECT_EQ(to_text(parse_wrap(text)), text);
    }
    for (const std::string text : {"none", "path:blocks.0=false", "module:Block=true every:2,Block=false"})
        EXPECT_EQ(to_text(parse_unit_rules(text)), text);
    EXPECT_THAT(parse_wrap("module: Linear , Embedding").modules.names, ElementsAre("Linear", "Embedding"));
}

TEST(Job, UnitsMayBeTables) {
    const Job job = read(
        "[fsdp]\nlayout = 'fsdp2'\nreshard_after_forward = true\n"
        "[[fsdp.unit]]\nmatch = 'path:net.*'\nreshard_after_forward = false\n"
        "[[fsdp.unit]]\nmatch = 'every:2,Linear'\nsharding_strategy = 'FULL_SHARD'\n");
    EXPECT_EQ(to_text(job.fsdp.unit), "path:net.*=false every:2,Linear=true");
    EXPECT_EQ(job.fsdp.reshard_after_forward, Reshard::yes);
    EXPECT_EQ(read("[fsdp]\nlayout = 'fsdp2'\nreshard_after_forward = 'auto'").fsdp.reshard_after_forward,
              Reshard::automatic);
}

TEST(Describe, GivesEveryKeyAsTextThatSetsItAgain) {
    const Job job = read(
        "[model]\nwidth = 48\n[fsdp]\nwrap = 'module:Linear'\n[optimizer]\nlr = 0.1\nbetas = [0.5, 0.25]");
    const auto rows = describe(job);
    EXPECT_EQ(rows.size(), keys().size());
    EXPECT_THAT(rows, ::testing::Contains(std::pair<std::string, std::string>("model.width", "48")));
    EXPECT_THAT(rows, ::testing::Contains(std::pair<std::string, std::string>("fsdp.wrap", "module:Linear")));
    EXPECT_THAT(rows, ::testing::Contains(std::pair<std::string, std::string>("optimizer.lr", "0.1")));
    EXPECT_THAT(rows,
                ::testing::Contains(std::pair<std::string, std::string>("optimizer.betas", "[0.5, 0.25]")));

    std::vector<Override> overrides;
    overrides.reserve(rows.size());
    for (const auto& [key, value] : rows) overrides.push_back({key, value});
    EXPECT_EQ(describe(read("", overrides)), rows);
}

TEST(Help, NamesEverySectionAndKeyWithItsDefault) {
    const std::string help = job_help();
    for (const Section& section : sections())
        EXPECT_THAT(help, HasSubstr("[" + std::string(section.name) + "]"));
    for (const Key& key : keys()) EXPECT_THAT(help, HasSubstr("  " + std::string(key.name) + " = "));
    EXPECT_THAT(help, HasSubstr("type = \"mlp\""));
    EXPECT_THAT(help, HasSubstr("[\"BACKWARD_PRE\" or \"BACKWARD_POST\" or \"NONE\"]"));
    EXPECT_THAT(help, HasSubstr("[1 to 65536]"));
    EXPECT_THAT(help, HasSubstr("betas = [0.9, 0.999]"));
}

TEST(Keys, AreInAKnownSectionOnceAndHoldTheirOwnDefault) {
    std::set<std::string> names, known;
    for (const Section& section : sections()) known.emplace(section.name);
    for (const Key& key : keys()) {
        EXPECT_TRUE(names.insert(key.full_name()).second) << key.full_name() << " stands twice";
        EXPECT_TRUE(known.contains(std::string(key.section))) << key.full_name();
        EXPECT_FALSE(key.help.empty()) << key.full_name();
        EXPECT_EQ(problem(key, key.get(Job{})), "") << key.full_name();
    }
}

TEST(Samples, AreJobsThatHaveFourRanksAndKeepTheirMode) {
    const std::string folder = SHARDSCOPE_SAMPLES;
    const Job mlp = load_job(folder + "/mlp.toml");
    EXPECT_EQ(mlp.run.ranks, 4);
    EXPECT_EQ(mlp.model.layers, 8);
    EXPECT_EQ(mlp.data.batch, 8);
    EXPECT_EQ(mlp.parallel.mode, ParallelMode::fsdp);
    EXPECT_EQ(mlp.optimizer.type, OptimizerType::sgd);

    const Job gpt = load_job(folder + "/gpt.toml");
    EXPECT_EQ(gpt.run.ranks, 4);
    EXPECT_EQ(gpt.model.type, ModelType::gpt);
    EXPECT_EQ(gpt.data.path, "/usr/share/common-licenses");
    EXPECT_EQ(to_text(gpt.fsdp.wrap), "module:Block");
    EXPECT_EQ(load_job(folder + "/gpt.toml", {{"fsdp.wrap", "root"}}).fsdp.wrap, Wrap{});

    const Job cifar = load_job(folder + "/cifar.toml"), resnet50 = load_job(folder + "/resnet50.toml");
    EXPECT_TRUE(cifar.validates() && cifar.parallel.sync_batch_norm);
    EXPECT_EQ(cifar.data.crop, ImageCrop::random);
    EXPECT_EQ(resnet50.data.batch * resnet50.run.ranks, 256);
    EXPECT_EQ(resnet50.optimizer.milestones.back(), 80 * 5004);

    const Job ddp = load_job(folder + "/ddp.toml");
    EXPECT_EQ(ddp.run.ranks, 4);
    EXPECT_EQ(ddp.parallel.mode, ParallelMode::ddp);
}

TEST(Samples, HoldTheTalksProportionsAndAGptThatValidatesAndSaves) {
    const std::string folder = SHARDSCOPE_SAMPLES;
    const Job talk = load_job(folder + "/talk/talk.toml");
    EXPECT_EQ(talk.run.ranks, 8);
    EXPECT_EQ(talk.model.width, 20480 / 20);
    EXPECT_EQ(talk.data.batch, 10240 / 20);
    EXPECT_EQ(talk.optimizer.momentum, 0);

    const Job text = load_job(folder + "/gpt-text.toml");
    EXPECT_EQ(text.run.ranks, 2);
    EXPECT_GT(text.data.validation, 0);
    EXPECT_EQ(text.train.validate_every.count, 100);
    EXPECT_EQ(text.checkpoint.save, "gpt-text");
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::job
