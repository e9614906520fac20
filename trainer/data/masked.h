// Text with gaps, for a model that fills them (Devlin et al., arXiv:1810.04805, section 3.1):
// masked_tokens(context) tokens of each sample are chosen; 80 % of these are replaced by the mask, 10 % by a
// random token, and 10 % stay. The target of a chosen position is its token; that of any other is negative
// and adds nothing to the loss. The choice is a function of (seed, number of the sample in the run's stream),
// so that a repeated text gets different gaps.
#pragma once

#include <cstdint>
#include <memory>

#include "trainer/data/dataset.h"

namespace shardscope::trainer::data {

struct Masking {
    int context = 0;        // tokens of a sample
    std::int32_t mask = 0;  // the token of a gap; the text's tokens are below it
    std::int64_t seed = 1;
};

class MaskedDataset final : public Dataset {
  public:
    static constexpr std::int32_t kNoTarget = -1;

    // Only the inputs of `text`, int32 tokens, are used.
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

}  // namespace shardscope::trainer::data
