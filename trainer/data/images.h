// Images with labels: fp32 [side, side, channels] (NHWC) and an int32 class per sample.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/data/dataset.h"
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

struct CifarFile {
    std::string path, bytes;
};

// The images of CIFAR-10 or CIFAR-100 in their binary version (Krizhevsky: "Learning multiple layers of
// features from tiny images", 2009), in memory as they are in the files: a label of one byte, or a coarse and
// a fine one, then 32 x 32 pixels as planes of red, green and blue. A sample's values are (byte / 255 - 0.5)
// / 0.5; the order is that of sampler.h.
class CifarImages final : public Dataset {
  public:
    static constexpr int kSide = 32;

    // `path`: a file, or a folder, whose *.bin files count, but not its test set. Throws DataError if there
    // is none, if a file is not a whole number of images, or if a label is not below `classes`.
    CifarImages(const std::string& path, int classes, std::int64_t seed);

    std::int64_t input_bytes() const override;
    std::int64_t target_bytes() const override;
    std::int64_t samples() const override { return static_cast<std::int64_t>(records_.size()); }
    void fill(std::int64_t first_sample, int count, void* input, void* target) const override;

  private:
    std::vector<CifarFile> files_;
    std::vector<const char*> records_;  // of each image: its label, which its pixels follow
    Sampler sampler_;
};

}  // namespace shardscope::trainer::data
