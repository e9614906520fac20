// Dropout: what is kept is scaled; the mask is a function of seed, stream and index only.
#include <gtest/gtest.h>

#include "tests/trainer/kernel_testing.h"
#include "trainer/kernels/dropout.h"

namespace shardscope::trainer::kernels {
namespace TEST_FILE {

using namespace testing;

constexpr std::size_t kCount = 3001;

Floats mask(float p, std::uint64_t seed, std::uint64_t stream, std::uint64_t first = 0,
            std::size_t n = kCount) {
    const Floats ones(n, 1.0f);
    Floats y(n, NAN);
    dropout(ones.data(), y.data(), n, p, seed, stream, first);
    return y;
}

TEST(Dropout, KeepsElementsWhoseUniformNumberIsNotBelowP) {
    const Floats x = normals(kCount, "x");
    Floats y(kCount, NAN);
    dropout(x.data(), y.data(), kCount, 0.25f, 7, 3, 1000);
    for (std::size_t i = 0; i < kCount; ++i) {
        const bool kept = uniform(7, 3, 1000 + i) >= 0.25f;
        EXPECT_EQ(y[i], kept ? x[i] * (1.0f / 0.75f) : 0.0f) << i;
    }
}

// Of 3001 elements 30 % are 900; the deviation is sqrt(3001 * 0.3 * 0.7) = 25.
TEST(Dropout, DropsTheGivenShare) {
    const Floats y = mask(0.3f, 1, 2);
    EXPECT_NEAR(static_cast<double>(std::count(y.begin(), y.end(), 0.0f)), 900.0, 100.0);
    EXPECT_EQ(mask(0.0f, 1, 2), Floats(kCount, 1.0f));
}

TEST(Dropout, AnotherSeedOrStreamOrPlaceIsAnotherMask) {
    const Floats here = mask(0.5f, 1, 2);
    EXPECT_EQ(mask(0.5f, 1, 2), here);
    EXPECT_NE(mask(0.5f, 2, 2), here);
    EXPECT_NE(mask(0.5f, 1, 3), here);
    EXPECT_NE(mask(0.5f, 1, 2, kCount), here);
}

TEST(Dropout, AnyCutGivesTheSameBits) {
    const Floats whole = mask(0.5f, 1, 2);
    for (const std::size_t cut : {1, 63, 64, 1024, 2000}) {
        Floats parts = mask(0.5f, 1, 2, 0, cut);
        const Floats rest = mask(0.5f, 1, 2, cut, kCount - cut);
        parts.insert(parts.end(), rest.begin(), rest.end());
        EXPECT_EQ(parts, whole) << cut;
    }
}

TEST(Dropout, InBf16DropsTheSameAndRoundsTheRest) {
    const auto x = as<Bf16>(normals(kCount, "x"));
    auto y = x;  // in place
    dropout(y.data(), y.data(), kCount, 0.4f, 1, 2, 0);
    const Floats kept = mask(0.4f, 1, 2);
    for (std::size_t i = 0; i < kCount; ++i) {
        const float scaled = to_float(x[i]) * (1.0f / (1.0f - 0.4f));
        EXPECT_EQ(y[i], to_bf16(kept[i] != 0.0f ? scaled : 0.0f)) << i;
    }
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::kernels
