// Text as samples: a part of a row of tokens is cut into windows of context + 1 tokens that start `context`
// apart, so that every token but the part's first is a target once. A sample's first `context` tokens are the
// input, its last `context` the targets: each token's successor. The remainder at the end is not used.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "trainer/data/dataset.h"
#include "trainer/data/sampler.h"
#include "trainer/data/tokens.h"

namespace shardscope::trainer::data {

// The tokens [first, first + count) of a row.
struct TokenRange {
    std::int64_t first = 0;
    std::int64_t count = 0;
};

// Windows of context + 1 tokens, `context` apart, in a part of `tokens` tokens.
constexpr std::int64_t windows_in(std::int64_t tokens, int context) {
    return tokens > context ? (tokens - 1) / context : 0;
}

enum class SampleOrder : std::uint8_t {
    shuffled,    // without end, a new order each epoch (sampler.h): for training
    as_in_text,  // sample i is window i, once: for validation
};

class TextDataset final : public Dataset {
  public:
    // `part` must lie within `tokens` and hold at least one window (windows_in); otherwise throws
    // std::invalid_argument.
    TextDataset(std::shared_ptr<const TokenSequence> tokens, TokenRange part, int context, SampleOrder order,
                std::int64_t seed);

    std::int64_t input_bytes() const override;
    std::int64_t target_bytes() const override;
    std::int64_t samples() const override { return windows_in(part_.count, context_); }

    // In the order as_in_text, throws std::out_of_range if a sample is not below samples().
    void fill(std::int64_t first_sample, int count, void* input, void* target) const override;

    // tokens and targets [count,context].
    void fill(std::int64_t first_sample, int count, Token* tokens, Token* targets) const;

    // Where in the row of tokens the window of a sample starts.
    std::int64_t position_of(std::int64_t sample) const;

    TokenRange part() const { return part_; }

  private:
    std::int64_t start_of(std::int64_t window) const { return part_.first + window * context_; }

    std::shared_ptr<const TokenSequence> tokens_;
    TokenRange part_;
    int context_;
    std::optional<Sampler> sampler_;  // empty: as in the text
};

}  // namespace shardscope::trainer::data
