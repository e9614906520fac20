#include "trainer/data/images.h"

#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include "trainer/job/job.h"
#include "trainer/kernels/random.h"

namespace shardscope::trainer::data {

namespace {

using kernels::stream_of;

constexpr std::size_t kChannels = job::kImageChannels;
constexpr std::size_t kPatches = 4;  // of a class's pattern, along a side
constexpr std::size_t kPattern = kPatches * kPatches * kChannels;
constexpr std::uint64_t kBlock = 64;  // random numbers that the generator makes at a time

constexpr std::uint64_t whole_blocks(std::uint64_t n) {
    return (n + kBlock - 1) / kBlock * kBlock;
}

}  // namespace

SyntheticImages::SyntheticImages(std::int64_t seed, int side, int classes)
    : seed_(static_cast<std::uint64_t>(seed)),
      side_(static_cast<std::size_t>(side)),
      classes_(static_cast<std::uint64_t>(classes)) {}

std::int64_t SyntheticImages::input_bytes() const {
    return static_cast<std::int64_t>(side_ * side_ * kChannels * sizeof(float));
}

std::int64_t SyntheticImages::target_bytes() const {
    return sizeof(std::int32_t);
}

void SyntheticImages::fill(std::int64_t first_sample, int count, void* input, void* target) const {
    auto* image = static_cast<float*>(input);
    auto* label = static_cast<std::int32_t*>(target);
    for (int i = 0; i < count; ++i, image += side_ * side_ * kChannels)
        *label++ = fill_one(static_cast<std::uint64_t>(first_sample + i), image);
}

std::int32_t SyntheticImages::fill_one(std::uint64_t sample, float* image) const {
    const std::uint64_t label =
        (kernels::random_bits(seed_, stream_of("data.images.label"), sample) >> 32) % classes_;
    std::array<float, kPattern> pattern{};
    kernels::fill_normal(pattern.data(), kPattern, seed_, stream_of("data.images.pattern"),
                         label * whole_blocks(kPattern), 0.0F, 1.0F);
    const std::size_t n = side_ * side_ * kChannels;
    kernels::fill_normal(image, n, seed_, stream_of("data.images.noise"), sample * whole_blocks(n), 0.0F,
                         1.0F);
    for (std::size_t y = 0; y < side_; ++y) {
        const float* row = pattern.data() + y * kPatches / side_ * kPatches * kChannels;
        for (std::size_t x = 0; x < side_; ++x, image += kChannels) {
            const float* patch = row + x * kPatches / side_ * kChannels;
            for (std::size_t c = 0; c < kChannels; ++c) image[c] += patch[c];
        }
    }
    return static_cast<std::int32_t>(label);
}

namespace {

constexpr std::int64_t kHeldOut = -1;  // the epoch of the order in which a share is held out

}  // namespace

PreparedImages::PreparedImages(std::shared_ptr<const ImageFiles> files, const ImageRange& range,
                               const Preparation& preparation, std::int64_t seed, bool trains)
    : files_(std::move(files)),
      range_(range),
      preparation_(preparation),
      seed_(static_cast<std::uint64_t>(seed)),
      trains_(trains),
      shares_(files_->images(), seed, kHeldOut),
      sampler_(range.count, seed) {}

std::int64_t PreparedImages::input_bytes() const {
    const std::int64_t side = preparation_.side;
    return side * side * job::kImageChannels * static_cast<std::int64_t>(sizeof(float));
}

std::int64_t PreparedImages::target_bytes() const {
    return sizeof(std::int32_t);
}

void PreparedImages::fill(std::int64_t first_sample, int count, void* input, void* target) const {
    auto* image = static_cast<float*>(input);
    auto* label = static_cast<std::int32_t*>(target);
    std::vector<unsigned char> room;
    std::vector<float> rows;
    for (std::int64_t i = first_sample; i < first_sample + count; ++i) {
        const std::int64_t place = trains_ ? sampler_.sample_at(i) : i;
        const std::int64_t chosen = range_.count < files_->images() ? shares_(range_.first + place) : place;
        *label++ = files_->label(chosen);
        const Picture picture = files_->open(chosen, room);
        const Cut cut = trains_ ? random_cut(preparation_, picture.height, picture.width, {seed_, i})
                                : middle_cut(preparation_, picture.height, picture.width);
        prepare(preparation_, picture, cut, rows, image);
        image += input_bytes() / static_cast<std::int64_t>(sizeof(float));
    }
}

}  // namespace shardscope::trainer::data
