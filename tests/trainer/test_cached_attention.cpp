// Attention to a key/value cache compared with attention of whole sequences.
#include <gtest/gtest.h>

#include "tests/trainer/kernel_testing.h"
#include "trainer/kernels/attention.h"
#include "trainer/kernels/cached_attention.h"

namespace shardscope::trainer::kernels {
namespace TEST_FILE {

using namespace testing;

// Sequences of `context` tokens, of which the first ones of each are stored at once and the others come
// `rows` at a time.
template <class T>
void expect_whole_attention(const AttentionShape& s, int stored, int rows) {
    const auto row = static_cast<std::size_t>(s.row()), width = static_cast<std::size_t>(s.width);
    const auto context = static_cast<std::size_t>(s.context), batch = static_cast<std::size_t>(s.batch);
    const auto qkv = as<T>(normals(batch * context * row, "qkv"));
    std::vector<T> out = unwritten<T>(batch * context * width);
    CacheShape shape{s.batch, stored, s.width, s.heads, s.kv_heads, s.context + 3};
    std::vector<T> cache = unwritten<T>(batch * static_cast<std::size_t>(shape.context * shape.kv_row()));
    for (int first = 0; first < s.context; first += shape.rows) {
        shape.rows = first == 0 ? stored : rows;
        std::vector<T> own;
        std::vector<std::int32_t> positions;
        for (std::size_t b = 0; b < batch; ++b) {
            for (int r = 0; r < shape.rows; ++r) {
                const auto at = b * context + static_cast<std::size_t>(first + r);
                own.insert(own.end(), qkv.begin() + static_cast<std::ptrdiff_t>(at * row),
                           qkv.begin() + static_cast<std::ptrdiff_t>((at + 1) * row));
                positions.push_back(first + r);
            }
        }
        std::vector<T> y = unwritten<T>(positions.size() * width);
        store_keys(own.data(), positions.data(), cache.data(), shape);
        cached_attention_forward(own.data(), cache.data(), positions.data(), y.data(), shape);
        for (std::size_t i = 0; i < positions.size(); ++i) {
            const std::size_t at =
                i / static_cast<std::size_t>(shape.rows) * context + static_cast<std::size_t>(positions[i]);
            std::copy_n(y.begin() + static_cast<std::ptrdiff_t>(i * width), width,
                        out.begin() + static_cast<std::ptrdiff_t>(at * width));
        }
    }
    const auto whole =
        reference::attention_forward(in_double(qkv), s.batch, s.context, s.width, s.heads, s.kv_heads, true);
    EXPECT_LE(relative_error(in_double(out), whole.out), kTolerance<T>);
}

// One head and several, keys for every head, for every other one and for all; a head width that is no
// multiple of the lanes.
const AttentionShape kShapes[] = {{1, 1, 4, 1, 1}, {2, 9, 12, 3, 3}, {1, 30, 64, 4, 2}, {3, 21, 40, 2, 1}};

template <class T>
class CachedAttention : public ::testing::Test {};
using Elements = ::testing::Types<float, Bf16, Fp16>;
TYPED_TEST_SUITE(CachedAttention, Elements);

TYPED_TEST(CachedAttention, OfOneTokenAfterTheOtherIsThatOfTheWhole) {
    for (const AttentionShape& shape : kShapes) expect_whole_attention<TypeParam>(shape, 1, 1);
}

TYPED_TEST(CachedAttention, OfTokensAfterAPromptIsThatOfTheWhole) {
    for (const AttentionShape& shape : {kShapes[1], kShapes[2], kShapes[3]})
        expect_whole_attention<TypeParam>(shape, 3, shape.context % 2 == 0 ? 9 : 6);
}

// Each sequence of a batch has places of its own.
TEST(CachedAttention, SequencesNeedNotBeEquallyLong) {
    const CacheShape shape{2, 1, 4, 1, 1, 8};
    Floats cache(2 * 8 * 8, NAN);
    const auto token = [](float value) {
        Floats qkv(12, value);
        return qkv;
    };
    const auto step = [&](std::vector<std::int32_t> positions, float first, float second) {
        Floats qkv = token(first), other = token(second), out(8, NAN);
        qkv.insert(qkv.end(), other.begin(), other.end());
        store_keys(qkv.data(), positions.data(), cache.data(), shape);
        cached_attention_forward(qkv.data(), cache.data(), positions.data(), out.data(), shape);
        return out;
    };
    step({0, 0}, 1.0f, 0.0f);
    // The second one's place is overwritten: it sees only what it has now.
    const Floats out = step({1, 0}, 1.0f, 3.0f);
    for (std::size_t i = 0; i < 4; ++i) EXPECT_FLOAT_EQ(out[i], 1.0f);
    for (std::size_t i = 4; i < 8; ++i) EXPECT_FLOAT_EQ(out[i], 3.0f);
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::kernels
