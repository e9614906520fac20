// Windows of a row of tokens; see text.h.
#include "trainer/data/text.h"

#include <algorithm>
#include <cstddef>
#include <stdexcept>

#include <fmt/core.h>

namespace shardscope::trainer::data {

TextDataset::TextDataset(std::shared_ptr<const TokenSequence> tokens, TokenRange part, int context,
                         SampleOrder order, std::int64_t seed)
    : tokens_(std::move(tokens)), part_(part), context_(context) {
    if (context < 1 || part.first < 0 || part.first + part.count > tokens_->size() || samples() < 1) {
        throw std::invalid_argument("a part of the text contains no window");
    }
    if (order == SampleOrder::shuffled) sampler_.emplace(samples(), seed);
}

std::int64_t TextDataset::input_bytes() const {
    return static_cast<std::int64_t>(sizeof(Token)) * context_;
}

std::int64_t TextDataset::target_bytes() const {
    return input_bytes();
}

std::int64_t TextDataset::position_of(std::int64_t sample) const {
    if (sampler_) return start_of(sampler_->sample_at(sample));
    if (sample < 0 || sample >= samples()) {
        throw std::out_of_range(fmt::format("sample {} of {}", sample, samples()));
    }
    return start_of(sample);
}

void TextDataset::fill(std::int64_t first_sample, int count, void* input, void* target) const {
    fill(first_sample, count, static_cast<Token*>(input), static_cast<Token*>(target));
}

void TextDataset::fill(std::int64_t first_sample, int count, Token* tokens, Token* targets) const {
    for (int i = 0; i < count; ++i) {
        const std::int64_t start = position_of(first_sample + i);
        tokens_->read(start, context_, tokens);
        std::copy(tokens + 1, tokens + context_, targets);
        tokens_->read(start + context_, 1, targets + context_ - 1);
        tokens += context_;
        targets += context_;
    }
}

}  // namespace shardscope::trainer::data
