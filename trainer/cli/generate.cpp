#include "trainer/cli/generate.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include <fmt/core.h>

#include "trainer/checkpoint/error.h"
#include "trainer/checkpoint/loader.h"
#include "trainer/cli/next_token.h"
#include "trainer/data/bpe.h"
#include "trainer/data/tokenizer.h"
#include "trainer/executor/rank_runner.h"
#include "trainer/executor/training_run.h"
#include "trainer/kernels/random.h"
#include "trainer/model/models.h"
#include "trainer/sharding/program.h"

namespace shardscope::trainer::cli {

namespace {

constexpr int kTokens = 400;  // tokens to generate

void check(const job::Job& job) {
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

// The text so far, the model's input made from it, and the next token drawn from the model's output.
class Continuation {
  public:
    Continuation(const job::Job& job, const data::Tokenizer& tokenizer, const std::string& text)
        : tokenizer_(tokenizer),
          seed_(static_cast<std::uint64_t>(job.run.seed)),
          context_(static_cast<std::size_t>(job.model.context)),
          vocabulary_(static_cast<std::size_t>(model::vocabulary(job))),
          tokens_(tokenizer.encode(text.empty() ? "\n" : text)) {
        print(text);
    }

    // The last `context` tokens. If there are fewer, zeros follow: tokens do not attend to later ones.
    void write_input(std::span<std::byte> input) const {
        std::vector<data::Token> window(context_, 0);
        const std::size_t seen = std::min(context_, tokens_.size());
        std::copy(tokens_.end() - static_cast<std::ptrdiff_t>(seen), tokens_.end(), window.begin());
        std::memcpy(input.data(), window.data(), std::min(input.size(), window.size() * sizeof(data::Token)));
    }

    // Takes the logits of that input; false: that was the last token.
    bool append(std::span<const float> logits) {
        const std::size_t last = std::min(context_, tokens_.size()) - 1;
        // A model may have more logits than the vocabulary has tokens: the excess ones were never trained.
        const auto known = static_cast<std::size_t>(tokenizer_.vocabulary());
        const data::Token token =
            next_token(logits.subspan(last * vocabulary_, std::min(known, vocabulary_)), {},
                       kernels::uniform(seed_, kernels::stream_of("generate"), generated_));
        if (token < 0)
            throw executor::RunError(
                "the model's outputs are not finite; load a checkpoint of an earlier step");
        tokens_.push_back(token);
        print(tokenizer_.entry(token));
        return ++generated_ < kTokens && std::ferror(stdout) == 0;
    }

  private:
    static void print(std::string_view text) {
        std::fwrite(text.data(), 1, text.size(), stdout);
        std::fflush(stdout);
    }

    const data::Tokenizer& tokenizer_;
    std::uint64_t seed_, generated_ = 0;
    std::size_t context_, vocabulary_;
    std::vector<data::Token> tokens_;
};

}  // namespace

int generate(const job::Job& job, const std::string& text) {
    check(job);
    const checkpoint::StoredCheckpoint stored(job.checkpoint.load);
    const std::unique_ptr<data::Tokenizer> tokenizer = tokenizer_of(stored, job);
    const sharding::Program program(job, sharding::Purpose::generate);
    const checkpoint::CheckpointLoader loader(stored, program.job(), checkpoint::layout_of(program),
                                              checkpoint::LoadUse::weights);
    Continuation continuation(program.job(), *tokenizer, text);
    executor::run_forward(
        program,
        [&](int rank, executor::RankRunner& runner) {
            loader.fill(rank, [&](const plan::Arg& arg) { return runner.contents(arg); });
        },
        [&](std::span<std::byte> input) { continuation.write_input(input); },
        [&](std::span<const float> logits) { return continuation.append(logits); });
    std::fputc('\n', stdout);
    return 0;
}

}  // namespace shardscope::trainer::cli
