// Synthetic samples; see synthetic.h.
#include "trainer/data/synthetic.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "trainer/kernels/random.h"

namespace shardscope::trainer::data {
namespace {

using kernels::stream_of;

constexpr std::uint64_t kIndicesPerRow =
    64;  // rows start at multiples: the generator makes 64 numbers at a time

// y[j] += weight[j] * x[j] for j in [0, n)
void add_products(const float* weight, const float* x, float* y, std::size_t n) {
    for (std::size_t j = 0; j < n; ++j) y[j] += weight[j] * x[j];
}

}  // namespace

SyntheticDataset::SyntheticDataset(std::int64_t seed, int width)
    : seed_(static_cast<std::uint64_t>(seed)),
      width_(width),
      offset_(static_cast<std::size_t>(width)),
      weight_(static_cast<std::size_t>(width) * kTaps) {
    kernels::fill_normal(offset_.data(), offset_.size(), seed_, stream_of("data.synthetic.offset"), 0, 0.0f,
                         0.5f);
    // Variance 1/4 for each of the four taps, so that u has variance 1, where the curve bends.
    kernels::fill_normal(weight_.data(), weight_.size(), seed_, stream_of("data.synthetic.weight"), 0, 0.0f,
                         0.5f);
    for (int tap = 0; tap < kTaps; ++tap) {
        shift_[tap] = static_cast<int>(kernels::random_bits(seed_, stream_of("data.synthetic.shift"), tap) %
                                       static_cast<std::uint64_t>(width));
    }
}

std::int64_t SyntheticDataset::input_bytes() const {
    return static_cast<std::int64_t>(sizeof(float)) * width_;
}

std::int64_t SyntheticDataset::target_bytes() const {
    return input_bytes();
}

void SyntheticDataset::fill(std::int64_t first_sample, int count, void* input, void* target) const {
    fill(first_sample, count, static_cast<float*>(input), static_cast<float*>(target));
}

void SyntheticDataset::fill(std::int64_t first_sample, int count, float* x, float* y) const {
    const std::size_t width = static_cast<std::size_t>(width_);
    const std::uint64_t indices = (width + kIndicesPerRow - 1) / kIndicesPerRow * kIndicesPerRow;
    const std::uint64_t stream = stream_of("data.synthetic.input");
    for (int i = 0; i < count; ++i) {
        float* in = x + static_cast<std::size_t>(i) * width;
        float* out = y + static_cast<std::size_t>(i) * width;
        const std::uint64_t sample = static_cast<std::uint64_t>(first_sample) + static_cast<std::uint64_t>(i);
        kernels::fill_normal(in, width, seed_, stream, sample * indices, 0.0f, 1.0f);
        std::fill_n(out, width, 0.0f);
        for (int tap = 0; tap < kTaps; ++tap) {
            const float* weight = weight_.data() + static_cast<std::size_t>(tap) * width;
            const std::size_t shift = static_cast<std::size_t>(shift_[tap]);
            const std::size_t before_wrap = width - shift;
            add_products(weight, in + shift, out, before_wrap);
            add_products(weight + before_wrap, in, out + before_wrap, shift);
        }
        for (std::size_t j = 0; j < width; ++j) {
            const float u = out[j];
            out[j] = offset_[j] + u / std::sqrt(1.0f + u * u);
        }
    }
}

}  // namespace shardscope::trainer::data
