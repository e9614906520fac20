// Fp16: conversions against a slow reference, over all of its values and the floats around each boundary, and
// its matmul.
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "tests/trainer/kernel_testing.h"
#include "trainer/kernels/bf16_matmul.h"
#include "trainer/kernels/elementwise.h"
#include "trainer/kernels/linear.h"

namespace shardscope::trainer::kernels {
namespace TEST_FILE {

using namespace testing;

constexpr std::uint16_t kInfinity = 0x7c00;

// IEEE 754: with exponent e and fraction m, (-1)^s 2^(e - 15) (1 + m / 2^10), or 2^-14 m / 2^10 where e is 0.
double value_of(std::uint16_t bits) {
    const int e = bits >> 10 & 31, m = bits & 1023;
    const double size = e == 31  ? (m == 0 ? HUGE_VAL : NAN)
                        : e == 0 ? std::ldexp(m, -24)
                                 : std::ldexp(1024 + m, e - 25);
    return bits >> 15 ? -size : size;
}

// The nearest of all positive values to x >= 0, the even one of two; infinity counts as 65,536.
std::uint16_t nearest(double x) {
    std::uint16_t low = 0, high = kInfinity;  // value(low) <= x
    const auto value = [](std::uint16_t bits) { return bits == kInfinity ? 65536.0 : value_of(bits); };
    if (x >= 65536) return kInfinity;
    while (high - low > 1) {
        const auto middle = static_cast<std::uint16_t>((low + high) / 2);
        (value(middle) <= x ? low : high) = middle;
    }
    const double below = x - value(low), above = value(high) - x;
    if (below == above) return low % 2 == 0 ? low : high;
    return below < above ? low : high;
}

void expect_rounded(const Floats& x) {
    std::vector<Fp16> all(x.size());
    cast(x.data(), all.data(), x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
        const auto sign = static_cast<std::uint16_t>(std::signbit(x[i]) ? 0x8000 : 0);
        const std::uint16_t expected = nearest(std::abs(static_cast<double>(x[i]))) | sign;
        ASSERT_EQ(to_fp16(x[i]).bits, expected) << x[i];
        ASSERT_EQ(all[i].bits, expected) << x[i];
    }
}

TEST(Fp16, EveryValueIsThatOfIeee754) {
    std::vector<Fp16> all;
    for (std::uint32_t bits = 0; bits < 1u << 16; ++bits) all.push_back({static_cast<std::uint16_t>(bits)});
    Floats wide(all.size());
    cast(all.data(), wide.data(), all.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
        const double expected = value_of(all[i].bits);
        for (const float x : {wide[i], to_float(all[i])}) {
            ASSERT_EQ(std::isnan(x), std::isnan(expected)) << i;
            ASSERT_EQ(std::signbit(x), i >> 15 != 0) << i;
            if (!std::isnan(x)) {
                ASSERT_EQ(static_cast<double>(x), expected) << i;
            }
        }
        const std::uint16_t back = to_fp16(wide[i]).bits;
        ASSERT_EQ(back, std::isnan(expected) ? all[i].bits | 0x200 : all[i].bits) << i;
    }
}

// Each value, the floats next to it, those halfway to the next value, and the floats next to that.
TEST(Fp16, RoundsToTheNearestAndTiesToTheEvenAroundEveryValue) {
    Floats x;
    for (std::uint16_t bits = 0; bits < kInfinity; ++bits) {
        const double next = bits + 1 == kInfinity ? 65536 : value_of(static_cast<std::uint16_t>(bits + 1));
        for (const double at : {value_of(bits), (value_of(bits) + next) / 2}) {
            const auto middle = static_cast<float>(at);  // exact: 12 bits
            for (const float one : {middle, std::nextafter(middle, 1e9f), std::nextafter(middle, 0.0f)}) {
                x.push_back(one);
                x.push_back(-one);
            }
        }
    }
    expect_rounded(x);
}

TEST(Fp16, RoundsFloatsOfEverySize) {
    Floats x;
    for (std::uint32_t bits = 0; bits < 0x7f800000u; bits += 65521) x.push_back(std::bit_cast<float>(bits));
    for (const float one : {0.0f, std::numeric_limits<float>::denorm_min(), std::numeric_limits<float>::min(),
                            0x1p-25f, 0x1p-24f, 0x1p-14f, 65504.0f, 65519.0f, 65520.0f, 65536.0f, 1e30f,
                            std::numeric_limits<float>::max(), std::numeric_limits<float>::infinity()}) {
        x.push_back(one);
        x.push_back(-one);
    }
    expect_rounded(x);
}

TEST(Fp16, NotANumberStaysOneAndKeepsItsSign) {
    for (const std::uint32_t bits : {0x7f800001u, 0x7fc00000u, 0xffffffffu, 0xff801000u}) {
        const float back = to_float(to_fp16(std::bit_cast<float>(bits)));
        EXPECT_TRUE(std::isnan(back)) << bits;
        EXPECT_EQ(std::signbit(back), bits >> 31 != 0) << bits;
    }
}

// 40 * 40 * 40 is 64,000, and 64,000 + 2,000 too large: only the final sum is rounded.
TEST(Fp16, MatmulsAddInFp32AndRoundOnce) {
    const auto x = as<Fp16>({64000, 2000, -2000, 0.5f}), w = as<Fp16>({1, 1, 1, 1});
    auto y = unwritten<Fp16>(1);
    linear_forward(x.data(), w.data(), nullptr, y.data(), 1, 4, 1);
    EXPECT_EQ(to_float(y[0]), 64000.0f);
    const auto large = as<Fp16>({64000, 2000});
    linear_forward(large.data(), w.data(), nullptr, y.data(), 1, 2, 1);
    EXPECT_EQ(y[0].bits, kInfinity);
}

// More than one block of the conversion (512) in each direction.
TEST(Fp16, LinearLayerIsThePlainForm) {
    constexpr int kRows = 3, kIn = 530, kOut = 515;
    const auto x = as<Fp16>(normals(kRows * kIn, "x")), w = as<Fp16>(normals(kIn * kOut, "w")),
               b = as<Fp16>(normals(kOut, "b")), dy = as<Fp16>(normals(kRows * kOut, "dy"));
    auto y = unwritten<Fp16>(dy.size()), dx = unwritten<Fp16>(x.size()), dw = unwritten<Fp16>(w.size()),
         db = unwritten<Fp16>(b.size());
    linear_forward(x.data(), w.data(), b.data(), y.data(), kRows, kIn, kOut);
    linear_backward_input(dy.data(), w.data(), dx.data(), kRows, kIn, kOut);
    linear_backward_weight(dy.data(), x.data(), dw.data(), kRows, kIn, kOut);
    linear_backward_bias(dy.data(), db.data(), kRows, kOut);
    const auto at = [](const std::vector<Fp16>& m, int i) { return static_cast<double>(to_float(m[i])); };
    Vector py(dy.size()), pdx(x.size()), pdw(w.size()), pdb(b.size());
    for (int i = 0; i < kRows; ++i) {
        for (int j = 0; j < kOut; ++j) {
            const double slope = at(dy, i * kOut + j);
            double sum = at(b, j);
            for (int e = 0; e < kIn; ++e) {
                sum += at(x, i * kIn + e) * at(w, j * kIn + e);
                pdx[i * kIn + e] += slope * at(w, j * kIn + e);
                pdw[j * kIn + e] += slope * at(x, i * kIn + e);
            }
            py[i * kOut + j] = sum;
            pdb[j] += slope;
        }
    }
    EXPECT_LE(relative_error(in_double(y), py), kTolerance<Fp16>);
    EXPECT_LE(relative_error(in_double(dx), pdx), kTolerance<Fp16>);
    EXPECT_LE(relative_error(in_double(dw), pdw), kTolerance<Fp16>);
    EXPECT_LE(relative_error(in_double(db), pdb), kTolerance<Fp16>);
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::kernels
