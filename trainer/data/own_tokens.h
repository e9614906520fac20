// The tokens that a rank of a context group has of each sample (kernels/context_cut.h): of the inputs and of
// the targets, int32 both.
#pragma once

#include <cstdint>

#include "trainer/data/dataset.h"
#include "trainer/kernels/context_cut.h"

namespace shardscope::trainer::data {

class OwnTokens final : public Dataset {
  public:
    // `whole` must outlive it. The cut's chunks divide the tokens of a sample.
    OwnTokens(const Dataset& whole, const kernels::ContextCut& cut) : whole_(whole), cut_(cut) {}

    std::int64_t input_bytes() const override { return whole_.input_bytes() / cut_.ranks; }
    std::int64_t target_bytes() const override { return whole_.target_bytes() / cut_.ranks; }
    std::int64_t samples() const override { return whole_.samples(); }
    void fill(std::int64_t first_sample, int count, void* input, void* target) const override;

  private:
    const Dataset& whole_;
    kernels::ContextCut cut_;
};

}  // namespace shardscope::trainer::data
