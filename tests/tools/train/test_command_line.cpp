// The help of shardscope-train, and its output about a run.
#include <iterator>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/train/train_tool.h"
#include "tests/trainer/image_data.h"
#include "traces/schema/schema.h"
#include "trainer/kernels/activation_kinds.h"

namespace shardscope::tools {
namespace TEST_FILE {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(CommandLine, VersionIsTheProjectsAndTheSchemas) {
    const Outcome outcome = train({"--version"});
    EXPECT_EQ(outcome.status, 0);
    EXPECT_EQ(outcome.out, "shardscope-train " SHARDSCOPE_VERSION " (trace schema " +
                               std::to_string(traces::schema::kSchemaVersion) + ")\n");
    EXPECT_EQ(outcome.err, "");
}

TEST(CommandLine, HelpListsEveryKeyInItsSection) {
    const std::map<std::string, std::vector<std::string>> sections = {
        {"run",
         {"steps", "seed", "ranks", "ranks_per_device", "device", "processes", "comm", "sums", "timeout",
          "workers", "blas_threads", "memory_limit", "memory_reserve", "trace", "trace_parts", "overwrite",
          "counters"}},
        {"sim", {"cluster", "slow_rank", "slow_link", "trace_ranks"}},
        {"model",
         {"type", "name", "width", "layers", "bias", "heads", "kv_heads", "context", "vocabulary", "dropout",
          "tied_embeddings", "activation", "fused_activation", "attention", "experts", "experts_per_token",
          "capacity_factor", "balance_loss"}},
        {"data",
         {"type", "path", "batch", "workers", "validation", "validation_path", "test", "test_path", "image",
          "classes", "resize", "crop", "padding", "flip", "cache", "mean", "std"}},
        {"parallel",
         {"mode", "servers", "tensor", "sequence", "sync_batch_norm", "context", "context_exchange",
          "pipeline", "schedule", "virtual_stages", "order", "stages", "expert"}},
        {"fsdp",
         {"sharding_strategy", "wrap", "exclude", "unit", "reshard_after_forward", "layout", "shard_group",
          "cpu_offload", "forward_prefetch", "backward_prefetch", "limit_all_gathers", "sync_module_states"}},
        {"ddp",
         {"bucket_cap_mb", "first_bucket_mb", "gradient_as_bucket_view", "static_graph", "shard_optimizer",
          "broadcast_buffers", "comm_hook", "comm_hook_start", "orthogonalization_epsilon"}},
        {"train",
         {"epochs", "accumulation", "accumulation_sync", "clip_norm", "gradient_norm", "local_steps",
          "staleness", "outer_lr", "outer_momentum", "validate_every", "freeze", "label_smoothing",
          "diverged_above"}},
        {"precision",
         {"param", "reduce", "buffer", "tf32", "loss_scale", "scale_rule", "initial_scale", "growth_interval",
          "hysteresis", "min_scale"}},
        {"memory", {"activation_checkpointing", "offload", "nvme", "gemm_workspace_bytes"}},
        {"optimizer",
         {"type", "lr", "momentum", "nesterov", "betas", "eps", "weight_decay", "trust_coefficient",
          "freeze_step", "lr_scaling", "lr_batch", "warmup_steps", "warmup", "schedule", "milestones",
          "gamma", "power"}},
        {"checkpoint", {"save", "load", "initial_load", "every", "keep", "format", "names"}}};
    const Outcome help = train({"--help"});
    EXPECT_EQ(help.status, 0);
    EXPECT_EQ(help.err, "");
    EXPECT_THAT(help.out,
                AllOf(HasSubstr("Usage: shardscope-train"), HasSubstr("--trace"), HasSubstr("--overwrite"),
                      HasSubstr("--format"), HasSubstr("--dry-run"), HasSubstr("--generate"),
                      HasSubstr("--status"), HasSubstr("--section.key=value")));
    for (const auto& [section, keys] : sections) {
        const std::size_t start = help.out.find("\n  [" + section + "]");
        ASSERT_NE(start, std::string::npos) << section;
        const std::string text = help.out.substr(start, help.out.find("\n  [", start + 1) - start);
        for (const std::string& key : keys) EXPECT_THAT(text, HasSubstr("\n  " + key + " = ")) << section;
    }
    // The help also has every key of the job that a trace stores.
    const TracedRun run(Way::none);
    for (const std::string& stored : texts(run.trace(), "SELECT key FROM SHARD_RUN")) {
        const std::size_t dot = stored.find('.');
        if (dot == std::string::npos || stored.starts_with("blas.") || stored.starts_with("host.") ||
            stored.starts_with("sampler."))
            continue;  // facts of the machine
        const auto section = sections.find(stored.substr(0, dot));
        ASSERT_NE(section, sections.end()) << stored;
        EXPECT_THAT(section->second, Contains(stored.substr(dot + 1)));
    }
}

TEST(CommandLine, JsonIsAloneOnStandardOutput) {
    const TemporaryFolder folder;
    Words arguments = arguments_for(Way::root, folder);
    arguments.insert(arguments.end(), {"--format", "json"});
    const Outcome outcome = train(arguments);
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    const Json result = Json::parse(outcome.out, nullptr, false);
    ASSERT_FALSE(result.is_discarded()) << outcome.out;
    EXPECT_EQ(result.at("losses").size(), static_cast<std::size_t>(kSteps));
    EXPECT_GT(result.at("average_step_us").get<double>(), 0);
    EXPECT_EQ(result.at("trace"), "");
    ASSERT_EQ(result.at("ranks").size(), 4u);
    for (std::size_t rank = 0; rank < 4; ++rank) EXPECT_EQ(result["ranks"][rank].at("rank"), rank);
    // Progress is meant for the user, so it is on standard error.
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("step 3/3"), HasSubstr("loss"),
                                   ContainsRegex("[0-9]+ samples/s \\(mean [0-9]+\\)  [0-9.]+ MiB "
                                                 "\\(peak [0-9.]+\\)")));
}

// The line that a terminal rewrites shows its time left whole: what has no room is left out, the mean first.
TEST(CommandLine, ProgressFitsTheTerminal) {
    for (const auto& [columns, has_mean, has_memory] :
         {std::tuple{120, true, true}, {70, false, true}, {48, false, false}}) {
        const Outcome outcome =
            run_command({"script", "-qec",
                         fmt::format("stty cols {}; exec {} {} --run.ranks=1 --model.width=16 --run.steps=2",
                                     columns, train_binary(), sample("mlp.toml")),
                         "/dev/null"});
        ASSERT_EQ(outcome.status, 0) << outcome.err;
        const std::size_t at = outcome.out.find("\rstep 2/2");
        ASSERT_NE(at, std::string::npos) << outcome.out;
        const std::string line = outcome.out.substr(at + 1, outcome.out.find('\r', at + 1) - at - 1);
        EXPECT_EQ(line.size(), columns - 1U) << line;
        EXPECT_THAT(line, HasSubstr("  done"));
        EXPECT_EQ(line.find("(mean ") != std::string::npos, has_mean) << line;
        EXPECT_EQ(line.find("MiB (peak ") != std::string::npos, has_memory) << line;
    }
}

TEST(CommandLine, ALossThatIsNotFiniteEndsTheRunAndNamesTheModule) {
    // Steps of length 1000 make the weights overflow.
    const TemporaryFolder folder;
    const std::string trace = folder / "run.sqlite";
    const Outcome outcome = train({sample("mlp.toml"), "--model.width=16", "--run.steps=30",
                                   "--optimizer.lr=1000", "--trace", trace, "--format", "json"});
    EXPECT_EQ(outcome.status, 1);
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("shardscope-train: step "), HasSubstr("not finite"),
                                   HasSubstr("is that of Linear_"), HasSubstr("lower optimizer.lr")));
    EXPECT_EQ(trace_json({"info", trace}).at("ended"), true);
    EXPECT_EQ(trace_tool({"check", trace}).status, 0);
    EXPECT_THAT(texts(trace, "SELECT text FROM DIAGNOSTIC_EVENT"), Contains(HasSubstr("not finite")));
}

TEST(CommandLine, ALossThatStaysTooLargeIsSaidAtTheEnd) {
    const Words words = {sample("mlp.toml"), "--model.width=16", "--run.steps=3",
                         "--train.diverged_above=0.5"};
    const Outcome outcome = train(words);
    EXPECT_EQ(outcome.status, 0);
    EXPECT_THAT(
        outcome.out,
        HasSubstr(
            "\nNote: the run diverged: from step 0 on (counted from 0) the loss stayed above 0.5 times"));
    EXPECT_EQ(train_json(words).at("diverged_at"), 0);
    EXPECT_EQ(train_json({sample("mlp.toml"), "--model.width=16", "--run.steps=3"}).at("diverged_at"),
              nullptr);
}

TEST(CommandLine, ValidationLossesAreInTheResult) {
    const TemporaryFolder folder;
    Words arguments = arguments_for(Way::gpt, folder);
    arguments.insert(arguments.end(), {"--data.validation=0.25", "--train.validate_every=2"});
    const Json result = train_json(arguments);  // 3 steps: after the second, and at the end
    ASSERT_EQ(result.at("validation").size(), 2u);
    EXPECT_EQ(result["validation"][0].at("step"), 2);
    EXPECT_EQ(result["validation"][1].at("step"), 3);
    for (const Json& validation : result["validation"]) {
        EXPECT_GT(validation.at("loss").get<double>(), 0);
        EXPECT_LT(validation.at("loss").get<double>(), 6) << "ln 256 = 5.5 is chance";
    }
    const Outcome outcome = train(arguments);
    EXPECT_THAT(outcome.err, HasSubstr("validation after step 2: loss "));
    EXPECT_THAT(outcome.out, HasSubstr("Validation after step 3: loss "));
}

TEST(CommandLine, TheAccuracyOfImagesIsPrintedAndRecorded) {
    const TemporaryFolder folder;
    const std::string images = folder / "data_batch_1.bin", trace = folder / "run.sqlite";
    trainer::testing::write_cifar(images, 40, 1);
    const Words arguments = {sample("cifar.toml"),
                             "--data.path=" + images,
                             "--data.validation_path=" + images,
                             "--model.width=4",
                             "--data.batch=5",
                             "--run.steps=3",
                             "--train.validate_every=2",
                             "--trace",
                             trace};
    const Outcome outcome = train(arguments);
    EXPECT_THAT(outcome.err, ContainsRegex("validation after step 2: loss [0-9.]+, accuracy [0-9.]+ % over 8 "
                                           "batches"));
    EXPECT_THAT(outcome.out, ContainsRegex("Validation after step 3: loss [0-9.]+, accuracy [0-9.]+ %\n"));
    const std::vector<std::string> recorded =
        texts(trace, "SELECT step || ' ' || value FROM metrics WHERE name = 'accuracy' ORDER BY step");
    ASSERT_EQ(recorded.size(), 2U);
    EXPECT_THAT(recorded.front(), ContainsRegex("^1 [01]"));
    Words again = arguments;
    again.insert(again.end(), {"--overwrite", "--run.processes=2"});
    const Json result = train_json(again);
    ASSERT_EQ(result.at("validation").size(), 2u);
    const auto accuracy = result["validation"][1].at("accuracy").get<double>();
    EXPECT_EQ(std::stod(recorded.back().substr(2)), accuracy);
}

// 40 images in steps of 2 x 5: 4 steps an epoch.
TEST(CommandLine, EpochsAreALengthACadenceAndAMetric) {
    const TemporaryFolder folder;
    const std::string images = folder / "data_batch_1.bin", trace = folder / "run.sqlite";
    trainer::testing::write_cifar(images, 40, 1);
    const Words job = {sample("cifar.toml"), "--data.path=" + images, "--data.validation_path=" + images,
                       "--model.width=4",    "--data.batch=5",        "--train.validate_every=1 epoch"};
    Words words = job;
    words.insert(words.end(), {"--train.epochs=2", "--checkpoint.save=" + (folder / "save"),
                               "--checkpoint.every=1 epoch", "--trace", trace});
    const Outcome outcome = train(words);
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(outcome.err,
                AllOf(HasSubstr("step 1/8  epoch 0.25/2  loss "), HasSubstr("validation after step 4: "),
                      HasSubstr("step-4 ("), HasSubstr("step 8/8  epoch 2.00/2  loss ")));
    EXPECT_THAT(
        texts(trace, "SELECT printf('%g', value) FROM metrics WHERE name = 'epoch' ORDER BY step LIMIT 2"),
        ElementsAre("0.25", "0.5"));
    EXPECT_THAT(texts(trace,
                      "SELECT value FROM SHARD_RUN WHERE key IN ('run.steps', 'train.epochs') "
                      "ORDER BY key"),
                ElementsAre("8", "2"));
    // A simulation counts the same.
    const std::string simulated = folder / "simulated.sqlite";
    Words counted = job;
    counted.insert(counted.end(), {"--train.epochs=2", "--run.device=sim", "--trace", simulated});
    EXPECT_EQ(train_json(counted).at("epochs"), 2);
    EXPECT_THAT(
        texts(simulated, "SELECT printf('%g', value) FROM metrics WHERE name = 'epoch' ORDER BY step"),
        ElementsAre("0.25", "0.5", "0.75", "1", "1.25", "1.5", "1.75", "2"));
    // It goes on with half as many samples in a step, and as processes.
    Words further = job;
    further.insert(further.end(),
                   {"--train.epochs=3", "--checkpoint.load=" + (folder / "save"), "--run.ranks=1",
                    "--parallel.mode=none", "--parallel.sync_batch_norm=false"});
    const Json longer = train_json(further);
    EXPECT_EQ(longer.at("steps_done"), 8 + 8);
    EXPECT_EQ(longer.at("epochs"), 3);
    further[6] = "--train.epochs=2";
    const Outcome over = train(further);
    EXPECT_EQ(over.status, 2);
    EXPECT_THAT(over.err, HasSubstr("command line: train.epochs: the checkpoint that training continues from "
                                    "is after 2 epochs already"));
    Words apart = job;
    apart.insert(apart.end(), {"--train.epochs=1", "--run.processes=2"});
    const Json processes = train_json(apart);
    EXPECT_EQ(processes.at("steps_done"), 4);
    EXPECT_EQ(processes.at("validation").size(), 1U);
}

// 60 images: 36 are trained on, 12 validated on and 12 tested on.
TEST(CommandLine, TheTestComesAfterTheLastStep) {
    const TemporaryFolder folder;
    const std::string images = folder / "data_batch_1.bin", trace = folder / "run.sqlite";
    trainer::testing::write_cifar(images, 60, 1);
    Words words = {sample("cifar.toml"),
                   "--data.path=" + images,
                   "--data.validation_path=",
                   "--data.validation=0.2",
                   "--data.test=0.2",
                   "--model.width=4",
                   "--data.batch=5",
                   "--run.steps=3",
                   "--train.validate_every=0",
                   "--trace",
                   trace};
    const Outcome outcome = train(words);
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(outcome.err,
                ContainsRegex("test after step 3: loss [0-9.]+, accuracy [0-9.]+ % over 2 batches"));
    EXPECT_THAT(outcome.out,
                ContainsRegex("Test with the parameters after step 3: loss [0-9.]+, accuracy [0-9.]+ %\n"));
    EXPECT_THAT(
        texts(trace, "SELECT name || ' ' || step FROM metrics WHERE name GLOB 'test_*' ORDER BY name"),
        ElementsAre("test_accuracy 2", "test_loss 2"));
    words.insert(words.end(), {"--overwrite", "--run.processes=2"});
    const Json result = train_json(words);
    EXPECT_EQ(result.at("test").at("step"), 3);
    EXPECT_EQ(result["test"].at("batches"), 2);
    EXPECT_THAT(outcome.out, HasSubstr(fmt::format("Test with the parameters after step 3: loss {:.6f}, ",
                                                   result["test"]["loss"].get<double>())));
    // All of them are tested on.
    words.insert(words.end(), {"--data.test=0", "--data.test_path=" + images, "--run.steps=1"});
    EXPECT_EQ(train_json(words).at("test").at("batches"), 12);
}

TEST(CommandLine, AllocatedActiveAndReservedAreDistinguished) {
    const TemporaryFolder folder;
    const Json result = train_json(arguments_for(Way::per_layer, folder));
    for (const Json& rank : result.at("ranks")) {
        EXPECT_LE(rank.at("peak_bytes"), rank.at("active_bytes"));
        EXPECT_LE(rank.at("active_bytes"), rank.at("reserved_bytes"));
    }
    EXPECT_THAT(train(arguments_for(Way::per_layer, folder)).out,
                ::testing::ContainsRegex("allocated [0-9.]+, active [0-9.]+, reserved [0-9.]+\n"));
}

TEST(CommandLine, TheRunIsDescribedWithEveryOptionThatIsNotADefault) {
    const Outcome outcome = train(
        {sample("mlp.toml"), "--model.width=16", "--run.steps=1", "--fsdp.cpu_offload", "--fsdp.layout=fsdp2",
         "--fsdp.limit_all_gathers=false", "--train.accumulation=2", "--train.clip_norm=1"});
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(
        outcome.err,
        HasSubstr("4 ranks, FSDP FULL_SHARD, wrap module:Linear, layout fsdp2, CPU offload, no limiter, 2 "
                  "micro-batches per step, gradients clipped to 1; mlp, 8 layers, width 16: 2,176 "
                  "parameters in 8 units\n"));
}

// Threads and processes, which exchange as many rows as the router says, give the same bits.
TEST(CommandLine, AnExpertGroupIsDescribedAndTheSameBetweenProcesses) {
    const Words job = {sample("gpt_experts.toml"), "--run.steps=3", "--run.ranks=2",
                       "--data.path=" + sample("README.md")};
    const Outcome threads = train(job);
    ASSERT_EQ(threads.status, 0) << threads.err;
    EXPECT_THAT(threads.err,
                HasSubstr("2 ranks, FSDP FULL_SHARD, wrap module:Block, expert groups of 2, layout fsdp2, no "
                          "limiter; gpt, 4 layers, width 64, 2 of 4 experts per token, context 64: "));
    const auto losses = train_json(job).at("losses");
    for (const char* comm : {"tcp", "gloo"}) {
        Words apart = job;
        apart.insert(apart.end(), {"--run.processes=2", std::string("--run.comm=") + comm});
        EXPECT_EQ(train_json(apart).at("losses"), losses) << comm;
    }
}

TEST(CommandLine, ATensorGroupIsDescribed) {
    const Outcome outcome =
        train({sample("gpt_tensor.toml"), "--run.steps=1", "--data.path=" + sample("README.md")});
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(
        outcome.err,
        HasSubstr("8 ranks, FSDP FULL_SHARD, wrap module:Block, tensor groups of 2 with sequence "
                  "parallelism, layout fsdp2, no limiter; gpt, 4 layers, width 64, context 64: 236,928 "
                  "parameters in 5 units\n"));
}

TEST(CommandLine, APipelineIsDescribed) {
    const Outcome outcome =
        train({sample("gpt_3d.toml"), "--run.steps=1", "--data.path=" + sample("README.md")});
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(
        outcome.err,
        HasSubstr("8 ranks, FSDP FULL_SHARD, wrap module:Block, tensor groups of 2, a pipeline of 2 places "
                  "(1f1b), layout fsdp2, no limiter, 4 micro-batches per step (no_sync); gpt, 4 layers, "
                  "width 64, context 64: 236,928 parameters in 6 units\n"));
}

TEST(CommandLine, ADryRunOfAPipelineShowsItsStagesAndEachPlace) {
    const Words job = {sample("gpt_3d.toml"), "--data.path=" + sample("README.md"), "--dry-run",
                       "--parallel.stages=blocks.3"};
    const Outcome text = train(job);
    ASSERT_EQ(text.status, 0) << text.err;
    EXPECT_THAT(text.out,
                AllOf(HasSubstr("token_embedding  blocks.2 "), HasSubstr("blocks.3         head ")));
    const Json plan = train_json(job);
    EXPECT_FALSE(plan.contains("steady_step")) << "each place has one";
    ASSERT_EQ(plan.at("places").size(), 2U);
    for (const Json& place : plan["places"]) {
        const Json& sends = place.at("steady_step").at("collectives").at("send");
        EXPECT_EQ(sends.at("count"), 4);
        EXPECT_EQ(sends.at("bytes"), 4 * 2 * 64 * 64 * 4);
        EXPECT_EQ(place.at("stages").size(), 1U);
    }
    EXPECT_EQ(plan["places"][1].at("first_rank"), 4);
    EXPECT_EQ(plan["places"][1]["stages"][0].at("first"), "blocks.3");
}

TEST(CommandLine, ReportsThatStandardOutputIsFull) {
    const std::string job = train_binary() + " '" + sample("mlp.toml") + "' --model.width=16 --run.steps=1";
    for (const char* how : {"", " --format json", " --dry-run", " --dry-run --format json"}) {
        const Outcome outcome = run_command({"sh", "-c", job + how + " > /dev/full"});
        EXPECT_EQ(outcome.status, 1) << how;
        EXPECT_THAT(outcome.err, HasSubstr("standard output cannot be written")) << how;
    }
}

TEST(CommandLine, ARunEndsWithItsSummaryItsPeakAndItsTrace) {
    const TemporaryFolder folder;
    Words arguments = arguments_for(Way::gpt, folder);
    arguments.insert(arguments.end(), {"--trace", folder / "run.sqlite"});
    const Outcome outcome = train(arguments);
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(outcome.out,
                AllOf(HasSubstr("Communication"), HasSubstr("DataLoader"), HasSubstr("unsharded_gradients"),
                      HasSubstr("Trace: " + (folder / "run.sqlite"))));
    EXPECT_THAT(outcome.err, HasSubstr("tokens/s"));
}

TEST(CommandLine, ADryRunPrintsThePlanAndItsPeak) {
    const TemporaryFolder folder;
    Words arguments = arguments_for(Way::per_layer, folder);
    arguments.emplace_back("--dry-run");
    const Outcome outcome = train(arguments);
    EXPECT_EQ(outcome.status, 0);
    EXPECT_EQ(outcome.err, "");
    EXPECT_THAT(outcome.out,
                AllOf(HasSubstr("all_gather"), HasSubstr("reduce_scatter"), HasSubstr("net.14"),
                      HasSubstr("Predicted peak per rank: "), HasSubstr("unsharded_parameters")));
    arguments.emplace_back("--fsdp.wrap=root");
    EXPECT_NE(train(arguments).out, outcome.out) << "the last word counts";
}

// The simulated device accepts them, too, and the name is in the description of a run.
TEST(CommandLine, AJobCanNameEachActivation) {
    for (std::size_t kind = 1; kind < std::size(trainer::kernels::kActivationNames); ++kind) {
        const std::string name(trainer::kernels::kActivationNames[kind]);
        Words arguments = {sample("mlp.toml"), "--model.width=16", "--run.steps=1",
                           "--model.activation=" + name};
        const Outcome run = train(arguments);
        EXPECT_EQ(run.status, 0) << run.err;
        EXPECT_THAT(run.err, HasSubstr("width 16, activation " + name + ":"));
        arguments.emplace_back("--dry-run");
        EXPECT_THAT(train(arguments).out, AllOf(HasSubstr(name + "_forward"), HasSubstr(name + "_backward")));
        arguments.back() = "--run.device=sim";
        EXPECT_EQ(train(arguments).status, 0) << name;
    }
}

}  // namespace TEST_FILE
}  // namespace shardscope::tools
