// Norms, the clip factor, and the search for values that are not finite.
#include <limits>

#include <gtest/gtest.h>

#include "tests/trainer/kernel_testing.h"
#include "trainer/kernels/reductions.h"

namespace shardscope::trainer::kernels {
namespace TEST_FILE {

using namespace testing;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// 1 + 4 + … + n^2 = n (n + 1) (2 n + 1) / 6, exact in double.
TEST(SumOfSquares, CountsEveryElementOnce) {
    for (const std::size_t n : {0, 1, 16, 17, 4096, 5000}) {
        Floats x(n);
        for (std::size_t i = 0; i < n; ++i) x[i] = static_cast<float>(i + 1);
        const double expected = static_cast<double>(n * (n + 1) * (2 * n + 1) / 6);
        EXPECT_EQ(sum_of_squares(x.data(), n), expected) << n;
        const auto narrow =
            as<Bf16>(Floats(x.begin(), x.begin() + std::min<std::ptrdiff_t>(n, 17)));  // exact
        EXPECT_EQ(sum_of_squares(narrow.data(), narrow.size()), n >= 17 ? 1785.0 : expected) << n;
    }
}

// In fp32 4096^2 + 1 is 4096^2.
TEST(SumOfSquares, IsInDouble) {
    const Floats x = {4096.0f, 1.0f};
    EXPECT_EQ(sum_of_squares(x.data(), 2), 16777217.0);
}

TEST(ClipFactor, BringsALargeNormToTheLimitAndLeavesASmallOne) {
    const Vector sums = {9.0, 16.0};  // the norm is 5
    double norm = 0.0;
    EXPECT_FLOAT_EQ(clip_factor(sums.data(), 2, 2.0, &norm), static_cast<float>(2.0 / (5.0 + 1e-6)));
    EXPECT_EQ(norm, 5.0);
    EXPECT_EQ(clip_factor(sums.data(), 2, 10.0, &norm), 1.0f);
    const Vector nothing = {0.0};
    EXPECT_EQ(clip_factor(nothing.data(), 1, 1.0, &norm), 1.0f);
}

TEST(ClipFactor, ShowsANormThatIsNotFinite) {
    const Vector infinite = {1.0, HUGE_VAL}, undefined = {NAN};
    double norm = 0.0;
    EXPECT_EQ(clip_factor(infinite.data(), 2, 1.0, &norm), 0.0f);
    EXPECT_TRUE(std::isinf(norm));
    EXPECT_TRUE(std::isnan(clip_factor(undefined.data(), 1, 1.0, &norm)));
}

template <class T>
void expect_found_wherever_it_stands() {
    for (const std::size_t n : {1, 15, 16, 17, 100}) {
        const float large = std::is_same_v<T, Fp16> ? 65504.0f : std::numeric_limits<float>::max() / 2;
        const auto finite = as<T>(Floats(n, large));
        EXPECT_TRUE(all_finite(finite.data(), n));
        for (const float bad : {kInfinity, -kInfinity, std::nanf(""), -std::nanf("")}) {
            for (std::size_t at = 0; at < n; ++at) {
                auto x = finite;
                x[at] = as<T>({bad})[0];
                EXPECT_FALSE(all_finite(x.data(), n)) << n << " " << at << " " << bad;
            }
        }
    }
}

TEST(AllFinite, FindsInfinityAndNotANumberAtAnyPlace) {
    expect_found_wherever_it_stands<float>();
    expect_found_wherever_it_stands<Bf16>();
    expect_found_wherever_it_stands<Fp16>();
    EXPECT_TRUE(all_finite(static_cast<const float*>(nullptr), 0));
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::kernels
