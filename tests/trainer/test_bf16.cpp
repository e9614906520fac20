// Bfloat16: rounding, conversions, and the two ways to multiply matrices of it.
#include <array>
#include <cstring>
#include <limits>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "tests/trainer/kernel_testing.h"
#include "trainer/kernels/bf16_matmul.h"
#include "trainer/kernels/elementwise.h"
#include "trainer/kernels/onednn.h"

namespace shardscope::trainer::kernels {
namespace TEST_FILE {

using namespace testing;

std::uint16_t rounded(float x) {
    return to_bf16(x).bits;
}

// 1 is 0x3f80; its neighbours are 2^-7 apart.
TEST(Bf16, RoundsToTheNearestAndTiesToTheEven) {
    EXPECT_EQ(rounded(1.0f), 0x3f80);
    EXPECT_EQ(rounded(1.0f + 0x1p-8f), 0x3f80);             // a tie: down, to the even
    EXPECT_EQ(rounded(1.0f + 0x1p-8f + 0x1p-20f), 0x3f81);  // above the tie
    EXPECT_EQ(rounded(1.0f + 0x1p-7f + 0x1p-8f), 0x3f82);   // a tie: up, to the even
    EXPECT_EQ(rounded(-1.0f - 0x1p-7f - 0x1p-8f), 0xbf82);
    EXPECT_EQ(rounded(0.0f), 0x0000);
    EXPECT_EQ(rounded(-0.0f), 0x8000);
}

TEST(Bf16, LargeBecomesInfinityAndNotANumberStaysOne) {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    EXPECT_EQ(rounded(std::numeric_limits<float>::max()), 0x7f80);
    EXPECT_EQ(rounded(kInfinity), 0x7f80);
    EXPECT_EQ(rounded(-kInfinity), 0xff80);
    for (const std::uint32_t bits : {0x7f800001u, 0x7fc00000u, 0xffffffffu, 0x7fffffffu}) {
        const float back = to_float(to_bf16(std::bit_cast<float>(bits)));
        EXPECT_TRUE(std::isnan(back)) << bits;
        EXPECT_EQ(std::signbit(back), bits >> 31 != 0) << bits;
    }
}

TEST(Bf16, EveryValueSurvivesTheWayToFloatAndBack) {
    std::vector<Bf16> all, back(1 << 16);
    for (std::uint32_t bits = 0; bits < 1u << 16; ++bits) all.push_back({static_cast<std::uint16_t>(bits)});
    Floats wide(all.size());
    cast(all.data(), wide.data(), all.size());
    cast(wide.data(), back.data(), all.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
        const bool quieted = std::isnan(wide[i]);
        EXPECT_EQ(back[i].bits, quieted ? all[i].bits | 0x40 : all[i].bits) << i;
    }
}

// The vector loop and the scalar formula agree, at every length.
TEST(Bf16, LoopsRoundLikeTheFormula) {
    const Floats x = normals(1003, "x");
    for (const std::size_t n : {1, 15, 16, 17, 1003}) {
        std::vector<Bf16> y(n);
        cast(x.data(), y.data(), n);
        for (std::size_t i = 0; i < n; ++i) EXPECT_EQ(y[i], to_bf16(x[i])) << n;
    }
}

using Product = void (*)(const MatmulShape&, const Bf16*, const Bf16*, const Bf16*, Bf16*);

// Every way of multiplying that this machine has, including those that it does not choose.
[[maybe_unused]] void by_onednn(const MatmulShape& s, const Bf16* a, const Bf16* b, const Bf16* bias,
                                Bf16* c) {
    if (s.m * s.n * s.k == 0) return bf16_matmul(s, a, b, bias, c);
    OneDnn::get().multiply(s, a, b, bias, c);
}
std::vector<Product> ways() {
    std::vector<Product> found = {&bf16_matmul, &matmul_by_conversion<Bf16>};
#ifndef SHARDSCOPE_SANITIZED_ADDRESS  // occasionally its leak check crashes on threads of such libraries
    if (OneDnn::get().has_bf16()) found.push_back(&by_onednn);
#endif
    return found;
}
std::string name_of_way(const ::testing::TestParamInfo<Product>& way) {
    return std::array{"Chosen", "ByConversion", "ByOneDnn"}[way.index];
}

class Bf16Product : public ::testing::TestWithParam<Product> {};
INSTANTIATE_TEST_SUITE_P(Ways, Bf16Product, ::testing::ValuesIn(ways()), name_of_way);

struct Operands {
    explicit Operands(const MatmulShape& s)
        : a(as<Bf16>(normals(static_cast<std::size_t>(s.m) * s.k, "a"))),
          b(as<Bf16>(normals(static_cast<std::size_t>(s.k) * s.n, "b"))),
          bias(as<Bf16>(normals(s.n, "bias"))) {}
    std::vector<Bf16> a, b, bias;
};

Vector plain_product(const MatmulShape& s, const Operands& operands) {
    const Vector a = in_double(operands.a), b = in_double(operands.b), bias = in_double(operands.bias);
    Vector c(static_cast<std::size_t>(s.m) * s.n);
    for (int i = 0; i < s.m; ++i) {
        for (int j = 0; j < s.n; ++j) {
            double sum = s.bias ? bias[j] : 0.0;
            for (int e = 0; e < s.k; ++e) {
                sum += a[s.transpose_a ? e * s.m + i : i * s.k + e] *
                       b[s.transpose_b ? j * s.k + e : e * s.n + j];
            }
            c[static_cast<std::size_t>(i) * s.n + j] = sum;
        }
    }
    return c;
}

// A single row, odd sizes, more than one block of the conversion (512) in each direction, and long sums.
TEST_P(Bf16Product, IsThePlainProductOfEveryOrientation) {
    constexpr int kSizes[][3] = {{1, 1, 1},    {1, 33, 7},    {3, 17, 65},    {70, 130, 50},
                                 {520, 5, 40}, {4, 530, 600}, {33, 40, 2100}, {515, 3, 2050}};
    for (const auto [m, n, k] : kSizes) {
        for (int way = 0; way < 8; ++way) {
            const MatmulShape shape{(way & 1) != 0, (way & 2) != 0, (way & 4) != 0, m, n, k};
            const Operands operands(shape);
            auto c = unwritten<Bf16>(static_cast<std::size_t>(m) * n);
            GetParam()(shape, operands.a.data(), operands.b.data(),
                       shape.bias ? operands.bias.data() : nullptr, c.data());
            EXPECT_LE(relative_error(in_double(c), plain_product(shape, operands)), kTolerance<Bf16>)
                << m << " " << n << " " << k << " " << way;
        }
    }
}

TEST_P(Bf16Product, OfNothingIsTheBias) {
    const auto bias = as<Bf16>({1.0f, 2.0f});
    auto c = unwritten<Bf16>(4);
    GetParam()({false, false, true, 2, 2, 0}, nullptr, nullptr, bias.data(), c.data());
    EXPECT_EQ(in_double(c), (Vector{1.0, 2.0, 1.0, 2.0}));
    GetParam()({false, false, false, 0, 2, 3}, nullptr, bias.data(), nullptr, nullptr);
}

// Workers call it at the same time, each for its own rank; shapes new to a thread are compiled there.
TEST_P(Bf16Product, ManyCallersAtOnceGetTheBitsOfOne) {
    constexpr int kThreads = 4, kRepeats = 5;
    const MatmulShape shape{false, true, true, 64, 80, 96};
    const Operands operands(shape);
    const auto run = [&] {
        auto c = unwritten<Bf16>(64 * 80);
        GetParam()(shape, operands.a.data(), operands.b.data(), operands.bias.data(), c.data());
        return c;
    };
    const auto alone = run();
    std::vector<int> wrong(kThreads, 0);
    std::vector<std::thread> threads;
    for (int thread = 0; thread < kThreads; ++thread) {
        threads.emplace_back([&, thread] {
            for (int repeat = 0; repeat < kRepeats; ++repeat) wrong[thread] += run() != alone ? 1 : 0;
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, std::vector<int>(kThreads, 0));
}

TEST(Bf16ProductWay, IsNamed) {
    EXPECT_FALSE(bf16_matmul_method().empty());
    RecordProperty("way", bf16_matmul_method());
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::kernels
