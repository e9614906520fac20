// Heads of keys and values that ranks of a tensor group share: taken from the parts of all ranks, and put
// back.
#include <cmath>
#include <cstddef>
#include <vector>

#include <gtest/gtest.h>

#include "tests/trainer/kernel_testing.h"
#include "trainer/kernels/kv_head.h"

namespace shardscope::trainer::kernels {
namespace TEST_FILE {

using namespace testing;

// Four ranks, of which two share a head of 4 features: each has computed 2 of its keys and 2 of its values.
// Two rows, of 4 features of queries besides.
constexpr int kQueries = 4, kRow = kQueries + 2 * 4;
constexpr KvParts at(int place) {
    return {.rows = 2, .row = kRow, .part = 2, .sharing = 2, .ranks = 4, .place = place};
}

TEST(KvHead, IsMadeOfThePartsOfTheRanksThatShareIt) {
    Floats parts(4 * 2 * 4);
    for (std::size_t i = 0; i < parts.size(); ++i) parts[i] = static_cast<float>(i);
    const Floats first = {-1, -1, -1, -1, 0, 1, 8,  9,  2, 3, 10, 11,   // rank 0: 0 to 7, rank 1: 8 to 15
                          -1, -1, -1, -1, 4, 5, 12, 13, 6, 7, 14, 15};  // of which the latter 4: row 1
    for (const int place : {0, 1, 2, 3}) {
        Floats qkv(2 * kRow, -1.0F);
        take_kv_head(parts.data(), qkv.data() + kQueries, at(place));
        Floats expected = first;
        for (float& value : expected)
            if (value >= 0 && place >= 2) value += 16;  // ranks 2 and 3
        EXPECT_EQ(qkv, expected) << place;
    }
}

template <class T>
void expect_put_back() {
    const auto parts = as<T>(normals(4 * 2 * 4, "parts"));
    for (const int place : {0, 3}) {
        auto qkv = as<T>(Floats(2 * kRow, NAN)), back = unwritten<T>(parts.size());
        take_kv_head(parts.data(), qkv.data() + kQueries, at(place));
        spread_kv_head(qkv.data() + kQueries, back.data(), at(place));
        const std::size_t half = parts.size() / 2;
        for (std::size_t i = 0; i < parts.size(); ++i) {
            const bool own = (i < half) == (place < 2);
            EXPECT_EQ(back[i], own ? parts[i] : T{}) << i << " of place " << place;
        }
    }
}

TEST(KvHead, IsPutBackWithZerosForTheOthers) {
    expect_put_back<float>();
    expect_put_back<Bf16>();
    expect_put_back<Fp16>();
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::kernels
