#include "trainer/cli/continuation.h"

#include <algorithm>
#include <cstdio>
#include <numeric>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "traces/schema/json_text.h"
#include "trainer/cli/next_token.h"
#include "trainer/executor/run.h"
#include "trainer/kernels/random.h"
#include "trainer/model/models.h"

namespace shardscope::trainer::cli {

namespace {

using executor::Forward;

// Random numbers of a text, which no other text of a job has.
constexpr std::uint64_t kNumbersOfText = std::uint64_t{1} << 32;

// Of at least one; the rank is rounded up, so that 1 is the largest.
double percentile(std::vector<double> values, double share) {
    std::sort(values.begin(), values.end());
    const auto at = static_cast<std::size_t>(share * static_cast<double>(values.size() - 1) + 0.999999);
    return values[std::min(at, values.size() - 1)];
}

}  // namespace

Continuation::Continuation(const job::Job& job, const data::Tokenizer& tokenizer,
                           const GenerateOptions& options)
    : tokenizer_(tokenizer),
      options_(options),
      seed_(static_cast<std::uint64_t>(job.run.seed)),
      context_(static_cast<std::size_t>(job.model.context)),
      vocabulary_(static_cast<std::size_t>(model::vocabulary(job))) {
    for (const std::string& prompt : options.texts) {
        Text& text = texts_.emplace_back(Text{prompt, {}, tokenizer.encode(prompt.empty() ? "\n" : prompt)});
        prompt_ = std::max(prompt_, seen(text).size());
    }
}

sharding::Texts Continuation::shape() const {
    return {static_cast<int>(texts_.size()), options_.cache ? static_cast<int>(prompt_) : 0, options_.tokens,
            options_.weights == "int8"};
}

Forward Continuation::first() const {
    return options_.cache ? Forward::prefill : Forward::whole;
}

void Continuation::start() {
    if (streams()) print(texts_.front().prompt);
    before_ = Clock::now();
}

std::span<const data::Token> Continuation::seen(const Text& text) const {
    const std::span<const data::Token> all = text.tokens;
    return all.last(std::min(context_, all.size()));
}

// Behind a text that is shorter than another, zeros follow: tokens do not attend to later ones, and a cache
// has these overwritten when their places are reached.
void Continuation::write(Forward forward, const executor::ForwardInput& input) const {
    const std::size_t rows = input.tokens.size() / texts_.size();
    std::fill(input.tokens.begin(), input.tokens.end(), 0);
    for (std::size_t t = 0; t < texts_.size(); ++t) {
        const std::span<const data::Token> tokens = seen(texts_[t]);
        const std::size_t first = forward == Forward::decode ? tokens.size() - 1 : 0;
        std::copy(tokens.begin() + static_cast<std::ptrdiff_t>(first), tokens.end(),
                  input.tokens.begin() + static_cast<std::ptrdiff_t>(t * rows));
        for (std::size_t i = 0; i < rows; ++i)
            input.positions[t * rows + i] = static_cast<std::int32_t>(first + i);
        input.last[t] = static_cast<std::int32_t>(t * rows + tokens.size() - first - 1);
    }
}

data::Token Continuation::draw(std::span<const float> logits, std::size_t text) const {
    // A model may have more logits than the vocabulary has tokens: the excess ones were never trained.
    const auto known = static_cast<std::size_t>(tokenizer_.vocabulary());
    const std::uint64_t number = text * kNumbersOfText + static_cast<std::uint64_t>(generated_);
    const data::Token token = next_token(logits.first(std::min(known, vocabulary_)), {},
                                         kernels::uniform(seed_, kernels::stream_of("generate"), number));
    if (token < 0)
        throw executor::RunError("the model's outputs are not finite; load a checkpoint of an earlier step");
    return token;
}

std::optional<Forward> Continuation::read(Forward forward, std::span<const float> logits) {
    bool full = false;
    for (std::size_t t = 0; t < texts_.size(); ++t) {
        Text& text = texts_[t];
        const std::size_t row = forward == Forward::whole ? t * context_ + seen(text).size() - 1 : t;
        const data::Token token = draw(logits.subspan(row * vocabulary_, vocabulary_), t);
        text.tokens.push_back(token);
        text.continued += tokenizer_.entry(token);
        if (streams()) print(tokenizer_.entry(token));
        full = full || text.tokens.size() > context_;
    }
    const Clock::time_point now = Clock::now();
    const double seconds = std::chrono::duration<double>(now - std::exchange(before_, now)).count();
    if (generated_ == 0) {
        first_s_ = seconds;
    } else {
        latencies_s_.push_back(seconds);
    }
    if (forward == Forward::whole) ++whole_;
    if (++generated_ == options_.tokens || std::ferror(stdout) != 0) return std::nullopt;
    // All positions change when the context moves on: nothing that is cached holds any more.
    return options_.cache && !full ? Forward::decode : Forward::whole;
}

void Continuation::print(std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
}

std::string Continuation::figures() const {
    const auto count = [](std::size_t n, const char* what) {
        return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
    };
    std::string line = fmt::format("{} of {} tokens: first token after {:.1f} ms",
                                   count(texts_.size(), "prompt"), prompt_, 1e3 * first_s_);
    if (latencies_s_.empty()) return line;
    const double all = std::accumulate(latencies_s_.begin(), latencies_s_.end(), 0.0);
    line += fmt::format("; {:.1f} tokens/s, a token after {:.2f} ms (median), {:.2f} (95 %), {:.2f} (99 %)",
                        static_cast<double>(latencies_s_.size() * texts_.size()) / all,
                        1e3 * percentile(latencies_s_, 0.5), 1e3 * percentile(latencies_s_, 0.95),
                        1e3 * percentile(latencies_s_, 0.99));
    if (options_.cache && whole_ > 0) {
        line += fmt::format("; {} without the cache, because the context of {} was full",
                            count(static_cast<std::size_t>(whole_), "token"), context_);
    }
    return line;
}

std::string Continuation::json() const {
    nlohmann::ordered_json result;
    for (const Text& text : texts_)
        result["texts"].push_back({{"prompt", text.prompt}, {"continued", text.continued}});
    result["tokens"] = generated_;
    result["cache"] = options_.cache;
    result["weights"] = options_.weights;
    result["tokens_after_whole_context"] = whole_;
    result["prompt_tokens"] = prompt_;
    result["first_token_s"] = first_s_;
    result["latencies_s"] = latencies_s_;
    if (!latencies_s_.empty()) {
        const double all = std::accumulate(latencies_s_.begin(), latencies_s_.end(), 0.0);
        result["tokens_per_s"] = static_cast<double>(latencies_s_.size() * texts_.size()) / all;
        result["latency_ms"] = {{"median", 1e3 * percentile(latencies_s_, 0.5)},
                                {"p95", 1e3 * percentile(latencies_s_, 0.95)},
                                {"p99", 1e3 * percentile(latencies_s_, 0.99)}};
    }
    return traces::schema::dump_json(result);
}

void Continuation::report() const {
    if (options_.json) {
        print(json() + "\n");
    } else if (streams()) {
        print("\n");
    } else {
        for (std::size_t t = 0; t < texts_.size(); ++t)
            print(fmt::format("{}[{}] {}{}\n", t == 0 ? "" : "\n", t + 1, texts_[t].prompt,
                              texts_[t].continued));
    }
    fmt::print(stderr, "{}\n", figures());
}

}  // namespace shardscope::trainer::cli
