#include "trainer/data/preparation.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "trainer/kernels/random.h"

namespace shardscope::trainer::data {

namespace {

constexpr std::size_t kColors = job::kImageChannels;
constexpr double kLeastArea = 0.08, kMostArea = 1;
constexpr double kNarrowest = 3.0 / 4, kWidest = 4.0 / 3;
constexpr int kTries = 10;                    // for a part that lies in the picture
constexpr std::uint64_t kRandomNumbers = 64;  // reserved for each sample

// The random numbers of a sample, in their order.
class Random {
  public:
    explicit Random(const SampleSeed& from)
        : seed_(from.seed), next_(static_cast<std::uint64_t>(from.sample) * kRandomNumbers) {}
    double between(double low, double high) {
        return low + (high - low) * static_cast<double>(bits() >> 11) * 0x1p-53;
    }
    int below(int end) { return static_cast<int>((bits() >> 32) * static_cast<std::uint64_t>(end) >> 32); }
    bool heads() { return bits() >> 63 != 0; }

  private:
    std::uint64_t bits() {
        static const std::uint64_t kStream = kernels::stream_of("data.images.preparation");
        return kernels::random_bits(seed_, kStream, next_++);
    }
    std::uint64_t seed_, next_;
};

// Rounds halves to the even neighbour, as Python does.
int rounded(double x) {
    return static_cast<int>(std::nearbyint(x));
}

// A side of a picture whose shorter side becomes `shorter`.
int resized(int side, int least, int shorter) {
    return static_cast<int>(std::int64_t{side} * shorter / least);
}

int middle(int all, int part) {
    return rounded((all - part) / 2.0);
}

// A part of the picture, of which the whole square is shown.
Cut part_of(int top, int height, int left, int width, int side) {
    return {{top, height, side, 0}, {left, width, side, 0}};
}

Cut random_part(int side, int height, int width, Random& random) {
    const double area = static_cast<double>(height) * width;
    for (int i = 0; i < kTries; ++i) {
        const double wanted = area * random.between(kLeastArea, kMostArea);
        const double ratio = std::exp(random.between(std::log(kNarrowest), std::log(kWidest)));
        const int w = rounded(std::sqrt(wanted * ratio)), h = rounded(std::sqrt(wanted / ratio));
        if (w < 1 || h < 1 || w > width || h > height) continue;
        const int top = random.below(height - h + 1);
        return part_of(top, h, random.below(width - w + 1), w, side);
    }
    int h = height, w = width;  // the middle, as wide or narrow as is allowed
    const double ratio = static_cast<double>(width) / height;
    if (ratio < kNarrowest) h = std::clamp(rounded(width / kNarrowest), 1, height);
    if (ratio > kWidest) w = std::clamp(rounded(height * kWidest), 1, width);
    return part_of((height - h) / 2, h, (width - w) / 2, w, side);
}

// The pixels from `first` on whose weighted sum is a pixel of the result; none: it lies outside.
struct Taps {
    int first = 0;
    std::vector<float> weights;
};

std::vector<Taps> taps_of(const CutAxis& axis, int side, bool mirrored) {
    std::vector<Taps> all(static_cast<std::size_t>(side));
    const double scale = static_cast<double>(axis.count) / axis.resized, support = std::max(scale, 1.0);
    for (int i = 0; i < side; ++i) {
        const int place = axis.from + i;
        if (place < 0 || place >= axis.resized) continue;
        Taps& taps = all[static_cast<std::size_t>(mirrored ? side - 1 - i : i)];
        const double center = (place + 0.5) * scale;
        const int begin = std::max(static_cast<int>(std::floor(center - support + 0.5)), 0);
        const int end = std::min(static_cast<int>(std::floor(center + support + 0.5)), axis.count);
        double sum = 0;
        std::vector<double> weights;
        for (int x = begin; x < end; ++x) {
            weights.push_back(std::max(0.0, 1 - std::abs((x - center + 0.5) / support)));
            sum += weights.back();
        }
        while (weights.size() > 1 && weights.back() == 0) weights.pop_back();
        taps.first = axis.first + begin;
        for (const double weight : weights) taps.weights.push_back(static_cast<float>(weight / sum));
    }
    return all;
}

}  // namespace

Preparation::Preparation(const job::DataSection& data)
    : side(data.image),
      shorter(data.resize > 0 ? data.resize : data.image),
      crop(data.crop),
      padding(data.padding),
      flip(data.flip) {
    for (std::size_t c = 0; c < kColors; ++c) {
        mean[c] = static_cast<float>(data.mean[c]);
        deviation[c] = static_cast<float>(data.deviation[c]);
    }
}

Cut middle_cut(const Preparation& preparation, int height, int width) {
    const int least = std::min(height, width), side = preparation.side;
    const int down = resized(height, least, preparation.shorter);
    const int across = resized(width, least, preparation.shorter);
    return {{0, height, down, middle(down, side)}, {0, width, across, middle(across, side)}};
}

Cut random_cut(const Preparation& preparation, int height, int width, const SampleSeed& seed) {
    Random random(seed);
    Cut cut = middle_cut(preparation, height, width);
    if (preparation.crop == job::ImageCrop::resized) {
        cut = random_part(preparation.side, height, width, random);
    } else if (preparation.crop == job::ImageCrop::random) {
        const int border = preparation.padding;
        for (CutAxis* axis : {&cut.down, &cut.across})
            axis->from = random.below(axis->resized + 2 * border - preparation.side + 1) - border;
    }
    cut.mirrored = preparation.flip && random.heads();
    return cut;
}

void prepare(const Preparation& preparation, const Picture& picture, const Cut& cut, std::vector<float>& rows,
             float* image) {
    const std::vector<Taps> down = taps_of(cut.down, preparation.side, false);
    const std::vector<Taps> across = taps_of(cut.across, preparation.side, cut.mirrored);
    const auto side = static_cast<std::size_t>(preparation.side), width = side * kColors;
    // The picture's rows that the result needs, resized across.
    int begin = picture.height, end = 0;
    for (const Taps& taps : down) {
        if (taps.weights.empty()) continue;
        begin = std::min(begin, taps.first);
        end = std::max(end, taps.first + static_cast<int>(taps.weights.size()));
    }
    rows.assign(end > begin ? static_cast<std::size_t>(end - begin) * width : 0, 0.0F);
    float* to = rows.data();
    for (int y = begin; y < end; ++y) {
        const unsigned char* row = picture.row(y);
        for (const Taps& taps : across) {
            const unsigned char* pixel = row + static_cast<std::size_t>(taps.first) * picture.pixel;
            for (const float weight : taps.weights) {
                for (std::size_t c = 0; c < kColors; ++c)
                    to[c] += weight * static_cast<float>(pixel[c * picture.channel]);
                pixel += picture.pixel;
            }
            to += kColors;
        }
    }
    for (const Taps& taps : down) {
        std::fill_n(image, width, 0.0F);
        for (std::size_t t = 0; t < taps.weights.size(); ++t) {
            const float* row = &rows[(static_cast<std::size_t>(taps.first - begin) + t) * width];
            for (std::size_t i = 0; i < width; ++i) image[i] += taps.weights[t] * row[i];
        }
        for (std::size_t x = 0; x < side; ++x, image += kColors) {
            for (std::size_t c = 0; c < kColors; ++c)
                image[c] = (image[c] / 255.0F - preparation.mean[c]) / preparation.deviation[c];
        }
    }
}

}  // namespace shardscope::trainer::data
