#include "trainer/cli/generate.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "trainer/checkpoint/error.h"
#include "trainer/checkpoint/loader.h"
#include "trainer/cli/continuation.h"
#include "trainer/cli/dry_run.h"
#include "trainer/cli/environment.h"
#include "trainer/cli/exit_status.h"
#include "trainer/cli/stop.h"
#include "trainer/cli/trace_output.h"
#include "trainer/data/bpe.h"
#include "trainer/data/tokenizer.h"
#include "trainer/executor/generation_run.h"
#include "trainer/executor/int8_weights.h"
#include "trainer/model/models.h"
#include "trainer/sharding/program.h"

namespace shardscope::trainer::cli {

namespace {

void check(const job::Job& job, const GenerateOptions& options) {
    if (!has_tokens(job.model.type) || job.model.type == job::ModelType::bert) {
        throw job::JobError(fmt::format(
            "{}model.type: {}; set it to \"gpt\" or \"llama\"", where(job, "model.type"),
            job.model.type == job::ModelType::mlp ? "an mlp cannot continue a text"
            : sees_images(job.model.type)         ? "a network for images cannot continue a text"
                                                  : "a bert fills gaps in a text and cannot continue one"));
    }
    if (job.checkpoint.load.empty()) {
        throw job::JobError(
            "--generate: the job's model is not trained; set checkpoint.load to a folder that "
            "checkpoint.save of its "
            "training filled");
    }
    if (job.run.device == job::DeviceKind::sim) {
        throw job::JobError(where(job, "run.device") +
                            "run.device: a simulated model has no texts; set it to \"cpu\"");
    }
    const int head_width = job.model.width / job.model.heads;
    if (options.cache && job.run.device == job::DeviceKind::cuda && head_width > job::kMostFusedHeadWidth) {
        throw job::JobError(
            fmt::format("{}model.heads: on a GPU a key/value cache has heads of up to {} features, not {}; "
                        "add --no-cache",
                        where(job, "model.heads"), job::kMostFusedHeadWidth, head_width));
    }
}

std::unique_ptr<data::Tokenizer> tokenizer_of(const checkpoint::StoredCheckpoint& stored,
                                              const job::Job& job) {
    if (stored.tokenizer().empty()) return std::make_unique<data::ByteTokenizer>();
    const std::string file = (stored.folder() / stored.manifest().tokenizer).string();
    auto tokenizer = std::make_unique<data::BpeTokenizer>(data::bpe_from_text(stored.tokenizer(), file));
    if (tokenizer->vocabulary() > model::vocabulary(job)) {
        throw checkpoint::CheckpointError(
            fmt::format("{}: has {} tokens, the job's model {}; set model.vocabulary = {}", file,
                        tokenizer->vocabulary(), model::vocabulary(job), tokenizer->vocabulary()));
    }
    return tokenizer;
}

}  // namespace

int generate(const job::Job& job, const GenerateOptions& options) {
    check(job, options);
    const checkpoint::StoredCheckpoint stored(job.checkpoint.load);
    const std::unique_ptr<data::Tokenizer> tokenizer = tokenizer_of(stored, job);
    Continuation continuation(job, *tokenizer, options);
    const sharding::Program program(job, continuation.shape());
    if (options.dry_run) {
        fmt::print("{}", options.json ? dry_run_json(program) : dry_run_text(program));
        return 0;
    }
    const checkpoint::CheckpointLoader loader(stored, program.job(), checkpoint::layout_of(program),
                                              checkpoint::LoadUse::weights);
    TraceOutput trace(program.job(), nullptr);
    if (profiler::Recorder* recorder = trace.recorder()) {
        for (const traces::schema::RunInfoRow& fact : environment_of(program.job(), nullptr).facts)
            recorder->describe(fact);
    }
    std::atomic<bool> stop = false;
    std::optional<StopSignals> listening;
    if (trace.recorder()) listening.emplace(&stop);  // so that the trace is complete
    executor::GenerationCalls calls;
    calls.after_setup = [&](int rank, executor::RankRunner& runner) {
        loader.fill(
            rank, [&](const plan::Arg& where) { return executor::parameter_values(program, runner, where); });
        continuation.start();
    };
    calls.write = [&](executor::Forward forward, const executor::ForwardInput& input) {
        continuation.write(forward, input);
    };
    calls.read = [&](executor::Forward forward, std::span<const float> logits) {
        const auto next = continuation.read(forward, logits);
        return stop ? std::nullopt : next;
    };
    try {
        trace.measure_clock();
        run_generation(program, continuation.first(), calls, trace.recorder());
        trace.measure_clock();
    } catch (...) {
        trace.give_up();
        throw;
    }
    continuation.report();
    const TraceOutput::End end = trace.finish();
    for (const std::string& warning : end.warnings)
        fmt::print(stderr, "shardscope-train: warning: {}\n", warning);
    if (!end.trace.empty()) fmt::print(stderr, "Trace: {}\n", end.trace);
    if (stop) return kSignalled + StopSignals::received();
    return end.failed ? kFailed : 0;
}

}  // namespace shardscope::trainer::cli
