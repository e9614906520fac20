// How pictures are resized, cut, mirrored and normalized, compared with what each of these means.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "trainer/data/preparation.h"

namespace shardscope::trainer::data {
namespace TEST_FILE {

// Red counts the columns, green the rows, and blue is 7.
struct Ramp {
    Ramp(int height, int width) : bytes(static_cast<std::size_t>(height) * width * 3) {
        for (int y = 0; y < height; ++y) {
            for (int x = 0; x < width; ++x) {
                unsigned char* pixel = bytes.data() + (static_cast<std::size_t>(y) * width + x) * 3;
                pixel[0] = static_cast<unsigned char>(x);
                pixel[1] = static_cast<unsigned char>(y);
                pixel[2] = 7;
            }
        }
        picture = {height, width, bytes.data(), 3, 1};
    }
    std::vector<unsigned char> bytes;
    Picture picture;
};

// A normalization that leaves the bytes' numbers.
Preparation plain(int side) {
    job::DataSection data;
    data.image = side;
    data.mean = {0, 0, 0};
    data.deviation = {1, 1, 1};
    Preparation preparation(data);
    preparation.deviation = {1 / 255.0F, 1 / 255.0F, 1 / 255.0F};
    return preparation;
}

struct Pixels {
    int side;
    std::vector<float> values;
    float at(int y, int x, int channel) const {
        return values[(static_cast<std::size_t>(y) * side + x) * 3 + channel];
    }
};
Pixels prepared(const Preparation& preparation, const Picture& picture, const Cut& cut) {
    Pixels pixels{preparation.side,
                  std::vector<float>(static_cast<std::size_t>(preparation.side) * preparation.side * 3)};
    std::vector<float> rows;
    prepare(preparation, picture, cut, rows, pixels.values.data());
    return pixels;
}

TEST(Preparation, CutsTheMiddleOfAPictureThatIsLargeEnough) {
    const Ramp ramp(6, 11);
    Preparation preparation = plain(4);
    preparation.shorter = 6;
    const Pixels pixels = prepared(preparation, ramp.picture, middle_cut(preparation, 6, 11));
    for (int y = 0; y < 4; ++y) {
        for (int x = 0; x < 4; ++x) {
            EXPECT_NEAR(pixels.at(y, x, 0), x + 4, 1e-5);  // 3.5, to the even neighbour
            EXPECT_NEAR(pixels.at(y, x, 1), y + 1, 1e-5);
            EXPECT_NEAR(pixels.at(y, x, 2), 7, 1e-5);
        }
    }
}

// To a half, a third and twice: inside, the mean of a ramp's pixels lies on the ramp.
TEST(Preparation, ResizesTheShorterSide) {
    const Ramp ramp(48, 96);
    for (const int side : {24, 16, 96}) {
        const Preparation preparation = plain(side);
        const Pixels pixels = prepared(preparation, ramp.picture, middle_cut(preparation, 48, 96));
        const double scale = 48.0 / side;
        for (int i = 2; i + 2 < side; ++i) {
            EXPECT_NEAR(pixels.at(i, i, 1), (i + 0.5) * scale - 0.5, 1e-4) << side;
            EXPECT_NEAR(pixels.at(i, i, 0), 24 + (i + 0.5) * scale - 0.5, 1e-4) << side;
            EXPECT_NEAR(pixels.at(i, i, 2), 7, 1e-5) << side;
        }
    }
}

TEST(Preparation, NormalizesEachChannel) {
    const Ramp ramp(4, 4);
    job::DataSection data;
    data.image = 4;
    data.mean = {0.5, 0.25, 0};
    data.deviation = {0.5, 0.25, 0.125};
    const Preparation preparation(data);
    const Pixels pixels = prepared(preparation, ramp.picture, middle_cut(preparation, 4, 4));
    EXPECT_NEAR(pixels.at(1, 3, 0), (3 / 255.0 - 0.5) / 0.5, 1e-6);
    EXPECT_NEAR(pixels.at(1, 3, 1), (1 / 255.0 - 0.25) / 0.25, 1e-6);
    EXPECT_NEAR(pixels.at(1, 3, 2), 7 / 255.0 / 0.125, 1e-6);
}

// 9 x 9 places; outside of the picture it is black.
TEST(Preparation, CutsARandomPlaceWithABorder) {
    const Ramp ramp(32, 32);
    Preparation preparation = plain(32);
    preparation.crop = job::ImageCrop::random;
    preparation.padding = 4;
    preparation.flip = true;
    std::set<int> places;
    int mirrored = 0;
    for (std::int64_t sample = 0; sample < 400; ++sample) {
        const Cut cut = random_cut(preparation, 32, 32, {1, sample});
        places.insert((cut.down.from + 4) * 9 + cut.across.from + 4);
        mirrored += cut.mirrored ? 1 : 0;
        if (sample > 20) continue;
        const Pixels pixels = prepared(preparation, ramp.picture, cut);
        for (int y = 0; y < 32; y += 5) {
            for (int x = 0; x < 32; x += 5) {
                const int row = y + cut.down.from, column = (cut.mirrored ? 31 - x : x) + cut.across.from;
                const bool inside = std::min(row, column) >= 0 && std::max(row, column) < 32;
                EXPECT_NEAR(pixels.at(y, x, 0), inside ? column : 0, 1e-5);
                EXPECT_NEAR(pixels.at(y, x, 1), inside ? row : 0, 1e-5);
            }
        }
    }
    EXPECT_GT(places.size(), 78U);
    EXPECT_LE(places.size(), 81U);
    EXPECT_GT(mirrored, 150);
    EXPECT_LT(mirrored, 250);
}

TEST(Preparation, CutsARandomPartInARandomSize) {
    Preparation preparation = plain(24);
    preparation.crop = job::ImageCrop::resized;
    const Ramp ramp(40, 60);
    double least = 1, most = 0;
    for (std::int64_t sample = 0; sample < 300; ++sample) {
        const Cut cut = random_cut(preparation, 40, 60, {1, sample});
        ASSERT_GE(cut.down.first, 0);
        ASSERT_LE(cut.down.first + cut.down.count, 40);
        ASSERT_GE(cut.across.first, 0);
        ASSERT_LE(cut.across.first + cut.across.count, 60);
        const double area = cut.down.count * cut.across.count / 2400.0;
        const double ratio = static_cast<double>(cut.across.count) / cut.down.count;
        EXPECT_GT(ratio, 0.65);
        EXPECT_LT(ratio, 1.5);
        least = std::min(least, area);
        most = std::max(most, area);
        const Pixels pixels = prepared(preparation, ramp.picture, cut);
        EXPECT_NEAR(pixels.at(12, 12, 0), cut.across.first + 12.5 * cut.across.count / 24 - 0.5, 0.5);
    }
    EXPECT_LT(least, 0.12);
    EXPECT_GT(most, 0.8);
    // A narrow picture has no such part but rarely: then its middle is used.
    for (std::int64_t sample = 0; sample < 30; ++sample) {
        const Cut cut = random_cut(preparation, 100, 2, {1, sample});
        EXPECT_LE(cut.down.count, 3);
    }
}

TEST(Preparation, DependsOnTheSeedAndTheSampleOnly) {
    Preparation preparation = plain(8);
    preparation.crop = job::ImageCrop::random;
    preparation.padding = 100;
    const auto place = [&](std::uint64_t seed, std::int64_t sample) {
        const Cut cut = random_cut(preparation, 8, 8, {seed, sample});
        return std::pair(cut.down.from, cut.across.from);
    };
    EXPECT_EQ(place(1, 5), place(1, 5));
    EXPECT_NE(place(1, 5), place(1, 6));
    EXPECT_NE(place(1, 5), place(2, 5));
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::data
