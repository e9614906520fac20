// Checkpoints as a user sees them: saving, continuing elsewhere, generating text, errors.
#include <cstddef>
#include <filesystem>
#include <string>
#include <utility>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/train/train_tool.h"

namespace shardscope::tools {
namespace TEST_FILE {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// The text repeats a sentence with a number that counts up, so that a sample may begin anywhere in it; a
// small GPT has learned it after 300 steps.
class Checkpoints : public ::testing::Test {
  protected:
    Checkpoints() {
        std::string text;
        for (int i = 0; i < 300; ++i) {
            text += "every good boy number " + std::to_string(i) + " does fine and so does every girl\n";
        }
        write_file(folder_ / "text", text);
    }

    Words gpt(const Words& more) const {
        Words words = {sample("gpt.toml"),   "--data.path=" + (folder_ / "text"),
                       "--model.layers=2",   "--model.width=32",
                       "--model.context=32", "--optimizer.lr=0.01"};
        words.insert(words.end(), more.begin(), more.end());
        return words;
    }
    std::string save() const { return folder_ / "save"; }

    TemporaryFolder folder_;
};

TEST_F(Checkpoints, SavedByFourRanksInFullShardAreContinuedByTwoInDdp) {
    const Json whole = train_json(gpt({"--run.steps=8"}));
    train_json(gpt({"--run.steps=5", "--checkpoint.save=" + save()}));
    const Json further = train_json(gpt({"--run.steps=8", "--checkpoint.load=" + save(), "--run.ranks=2",
                                         "--data.batch=4", "--parallel.mode=ddp"}));
    ASSERT_EQ(further.at("losses").size(), 3U);
    for (std::size_t i = 0; i < 3; ++i) {
        EXPECT_NEAR(further["losses"][i].get<double>() / whole["losses"][5 + i].get<double>(), 1, 1e-6) << i;
    }
}

TEST_F(Checkpoints, AreSavedAtTheGivenInterval) {
    train_json(gpt({"--run.steps=5", "--checkpoint.every=2", "--checkpoint.save=" + save()}));
    EXPECT_EQ(read_file(save() + "/latest"), "step-5\n");
    for (const char* step : {"step-2", "step-4", "step-5"}) {
        EXPECT_EQ(
            train_json(gpt({"--run.steps=6", "--checkpoint.load=" + save() + "/" + step})).at("steps_done"),
            6);
    }
}

// The first six steps overflow and are skipped: the run goes on with the scale that they have left, and with
// Adam's count of the other three, as threads or processes.
TEST_F(Checkpoints, OfFp16GoOnWithTheLossScale) {
    const std::string job = sample("fp16.toml");
    const Json whole = train_json({job, "--run.steps=14"});
    train_json({job, "--run.steps=9", "--checkpoint.save=" + save()});
    EXPECT_THAT(read_file(save() + "/step-9/manifest.json"),
                HasSubstr("\"loss_scale\":{\"scale\":4194304.0,\"clean\":3,\"skipped\":6,\"hysteresis\":1}"));
    for (const char* processes : {"0", "2"}) {
        const Json further = train_json({job, "--run.steps=14", "--checkpoint.load=" + save(),
                                         std::string("--run.processes=") + processes});
        ASSERT_EQ(further.at("losses").size(), 5U);
        for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(further["losses"][i], whole["losses"][9 + i]) << i;
    }
}

// Its first step is the first update of Adam again, whatever the other run has skipped.
TEST_F(Checkpoints, OfFp16ThatARunStartsFromDoNotSetItsLossScale) {
    const std::string job = sample("fp16.toml"), next = folder_ / "next";
    train_json({job, "--run.steps=7", "--checkpoint.save=" + save()});
    const Json run = train_json({job, "--run.steps=3", "--precision.initial_scale=1024",
                                 "--checkpoint.initial_load=" + save(), "--checkpoint.save=" + next});
    ASSERT_EQ(run.at("losses").size(), 3U);
    for (const Json& loss : run["losses"]) EXPECT_TRUE(loss.is_number()) << loss;
    EXPECT_THAT(read_file(next + "/step-3/manifest.json"),
                HasSubstr("\"loss_scale\":{\"scale\":1024.0,\"clean\":3,\"skipped\":0,"));
}

// The frozen variance goes on, and so does the count of steps before it. Errors are not kept: the first step
// after the last saved one has the same loss, since parameters and momentum are the same, and later ones are
// near.
TEST_F(Checkpoints, OfOnebitOptimizersGoOnInTheirStage) {
    for (const char* type : {"onebit_adam", "onebit_lamb"}) {
        const auto run = [&](Words more) {
            const Words own = {"--parallel.mode=ddp",
                               "--run.ranks=2",
                               "--data.batch=4",
                               "--optimizer.lr=0.001",
                               std::string("--optimizer.type=") + type,
                               "--optimizer.freeze_step=6"};
            more.insert(more.begin(), own.begin(), own.end());
            return train_json(gpt(more)).at("losses");
        };
        const Json whole = run({"--run.steps=10"});
        run({"--run.steps=8", "--checkpoint.every=4", "--checkpoint.save=" + save()});
        const Json early = run({"--run.steps=10", "--checkpoint.load=" + save() + "/step-4"});
        ASSERT_EQ(early.size(), 6U);
        for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(early[i], whole[4 + i]) << type << ", step " << 4 + i;
        const Json late = run({"--run.steps=10", "--checkpoint.load=" + save() + "/step-8"});
        ASSERT_EQ(late.size(), 2U);
        EXPECT_EQ(late[0], whole[8]) << type;
        EXPECT_NEAR(late[1].get<double>() / whole[9].get<double>(), 1, 0.02) << type;
        std::filesystem::remove_all(save());
    }
}

// The outer momentum goes on; averages come after the same steps of the run, wherever it continues. Each rank
// continues with the first one's moments, so only SGD without momentum has the same losses.
TEST_F(Checkpoints, OfLocalStepsGoOnBetweenAverages) {
    const auto run = [&](Words more) {
        const Words own = {"--parallel.mode=ddp",       "--run.ranks=2",       "--data.batch=4",
                           "--optimizer.type=sgd",      "--optimizer.lr=0.05", "--train.local_steps=3",
                           "--train.outer_momentum=0.5"};
        more.insert(more.begin(), own.begin(), own.end());
        return train_json(gpt(more)).at("losses");
    };
    const Json whole = run({"--run.steps=12"});
    run({"--run.steps=9", "--checkpoint.every=3", "--checkpoint.save=" + save()});
    for (const int saved : {3, 6, 9}) {
        const Json later =
            run({"--run.steps=12", "--checkpoint.load=" + save() + "/step-" + std::to_string(saved)});
        ASSERT_EQ(later.size(), 12U - static_cast<std::size_t>(saved));
        for (std::size_t i = 0; i < later.size(); ++i)
            EXPECT_EQ(later[i], whole[static_cast<std::size_t>(saved) + i]) << saved << " + " << i;
    }
}

// Servers keep the parameters and the optimizer: a run goes on with others, or as DDP.
TEST_F(Checkpoints, OfServersGoOnWithAnyNumberOfThem) {
    const Words served = {"--parallel.mode=server", "--run.ranks=3", "--data.batch=4"};
    const auto run = [&](Words ranks, const Words& more) {
        ranks.insert(ranks.end(), more.begin(), more.end());
        return train_json(gpt(ranks)).at("losses");
    };
    const Json whole = run(served, {"--run.steps=8"});
    run(served, {"--run.steps=5", "--checkpoint.save=" + save()});
    for (const Words& ranks :
         {served, Words{"--parallel.mode=server", "--parallel.servers=2", "--run.ranks=4", "--data.batch=4"},
          Words{"--parallel.mode=ddp", "--run.ranks=2", "--data.batch=4"}}) {
        const Json further = run(ranks, {"--run.steps=8", "--checkpoint.load=" + save()});
        ASSERT_EQ(further.size(), 3U);
        for (std::size_t i = 0; i < 3; ++i)
            EXPECT_NEAR(further[i].get<double>() / whole[5 + i].get<double>(), 1, 1e-6) << i;
    }
}

TEST_F(Checkpoints, OnlyTheNewestAreKept) {
    train_json(gpt({"--run.steps=5", "--checkpoint.every=1", "--checkpoint.keep=last:2",
                    "--checkpoint.save=" + save()}));
    for (const int step : {1, 2, 3, 4, 5})
        EXPECT_EQ(std::filesystem::exists(save() + "/step-" + std::to_string(step)), step >= 4) << step;
    EXPECT_EQ(read_file(save() + "/latest"), "step-5\n");
}

// Of a model whose rate is so large that it is worst at the end. Every saved step is validated.
TEST_F(Checkpoints, TheOneWithTheLowestValidationLossIsKept) {
    const Json run =
        train_json(gpt({"--run.steps=6", "--optimizer.lr=0.5", "--data.validation=0.2",
                        "--checkpoint.every=1", "--checkpoint.keep=best", "--checkpoint.save=" + save()}));
    const Json& losses = run.at("validation");
    ASSERT_EQ(losses.size(), 6U);
    std::size_t best = 0;
    for (std::size_t i = 1; i < losses.size(); ++i) {
        if (losses[i].at("loss").get<double>() < losses[best].at("loss").get<double>()) best = i;
    }
    ASSERT_LT(best, 5U) << "the last one is kept anyway";
    for (std::size_t i = 0; i < losses.size(); ++i) {
        EXPECT_EQ(std::filesystem::exists(save() + "/step-" + std::to_string(i + 1)), i == best || i == 5)
            << i;
    }
    EXPECT_THAT(read_file(save() + "/best"), ::testing::StartsWith("step-" + std::to_string(best + 1) + " "));
    EXPECT_EQ(train_json(gpt({"--run.steps=7", "--checkpoint.load=" + save()})).at("steps_done"), 7);
}

// The same model: its test is that of the best checkpoint's parameters, not of those at the end. A run that
// stops after that step tests these.
TEST_F(Checkpoints, TheBestIsTested) {
    const Words held_out = {"--optimizer.lr=0.5", "--data.validation=0.2", "--data.test=0.2"};
    const auto with = [&](Words more) {
        more.insert(more.end(), held_out.begin(), held_out.end());
        return gpt(more);
    };
    const Words best = with(
        {"--run.steps=6", "--checkpoint.every=1", "--checkpoint.keep=best", "--checkpoint.save=" + save()});
    const Json tested = train_json(best).at("test"), last = train_json(with({"--run.steps=6"})).at("test");
    const auto step = tested.at("step").get<int>();
    ASSERT_LT(step, 6);
    EXPECT_EQ(last.at("step"), 6);
    const auto loss = tested.at("loss").get<double>();
    EXPECT_LT(loss, last.at("loss").get<double>());
    EXPECT_EQ(train_json(with({fmt::format("--run.steps={}", step)})).at("test").at("loss").get<double>(),
              loss);
    Words processes = best;
    processes.insert(processes.end(), {"--overwrite", "--run.processes=4"});
    EXPECT_EQ(train_json(processes).at("test").at("loss").get<double>(), loss);
}

TEST_F(Checkpoints, AnotherRunsCheckpointIsNotReplacedWithoutOverwrite) {
    const Words saving = gpt({"--run.steps=1", "--checkpoint.save=" + save()});
    train_json(saving);
    const Outcome again = train(saving);
    EXPECT_EQ(again.status, 2);
    EXPECT_THAT(again.err,
                AllOf(HasSubstr(save()), HasSubstr("checkpoints of another run"), HasSubstr("--overwrite")));
    Words overwriting = saving;
    overwriting.emplace_back("--overwrite");
    EXPECT_EQ(train(overwriting).status, 0);
}

// Trains until the model knows a text by heart: only this shows that training, saving, loading and sampling
// agree.
TEST_F(Checkpoints, GenerateTextThatTheModelHasSeen) {
    for (const Words& vocabulary : {Words{}, Words{"--model.vocabulary=270"}}) {
        Words training =
            gpt({"--run.steps=300", "--data.batch=4", "--overwrite", "--checkpoint.save=" + save()});
        training.insert(training.end(), vocabulary.begin(), vocabulary.end());
        train_json(training);
        Words generating = gpt({"--checkpoint.load=" + save(), "--generate", "every good"});
        generating.insert(generating.end(), vocabulary.begin(), vocabulary.end());
        const Outcome first = train(generating), second = train(generating);
        EXPECT_EQ(first.status, 0) << first.err;
        EXPECT_THAT(first.err, AllOf(StartsWith("1 prompt of "), HasSubstr(" tokens: first token after "),
                                     HasSubstr(" without the cache, because the context of 32 was full")));
        EXPECT_THAT(first.out, AllOf(StartsWith("every good boy number "),
                                     HasSubstr(" does fine and so does every girl\nevery good boy number ")));
        EXPECT_GE(first.out.size(), 400U);  // 400 tokens of one byte or more
        EXPECT_EQ(first.out, second.out) << "the same seed draws the same text";
    }
}

// A key/value cache changes how fast a text comes, not which.
TEST_F(Checkpoints, GenerateTheSameTextWithAndWithoutACache) {
    for (const auto& [type, weights] : {std::pair{"gpt", "fp32"}, std::pair{"gpt", "int8"},
                                        std::pair{"llama", "fp32"}, std::pair{"llama", "int8"}}) {
        const Words model = {std::string("--model.type=") + type, "--model.context=64", "--fsdp.wrap=root"};
        const auto with = [&](Words words) {
            words.insert(words.end(), model.begin(), model.end());
            return gpt(words);
        };
        train_json(with({"--run.steps=40", "--overwrite", "--checkpoint.save=" + save()}));
        Words generate = {"--checkpoint.load=" + save(),
                          "--generate",
                          "every good",
                          "--generate",
                          "girl",
                          "--tokens",
                          "80",
                          "--weights",
                          weights,
                          "--format",
                          "json"};
        const Outcome cached = train(with(generate));
        generate.emplace_back("--no-cache");
        const Outcome whole = train(with(generate));
        ASSERT_EQ(cached.status, 0) << cached.err;
        const Json one = Json::parse(cached.out), other = Json::parse(whole.out);
        EXPECT_EQ(one.at("texts"), other.at("texts"));
        ASSERT_EQ(one.at("texts").size(), 2U);
        EXPECT_EQ(one["texts"][1].at("prompt"), "girl");
        EXPECT_GE(one["texts"][1].at("continued").get<std::string>().size(), 80U);
        EXPECT_NE(one["texts"][0], one["texts"][1]);
        // The longer text fills the context after 54 tokens, the 55th is read with it moved on.
        EXPECT_EQ(one.at("tokens_after_whole_context"), 25);
        EXPECT_EQ(other.at("tokens_after_whole_context"), 80);
        EXPECT_EQ(one.at("latencies_s").size(), 79U);
        EXPECT_GT(one.at("tokens_per_s").get<double>(), 0);
        EXPECT_LE(one.at("latency_ms").at("median").get<double>(), one.at("latency_ms").at("p99"));
    }
}

TEST_F(Checkpoints, GenerateAsPrefillAndDecodeInATrace) {
    train_json(gpt({"--run.steps=1", "--checkpoint.save=" + save()}));
    const std::string trace = folder_ / "generated.sqlite";
    const Outcome outcome = train(gpt({"--checkpoint.load=" + save(), "--generate", "every", "--generate",
                                       "good", "--tokens=5", "--trace", trace}));
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(outcome.out, AllOf(StartsWith("[1] every"), HasSubstr("\n[2] good")));
    EXPECT_THAT(outcome.err, HasSubstr("Trace: " + trace));
    const auto steps = [&](const std::string& phase) {
        return number(trace, "SELECT COUNT(*) FROM ranges WHERE name = '" + phase + "'");
    };
    EXPECT_EQ(steps("prefill"), 1);
    EXPECT_EQ(steps("decode"), 4);
    // With the context full there are forwards of all of it, whose memory is predicted, too.
    const std::string longer = folder_ / "longer.sqlite";
    EXPECT_EQ(
        train(gpt({"--checkpoint.load=" + save(), "--generate", "every", "--tokens=40", "--trace", longer}))
            .status,
        0);
    for (const std::string& file : {trace, longer}) {
        const Json memory = trace_json({"memory", file});
        EXPECT_EQ(memory.at("ranks").at(0).at("peak_bytes"), memory["ranks"][0].at("predicted_peak_bytes"))
            << file;
    }
}

TEST_F(Checkpoints, GenerateWithWeightsInInt8) {
    train_json(gpt({"--run.steps=300", "--data.batch=4", "--checkpoint.save=" + save()}));
    const std::string plain = folder_ / "fp32.sqlite", packed = folder_ / "int8.sqlite";
    const auto with = [&](Words words) {
        words.insert(words.end(), {"--checkpoint.load=" + save(), "--generate", "every good", "--tokens=60"});
        return train(gpt(words));
    };
    EXPECT_EQ(with({"--trace", plain}).status, 0);
    const Outcome int8 = with({"--trace", packed, "--weights=int8"});
    ASSERT_EQ(int8.status, 0) << int8.err;
    EXPECT_THAT(int8.out, AllOf(StartsWith("every good boy number "),
                                HasSubstr(" does fine and so does every girl\nevery good ")));
    const auto peak = [](const std::string& file) {
        const Json rank = trace_json({"memory", file}).at("ranks").at(0);
        EXPECT_EQ(rank.at("peak_bytes"), rank.at("predicted_peak_bytes")) << file;
        return rank.at("peak_bytes").get<std::int64_t>();
    };
    EXPECT_LT(peak(packed), peak(plain));
    EXPECT_GT(number(packed, "SELECT COUNT(*) FROM kernels WHERE name = 'int8pack_mm'"), 0);
    EXPECT_EQ(Json::parse(with({"--weights=int8", "--format=json"}).out).at("weights"), "int8");
    const Outcome plan = with({"--weights=int8", "--dry-run"});
    EXPECT_THAT(plan.out, AllOf(HasSubstr("\nPrefill\n"), HasSubstr("\nDecode, one token of each text\n"),
                                HasSubstr("weight: blocks.0.attention.qkv.weight (int8)")));
    EXPECT_EQ(Json::parse(with({"--weights=int8", "--dry-run", "--format=json"}).out)
                  .at("predicted_peak_bytes")
                  .get<std::int64_t>(),
              peak(packed));
    const Outcome wrong = with({"--weights=int4"});
    EXPECT_EQ(wrong.status, 2);
    EXPECT_THAT(wrong.err, HasSubstr("--weights: int4 not in {fp32,int8}"));
}

// Whatever mesh has trained a model, one rank that holds everything prints its text, with the job of that
// mesh.
class GeneratingMesh : public Checkpoints,
                       public ::testing::WithParamInterface<std::pair<const char*, Words>> {
  protected:
    static Words with(Words words, const Words& more) {
        words.insert(words.end(), more.begin(), more.end());
        return words;
    }
    // A mixture of experts that one rank trains.
    Words one_rank() const {
        return gpt({"--run.steps=6", "--model.layers=4", "--model.experts=4", "--model.experts_per_token=2",
                    "--train.accumulation=2", "--run.ranks=1", "--data.batch=4", "--parallel.mode=ddp",
                    "--checkpoint.save=" + save(), "--overwrite"});
    }
    std::string text_of(const Words& job) const {
        const Outcome outcome =
            train(with(job, {"--checkpoint.load=" + save(), "--generate", "every good boy"}));
        EXPECT_EQ(outcome.status, 0) << outcome.err;
        EXPECT_GE(outcome.out.size(), 400U);
        return outcome.out;
    }
};

TEST_P(GeneratingMesh, PrintsTheTextOfOneRank) {
    write_file(folder_ / "own.csv", "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
    Words mesh = with(one_rank(), GetParam().second);
    if (GetParam().first == std::string("File"))
        mesh.push_back("--parallel.schedule=" + (folder_ / "own.csv"));
    train_json(one_rank());
    const std::string expected = text_of(one_rank());
    train_json(mesh);
    EXPECT_EQ(text_of(mesh), expected);
}

INSTANTIATE_TEST_SUITE_P(
    Checkpoints, GeneratingMesh,
    ::testing::Values(std::pair("Tensor", Words{"--run.ranks=2", "--parallel.mode=none",
                                                "--parallel.tensor=2", "--parallel.sequence=true"}),
                      std::pair("Context", Words{"--run.ranks=2", "--parallel.context=2",
                                                 "--parallel.context_exchange=ring"}),
                      std::pair("Expert", Words{"--run.ranks=2", "--data.batch=2", "--parallel.expert=2"}),
                      std::pair("Pipeline", Words{"--run.ranks=2", "--train.accumulation_sync=false",
                                                  "--parallel.pipeline=2", "--parallel.schedule=zb_v",
                                                  "--parallel.virtual_stages=2", "--parallel.stages=cost"}),
                      std::pair("File", Words{"--run.ranks=2", "--train.accumulation_sync=false",
                                              "--parallel.pipeline=2", "--parallel.stages=blocks.1"}),
                      std::pair("All",
                                Words{"--run.ranks=8", "--train.accumulation_sync=false", "--data.batch=2",
                                      "--parallel.mode=fsdp", "--parallel.tensor=2", "--parallel.context=2",
                                      "--parallel.expert=2", "--parallel.order=tp-dp-cp-ep-pp",
                                      "--fsdp.layout=fsdp2", "--fsdp.sharding_strategy=HYBRID_SHARD",
                                      "--fsdp.shard_group=1"})),
    [](const auto& made) { return made.param.first; });

// A capacity counts a rank's own tokens: the losses of the mesh are not those of one rank, but its checkpoint
// is read in the same way.
TEST_F(GeneratingMesh, WithACapacityPrintsWhatOneRankReads) {
    const Words capacity = {"--model.capacity_factor=0.8"};
    const Words mesh =
        with(with(one_rank(), capacity), {"--run.ranks=2", "--data.batch=2", "--parallel.expert=2"});
    train_json(mesh);
    const std::string text = text_of(mesh);
    EXPECT_EQ(text, text_of(with(one_rank(), capacity)));
    EXPECT_NE(text, text_of(one_rank()));  // which drops nothing
}

// The trace that the job file names is that of its training; what cannot begin prints no prompt.
TEST_F(Checkpoints, GenerateWithoutTheTraceOfTheTraining) {
    const std::string trace = folder_ / "training.sqlite";
    train_json(gpt({"--run.steps=1", "--checkpoint.save=" + save(), "--trace", trace}));
    const std::string before = read_file(trace);
    const Words generate = {"--checkpoint.load=" + save(), "--generate", "every", "--tokens=2"};
    Words words = generate;
    words.insert(words.end(), {"--run.trace=" + trace, "--run.overwrite=true"});
    const Outcome outcome = train(gpt(words));
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(read_file(trace), before);
    words = generate;
    words.insert(words.end(), {"--trace", trace});
    const Outcome refused = train(gpt(words));
    EXPECT_EQ(refused.status, 2);
    EXPECT_EQ(refused.out, "");
    words = generate;
    words.push_back("--run.device=sim");
    expect_refusal(train(gpt(words)), {"run.device: a simulated model has no texts"});
}

TEST_F(Checkpoints, AnUntrainedModelGeneratesNothing) {
    const Outcome outcome = train(gpt({"--generate", "every"}));
    EXPECT_EQ(outcome.status, 2);
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, HasSubstr("set checkpoint.load"));
    const Outcome mlp = train({sample("mlp.toml"), "--generate", "every", "--checkpoint.load=" + save()});
    EXPECT_EQ(mlp.status, 2);
    EXPECT_THAT(mlp.err, HasSubstr("model.type: an mlp cannot continue a text"));
}

// Without the manifest a checkpoint in PyTorch's format is read as one that PyTorch wrote.
TEST_F(Checkpoints, OfPyTorchAreContinuedWithTheSameLosses) {
    const Json whole = train_json(gpt({"--run.steps=8"}));
    train_json(gpt({"--run.steps=5", "--checkpoint.format=dcp", "--checkpoint.save=" + save()}));
    std::filesystem::remove(save() + "/step-5/manifest.json");
    const Json further = train_json(gpt({"--run.steps=8", "--checkpoint.load=" + save() + "/step-5"}));
    ASSERT_EQ(further.at("losses").size(), 3U);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(further["losses"][i], whole["losses"][5 + i]) << i;
}

// Ours, PyTorch's and safetensors give the same parameters to a run that begins.
TEST_F(Checkpoints, ArePlacesToStartFrom) {
    const auto losses = [&](const std::string& from) {
        const Json run = train_json(gpt({"--run.steps=2", "--checkpoint.initial_load=" + from}));
        EXPECT_EQ(run.at("steps_done"), 2);
        return run.at("losses");
    };
    train_json(gpt({"--run.steps=5", "--checkpoint.save=" + save()}));
    const Json expected = losses(save());
    EXPECT_NE(expected, train_json(gpt({"--run.steps=2"})).at("losses"));
    for (const std::string format : {"dcp", "safetensors"}) {
        const std::string to = folder_ / format;
        train_json(gpt({"--run.steps=5", "--checkpoint.format=" + format, "--checkpoint.save=" + to}));
        std::filesystem::remove(to + "/step-5/manifest.json");
        EXPECT_EQ(losses(to + "/step-5"), expected) << format;
    }
    const Outcome outcome =
        train(gpt({"--run.steps=8", "--checkpoint.load=" + (folder_ / "safetensors") + "/step-5"}));
    EXPECT_EQ(outcome.status, 2);
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("model.safetensors: does not say how many steps were done"),
                                   HasSubstr("checkpoint.initial_load")));
}

TEST_F(Checkpoints, DamagedOnesAreRefusedByName) {
    train_json(gpt({"--run.steps=1", "--checkpoint.save=" + save()}));
    const std::string file = save() + "/step-1/rank-00002.bin";
    std::string bytes = read_file(file);
    bytes[bytes.size() / 2] ^= 4;
    write_file(file, bytes);
    const Outcome outcome = train(gpt({"--run.steps=2", "--checkpoint.load=" + save()}));
    EXPECT_EQ(outcome.status, 2);
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("rank-00002.bin"), HasSubstr("damaged")));
}

}  // namespace TEST_FILE
}  // namespace shardscope::tools
