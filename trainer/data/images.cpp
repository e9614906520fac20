#include "trainer/data/images.h"

#include <array>
#include <cstddef>

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

}  // namespace shardscope::trainer::data
