// Text with gaps, for a model that fills them (Devlin et al., arXiv:1810.04805, section 3.1): of each sample
// masked_tokens(context) tokens are chosen; 80 % of these are replaced by the mask, 10 % by any token, 10 %
// stay. The target of a chosen position is its token, that of any other is negative: it adds nothing to the
// loss. What is chosen is a function of (seed, number of the sample in the run's stream), so that a text that
// comes again has other gaps.
#pragma once

#include <cstdint>
#include <memory>

#include "trainer/data/dataset.h"

namespace shardscope::trainer {

struct Masking {
    int context = 0;        // tokens of a sample
    std::int32_t mask = 0;  // the token that stands for a gap; those of the text are below it
    std::int64_t seed = 1;
};

class MaskedDataset final : public Dataset {
  public:
    static constexpr std::int32_t kNoTarget = -1;

    // Of `text` only the inputs are used, int32 tokens.
    MaskedDataset(std::unique_ptr<const Dataset> text, const Masking& masking);

    std::int64_t input_bytes() const override { return text_->input_bytes(); }
    std::int64_t target_bytes() const override { return text_->target_bytes(); }
    std::int64_t samples() const override { return text_->samples(); }
    void fill(std::int64_t first_sample, int count, void* input, void* target) const override;

  private:
    void mask(std::int64_t sample, std::int32_t* tokens, std::int32_t* targets) const;

    std::unique_ptr<const Dataset> text_;
    Masking masking_;
};

}  // namespace shardscope::trainer
