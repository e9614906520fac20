// How a picture becomes a sample, as torchvision's transforms do it: resized so that its shorter side has a
// number of pixels, cut to a square, mirrored or not, and normalized. Resizing is bilinear with antialias:
// each result is a weighted mean of the pixels that it covers. Plain functions, thread safe.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "trainer/data/image_files.h"
#include "trainer/job/job.h"

namespace shardscope::trainer::data {

struct Preparation {
    explicit Preparation(const job::DataSection& data);

    int side = 224;     // of the result
    int shorter = 224;  // side of the picture before the cut
    job::ImageCrop crop = job::ImageCrop::center;
    int padding = 0;
    bool flip = false;
    std::array<float, job::kImageChannels> mean{}, deviation{};
};

// Along one axis: the pixels [first, first + count) of the picture are resized to `resized` ones, of which
// the result shows those from `from` on, black outside.
struct CutAxis {
    int first = 0, count = 0;
    int resized = 0, from = 0;
};
struct Cut {
    CutAxis down, across;
    bool mirrored = false;
};

// What the random parts of a sample follow from.
struct SampleSeed {
    std::uint64_t seed = 1;
    std::int64_t sample = 0;
};

// For a picture of this size: Resize and CenterCrop; for training what crop and flip say: RandomCrop with its
// padding or RandomResizedCrop (0.08 to 1 of the area, sides 3:4 to 4:3), and RandomHorizontalFlip.
Cut middle_cut(const Preparation& preparation, int height, int width);
Cut random_cut(const Preparation& preparation, int height, int width, const SampleSeed& seed);

// Writes fp32 [side, side, channels]. `rows` is room that calls may share.
void prepare(const Preparation& preparation, const Picture& picture, const Cut& cut, std::vector<float>& rows,
             float* image);

}  // namespace shardscope::trainer::data
