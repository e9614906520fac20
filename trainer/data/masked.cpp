#include "trainer/data/masked.h"

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <utility>

#include "trainer/job/masking.h"
#include "trainer/kernels/random.h"

namespace shardscope::trainer::data {

namespace {

constexpr std::uint32_t kReplaced = 0xcccccccc;  // 80 % of 2^32
constexpr std::uint32_t kChanged = 0xe6666666;   // and another 10 %

}  // namespace

MaskedDataset::MaskedDataset(std::unique_ptr<const Dataset> text, const Masking& masking)
    : text_(std::move(text)), masking_(masking) {
    const auto bytes = static_cast<std::int64_t>(sizeof(std::int32_t)) * masking.context;
    if (masking.context < 1 || masking.mask < 1 || text_->input_bytes() != bytes) {
        throw std::invalid_argument("masking needs samples of `context` tokens");
    }
}

void MaskedDataset::fill(std::int64_t first_sample, int count, void* input, void* target) const {
    text_->fill(first_sample, count, input, target);
    auto* tokens = static_cast<std::int32_t*>(input);
    auto* targets = static_cast<std::int32_t*>(target);
    for (int i = 0; i < count; ++i) {
        mask(first_sample + i, tokens, targets);
        tokens += masking_.context;
        targets += masking_.context;
    }
}

// Goes through the positions once and chooses each with the remaining probability, so that the number chosen
// is always the same (selection sampling: Knuth, The Art of Computer Programming 2, 3.4.2, algorithm S).
void MaskedDataset::mask(std::int64_t sample, std::int32_t* tokens, std::int32_t* targets) const {
    const auto seed = static_cast<std::uint64_t>(masking_.seed);
    const auto context = static_cast<std::uint64_t>(masking_.context);
    static const std::uint64_t kChoice = kernels::stream_of("data.masked.choice");
    static const std::uint64_t kWhat = kernels::stream_of("data.masked.what");
    auto wanted = static_cast<std::uint64_t>(job::masked_tokens(masking_.context));
    std::fill_n(targets, context, kNoTarget);
    for (std::uint64_t t = 0; t < context && wanted > 0; ++t) {
        const std::uint64_t index = static_cast<std::uint64_t>(sample) * context + t;
        // The upper 32 bits as a number below context - t; its bias is below 2^-15.
        const std::uint64_t place = (kernels::random_bits(seed, kChoice, index) >> 32) * (context - t) >> 32;
        if (place >= wanted) continue;
        --wanted;
        targets[t] = tokens[t];
        const std::uint64_t bits = kernels::random_bits(seed, kWhat, index);
        const auto what = static_cast<std::uint32_t>(bits);
        if (what < kReplaced) {
            tokens[t] = masking_.mask;
        } else if (what < kChanged) {
            tokens[t] =
                static_cast<std::int32_t>((bits >> 32) * static_cast<std::uint64_t>(masking_.mask) >> 32);
        }
    }
}

}  // namespace shardscope::trainer::data
