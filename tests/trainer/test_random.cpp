// The generator compared with its published answers, and the distributions made from it.
#include <algorithm>
#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include "tests/trainer/kernel_testing.h"
#include "trainer/kernels/random.h"

namespace shardscope::trainer::kernels {
namespace TEST_FILE {

using testing::Floats;

// Known answers of the authors' library for ten rounds: zeros, ones, and digits of pi.
TEST(Philox, GivesThePublishedAnswers) {
    constexpr std::uint32_t kOnes = 0xffffffffu;
    EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
              (PhiloxWords{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
    EXPECT_EQ(philox4x32({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
              (PhiloxWords{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
    EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
              (PhiloxWords{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, FillsEqualTheSingleNumbersWhereverTheyStart) {
    for (const std::uint64_t first : {0ull, 1ull, 5ull, 64ull, 100ull, (1ull << 34) - 7}) {
        for (const std::size_t n : {1, 3, 63, 64, 65, 200}) {
            Floats uniforms(n), normals(n);
            fill_uniform(uniforms.data(), n, 42, 9, first, 0.0f, 1.0f);
            fill_normal(normals.data(), n, 42, 9, first, 0.0f, 1.0f);
            for (std::size_t i = 0; i < n; ++i) {
                ASSERT_EQ(uniforms[i], uniform(42, 9, first + i)) << first << " " << i;
                ASSERT_EQ(normals[i], normal(42, 9, first + i)) << first << " " << i;
            }
        }
    }
}

TEST(Random, SeedStreamAndIndexEachChangeTheNumber) {
    const float here = uniform(1, 2, 3);
    EXPECT_NE(here, uniform(2, 2, 3));
    EXPECT_NE(here, uniform(1, 3, 3));
    EXPECT_NE(here, uniform(1, 2, 4));
    EXPECT_NE(here, uniform(1ull << 32 | 1, 2, 3));
    EXPECT_NE(here, uniform(1, 1ull << 32 | 2, 3));
    EXPECT_NE(here, uniform(1, 2, 1ull << 40 | 3));
    EXPECT_NE(random_bits(1, 2, 3), random_bits(1, 2, 4));
}

// The largest distance between the sample's and the true distribution function; by chance it exceeds
// 1.95/sqrt(n) once in a thousand samples, and these samples are always the same.
double distance_from(Floats sample, double (*distribution)(double)) {
    std::sort(sample.begin(), sample.end());
    const double n = static_cast<double>(sample.size());
    double largest = 0.0;
    for (std::size_t i = 0; i < sample.size(); ++i) {
        const double expected = distribution(sample[i]);
        largest = std::max({largest, std::abs(expected - static_cast<double>(i) / n),
                            std::abs(expected - static_cast<double>(i + 1) / n)});
    }
    return largest;
}

constexpr std::size_t kSample = 40000;

TEST(Random, UniformIsUniformBelowOne) {
    Floats sample(kSample);
    fill_uniform(sample.data(), kSample, 3, 1, 0, 0.0f, 1.0f);
    EXPECT_GE(*std::min_element(sample.begin(), sample.end()), 0.0f);
    EXPECT_LT(*std::max_element(sample.begin(), sample.end()), 1.0f);
    EXPECT_LT(distance_from(sample, [](double x) { return x; }), 1.95 / std::sqrt(kSample));
}

TEST(Random, UniformCoversItsRange) {
    Floats sample(kSample);
    fill_uniform(sample.data(), kSample, 3, 1, 0, -2.0f, 6.0f);
    EXPECT_GE(*std::min_element(sample.begin(), sample.end()), -2.0f);
    EXPECT_LE(*std::max_element(sample.begin(), sample.end()), 6.0f);
    EXPECT_LT(distance_from(sample, [](double x) { return (x + 2.0) / 8.0; }), 1.95 / std::sqrt(kSample));
}

TEST(Random, NormalIsNormal) {
    Floats sample(kSample);
    fill_normal(sample.data(), kSample, 3, 1, 0, 0.0f, 1.0f);
    EXPECT_LT(distance_from(sample, [](double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }),
              1.95 / std::sqrt(kSample));
    fill_normal(sample.data(), kSample, 3, 1, 0, 5.0f, 0.5f);
    double mean = 0.0;
    for (const float x : sample) mean += x / kSample;
    EXPECT_NEAR(mean, 5.0, 4.0 * 0.5 / std::sqrt(kSample));
}

TEST(Random, NeighboursAreNotCorrelated) {
    Floats sample(kSample);
    fill_normal(sample.data(), kSample, 3, 1, 0, 0.0f, 1.0f);
    for (const std::size_t lag : {1, 2, 3, 4, 64}) {
        double sum = 0.0;
        for (std::size_t i = 0; i + lag < kSample; ++i) sum += sample[i] * sample[i + lag];
        EXPECT_LT(std::abs(sum / kSample), 4.0 / std::sqrt(kSample)) << lag;
    }
}

// Box-Muller on the generator's words, with the library's logarithm, cosine and sine in double.
TEST(Random, NormalIsBoxMullerOfTheWords) {
    for (std::uint32_t counter = 0; counter < 5000; ++counter) {
        const PhiloxWords words = philox4x32({counter, 0, 8, 0}, {11, 0});
        for (std::size_t pair = 0; pair < 4; pair += 2) {
            const double radius = std::sqrt(-2.0 * std::log(((words[pair] >> 8) + 1) * 0x1p-24));
            const double angle = 2.0 * std::acos(-1.0) * (words[pair + 1] >> 8) * 0x1p-24;
            const double tolerance = 4e-7 * (1.0 + radius);
            EXPECT_NEAR(normal(11, 8, 4 * counter + pair), radius * std::cos(angle), tolerance);
            EXPECT_NEAR(normal(11, 8, 4 * counter + pair + 1), radius * std::sin(angle), tolerance);
        }
    }
}

TEST(StreamOf, DistinguishesNamesAndNeverChanges) {
    std::set<std::uint64_t> streams;
    for (int block = 0; block < 100; ++block) {
        for (const char* leaf : {"weight", "bias"}) {
            streams.insert(stream_of("blocks." + std::to_string(block) + "." + leaf));
        }
    }
    EXPECT_EQ(streams.size(), 200u);
    // FNV-1a of "" is its offset basis 0xcbf29ce484222325; mixed it is this. A change would change every run.
    EXPECT_EQ(stream_of(""), 0xf52a15e9a9b5e89bu);
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::kernels
