// Images with labels: fp32 [side, side, channels] (NHWC) and an int32 class per sample.
#pragma once

#include <cstdint>

#include "trainer/data/dataset.h"

namespace shardscope::trainer::data {

// Made from the seed: normal noise over a coarse pattern of the sample's class, which a model can learn. The
// class is random.
class SyntheticImages final : public Dataset {
  public:
    SyntheticImages(std::int64_t seed, int side, int classes);

    std::int64_t input_bytes() const override;
    std::int64_t target_bytes() const override;
    std::int64_t samples() const override { return 0; }
    void fill(std::int64_t first_sample, int count, void* input, void* target) const override;

  private:
    std::int32_t fill_one(std::uint64_t sample, float* image) const;

    std::uint64_t seed_;
    std::size_t side_;
    std::uint64_t classes_;
};

}  // namespace shardscope::trainer::data
