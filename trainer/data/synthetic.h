// Regression on synthetic samples: the input is normal, the target a fixed smooth function of it that a model
// can learn. Both fp32, `width` elements.
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/data/dataset.h"

namespace shardscope::trainer::data {

class SyntheticDataset final : public Dataset {
  public:
    SyntheticDataset(std::int64_t seed, int width);

    std::int64_t input_bytes() const override;
    std::int64_t target_bytes() const override;
    std::int64_t samples() const override { return 0; }
    void fill(std::int64_t first_sample, int count, void* input, void* target) const override;

    // x and y [count,width]. x[j] is normal; with u = sum over 4 taps of weight[tap][j] * x[(j + shift[tap])
    // mod width], y[j] = offset[j] + u / sqrt(1 + u*u). Weights, shifts and offsets are functions of the
    // seed.
    void fill(std::int64_t first_sample, int count, float* x, float* y) const;

  private:
    static constexpr int kTaps = 4;

    std::uint64_t seed_;
    int width_;
    std::vector<float> offset_;  // [width]
    std::vector<float> weight_;  // [tap,width]
    int shift_[kTaps];
};

}  // namespace shardscope::trainer::data
