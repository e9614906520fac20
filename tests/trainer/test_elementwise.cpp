// Element-wise sums and the sum over ranks: worked examples, order, and bits that do not depend on the cut.
#include <algorithm>
#include <cstddef>
#include <vector>

#include <gtest/gtest.h>

#include "tests/trainer/kernel_testing.h"
#include "trainer/kernels/elementwise.h"
#include "trainer/kernels/streaming.h"

namespace shardscope::trainer::kernels {
namespace TEST_FILE {

using namespace testing;

TEST(SumRanks, AddsInRankOrderThenScales) {
    // In fp32 1e8 + 1 is 1e8: rank order gives 0 here, the order 0, 2, 1 would give 1.
    const Floats rank0 = {1e8f, 3.0f}, rank1 = {1.0f, 4.0f}, rank2 = {-1e8f, 5.0f};
    const float* const inputs[] = {rank0.data(), rank1.data(), rank2.data()};
    Floats out(2, NAN);
    sum_ranks(inputs, 3, out.data(), 2, 0.5f);
    EXPECT_EQ(out, (Floats{0.0f, 6.0f}));
}

TEST(SumRanks, AnyCutAndAnyOutputGiveTheSameBits) {
    constexpr int kRanks = 4;
    std::vector<Floats> ranks;
    for (int r = 0; r < kRanks; ++r) ranks.push_back(normals(1100, std::to_string(r)));
    const auto inputs_at = [&](std::size_t first) {
        std::vector<const float*> inputs;
        for (const Floats& rank : ranks) inputs.push_back(rank.data() + first);
        return inputs;
    };
    Floats whole(1100);
    sum_ranks(inputs_at(0).data(), kRanks, whole.data(), 1100, 1.0f / kRanks);
    for (std::size_t i = 0; i < whole.size(); ++i) {
        EXPECT_EQ(whole[i], (((ranks[0][i] + ranks[1][i]) + ranks[2][i]) + ranks[3][i]) * 0.25f);
    }
    Floats parts(1100);
    sum_ranks(inputs_at(0).data(), kRanks, parts.data(), 37, 1.0f / kRanks);
    sum_ranks(inputs_at(37).data(), kRanks, parts.data() + 37, 1063, 1.0f / kRanks);
    EXPECT_EQ(parts, whole);
    sum_ranks(inputs_at(0).data(), kRanks, ranks[2].data(), 1100, 1.0f / kRanks);
    EXPECT_EQ(ranks[2], whole);
}

// 1 + 2^-8 + 2^-8 is 1 + 2^-7, a Bf16; rounded after each addition it would stay 1 (ties go to the even one).
TEST(SumRanks, Bf16IsRoundedOnceAfterTheSum) {
    const auto rank0 = as<Bf16>({1.0f}), rank1 = as<Bf16>({0x1p-8f}), rank2 = rank1;
    const Bf16* const inputs[] = {rank0.data(), rank1.data(), rank2.data()};
    auto out = unwritten<Bf16>(1);
    sum_ranks(inputs, 3, out.data(), 1, 1.0);
    EXPECT_EQ(to_float(out[0]), 1.0f + 0x1p-7f);
}

TEST(SumRanks, DoublesAreSummedAsDoubles) {
    const Vector rank0 = {1.0, 3.0}, rank1 = {0x1p-40, 4.0};
    const double* const inputs[] = {rank0.data(), rank1.data()};
    Vector out(2, NAN);
    sum_ranks(inputs, 2, out.data(), 2, 0.5);
    EXPECT_EQ(out, (Vector{0.5 + 0x1p-41, 3.5}));
}

TEST(Elementwise, AddAccumulateScaleCopy) {
    const Floats a = {1, 2, 3}, b = {10, 20, 30};
    Floats y(3, NAN);
    add(a.data(), b.data(), y.data(), 3);
    EXPECT_EQ(y, (Floats{11, 22, 33}));
    accumulate(a.data(), y.data(), 3);
    EXPECT_EQ(y, (Floats{12, 24, 36}));
    scale(y.data(), 0.5f, 3);
    EXPECT_EQ(y, (Floats{6, 12, 18}));
    copy(a.data(), y.data(), 3);
    EXPECT_EQ(y, a);
}

TEST(StreamingCopy, WritesEveryByteAndNoOther) {
    std::vector<unsigned char> in(400), expected(400);
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<unsigned char>(i * 7 + 1);
    for (const std::size_t bytes : {0U, 1U, 15U, 63U, 64U, 65U, 127U, 200U, 256U}) {
        for (std::size_t to = 0; to < 66; ++to) {
            const std::size_t from = to * 5 % 17;
            std::vector<unsigned char> out(400, 0);
            std::fill(expected.begin(), expected.end(), static_cast<unsigned char>(0));
            std::copy_n(in.begin() + static_cast<std::ptrdiff_t>(from), bytes,
                        expected.begin() + static_cast<std::ptrdiff_t>(to));
            streaming_copy(in.data() + from, out.data() + to, bytes);
            ASSERT_EQ(out, expected) << bytes << " bytes to " << to;
        }
    }
    EXPECT_GT(cached_bytes(), 0U);
}

// Several pages of a line are copied in turn.
TEST(StreamingCopy, CopiesPagesSideBySide) {
    constexpr std::size_t kMost = 5 * 4096 * 4;
    std::vector<unsigned char> in(kMost + 64);
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<unsigned char>(i * 7 + i / 4096);
    for (const std::size_t bytes : {4UL * 4096, 4UL * 4096 + 63, 9UL * 4096 + 1000, kMost - 64}) {
        for (const std::size_t to : {0UL, 1UL, 63UL}) {
            std::vector<unsigned char> out(kMost + 64, 0), expected(out);
            std::copy_n(in.begin() + 3, bytes, expected.begin() + static_cast<std::ptrdiff_t>(to));
            streaming_copy(in.data() + 3, out.data() + to, bytes);
            ASSERT_EQ(out, expected) << bytes << " bytes to " << to;
        }
    }
}

TEST(StreamingSum, GivesTheBitsOfSumRanksWhereverTheOutputBegins) {
    constexpr std::size_t kCount = 18001;  // over four blocks of four pages
    std::vector<Floats> ranks;
    for (int r = 0; r < 5; ++r) ranks.push_back(normals(kCount, std::to_string(r)));
    for (const std::size_t count : {std::size_t{0}, std::size_t{5}, std::size_t{70}, kCount - 16}) {
        for (std::size_t to = 0; to < 17; ++to) {
            const float* const inputs[] = {ranks[0].data() + to % 3, ranks[1].data(), ranks[2].data() + 1,
                                           ranks[3].data() + 2, ranks[4].data()};
            for (const int members : {1, 2, 3, 5}) {  // four, two or one page at a time
                Floats out(kCount + 17, 7), expected(kCount + 17, 7);
                streaming_sum(inputs, members, out.data() + to, count, 0.3);
                sum_ranks(inputs, members, expected.data() + to, count, 0.3);
                ASSERT_EQ(out, expected) << members << " ranks' " << count << " elements to " << to;
            }
        }
    }
    const auto a = as<Bf16>(ranks[0]), b = as<Bf16>(ranks[1]);
    const Bf16* const inputs[] = {a.data(), b.data()};
    auto out = unwritten<Bf16>(kCount), expected = out;
    streaming_sum(inputs, 2, out.data(), kCount, 0.5);
    sum_ranks(inputs, 2, expected.data(), kCount, 0.5);
    for (std::size_t i = 0; i < kCount; ++i) ASSERT_EQ(to_float(out[i]), to_float(expected[i]));
}

TEST(Elementwise, InBf16EachResultIsRoundedOnce) {
    constexpr std::size_t kCount = 2500;  // over two blocks
    const auto a = as<Bf16>(normals(kCount, "a")), b = as<Bf16>(normals(kCount, "b"));
    auto sum = unwritten<Bf16>(kCount), total = b, scaled = a;
    add(a.data(), b.data(), sum.data(), kCount);
    accumulate(a.data(), total.data(), kCount);
    scale(scaled.data(), 0.3f, kCount);
    for (std::size_t i = 0; i < kCount; ++i) {
        EXPECT_EQ(sum[i], to_bf16(to_float(a[i]) + to_float(b[i])));
        EXPECT_EQ(total[i], sum[i]);
        EXPECT_EQ(scaled[i], to_bf16(to_float(a[i]) * 0.3f));
    }
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::kernels
