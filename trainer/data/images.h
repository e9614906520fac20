// Images with labels: fp32 [side, side, channels] (NHWC) and an int32 class per sample.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "trainer/data/dataset.h"
#include "trainer/data/image_files.h"
#include "trainer/data/preparation.h"
#include "trainer/data/sampler.h"

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

// Some of the images of files: those from `first` on in a random order of all.
struct ImageRange {
    std::int64_t first = 0, count = 0;
};

// Images of files, cut and normalized (preparation.h). To train on, they are in the order of sampler.h, and
// their random parts follow from the seed and the sample's number; to validate on, each is there once, in the
// order of the range, and its middle is used.
class PreparedImages final : public Dataset {
  public:
    PreparedImages(std::shared_ptr<const ImageFiles> files, const ImageRange& range,
                   const Preparation& preparation, std::int64_t seed, bool trains);

    std::int64_t input_bytes() const override;
    std::int64_t target_bytes() const override;
    std::int64_t samples() const override { return range_.count; }
    void fill(std::int64_t first_sample, int count, void* input, void* target) const override;

  private:
    std::shared_ptr<const ImageFiles> files_;
    ImageRange range_;
    Preparation preparation_;
    std::uint64_t seed_;
    bool trains_;
    Permutation shares_;  // which images are in a range
    Sampler sampler_;
};

}  // namespace shardscope::trainer::data
