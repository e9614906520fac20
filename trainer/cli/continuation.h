// Texts that a model continues: their tokens, the model's input made of them, the next token drawn from its
// output, and how long that took.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/cli/generate.h"
#include "trainer/data/tokenizer.h"
#include "trainer/executor/generation_run.h"
#include "trainer/job/job.h"
#include "trainer/sharding/program.h"

namespace shardscope::trainer::cli {

class Continuation {
  public:
    Continuation(const job::Job& job, const data::Tokenizer& tokenizer, const GenerateOptions& options);

    sharding::Texts shape() const;
    executor::Forward first() const;

    void start();  // prints the prompt of a single text; the time begins
    void write(executor::Forward forward, const executor::ForwardInput& input) const;
    // Takes the logits of that input. Throws RunError: they are not finite.
    std::optional<executor::Forward> read(executor::Forward forward, std::span<const float> logits);
    // What is to be said at the end, on standard output and standard error.
    void report() const;

  private:
    using Clock = std::chrono::steady_clock;
    struct Text {
        std::string prompt, continued;
        std::vector<data::Token> tokens;
    };

    // The tokens that a model sees: the last `context` ones.
    std::span<const data::Token> seen(const Text& text) const;
    data::Token draw(std::span<const float> logits, std::size_t text) const;
    bool streams() const { return !options_.json && texts_.size() == 1; }
    static void print(std::string_view text);
    std::string figures() const;
    std::string json() const;

    const data::Tokenizer& tokenizer_;
    const GenerateOptions options_;
    const std::uint64_t seed_;
    const std::size_t context_, vocabulary_;
    std::vector<Text> texts_;
    std::size_t prompt_ = 0;                  // tokens of the longest that are read
    std::int64_t generated_ = 0, whole_ = 0;  // `whole_`: of them, after forwards of the whole context
    Clock::time_point before_;
    double first_s_ = 0;               // until the first token was drawn
    std::vector<double> latencies_s_;  // of each further one
};

}  // namespace shardscope::trainer::cli
