// Attention of the ranks of a context group compared with fused attention of whole sequences: with the keys
// of all ranks, and of one rank after the other in a ring.
#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include "tests/trainer/kernel_testing.h"
#include "trainer/kernels/attention_fused.h"
#include "trainer/kernels/context_attention.h"

namespace shardscope::trainer::kernels {
namespace TEST_FILE {

using namespace testing;

TEST(ContextCut, GivesEachRankAChunkFromHeadAndTail) {
    std::vector<std::int32_t> positions(4);
    context_positions(positions.data(), 4, {3, 1, true});
    EXPECT_EQ(positions, (std::vector<std::int32_t>{2, 3, 8, 9}));  // of 12
    context_positions(positions.data(), 4, {3, 1, false});
    EXPECT_EQ(positions, (std::vector<std::int32_t>{4, 5, 6, 7}));
}

struct Shape {
    AttentionShape whole;
    int ranks;

    ContextAttentionShape of(int rank, int step) const {
        return {whole.batch,    whole.context / ranks,       whole.width, whole.heads,
                whole.kv_heads, {ranks, rank, whole.causal}, step};
    }
    std::size_t tokens() const { return static_cast<std::size_t>(whole.batch * whole.context / ranks); }
};

// The rows of `width` that a rank has of [B,T,width], or (put) back.
template <class T>
std::vector<T> rows_of(const Shape& s, int rank, const std::vector<T>& whole, int width) {
    std::vector<T> own(whole.size() / static_cast<std::size_t>(s.ranks));
    const ContextCut cut{s.ranks, rank, s.whole.causal};
    cut.for_runs(0, static_cast<std::int64_t>(own.size()), std::int64_t{s.whole.context} / s.ranks * width,
                 [&](std::int64_t at, std::int64_t count, std::int64_t from) {
                     std::copy_n(whole.begin() + from, count, own.begin() + at);
                 });
    return own;
}
template <class T>
std::vector<T> keys_of(const Shape& s, const std::vector<T>& own_qkv) {
    const int columns = s.of(0, 0).kv_row(), row = s.whole.row();
    std::vector<T> kv(s.tokens() * static_cast<std::size_t>(columns));
    copy_columns(own_qkv.data() + s.whole.width, kv.data(), static_cast<int>(s.tokens()), columns, columns,
                 row);
    return kv;
}
template <class T>
std::size_t heads_rows(const Shape& s, const std::vector<T>&) {
    return s.tokens() * static_cast<std::size_t>(s.whole.heads);
}

// What the ranks compute, each for its own tokens.
template <class T>
struct Results {
    std::vector<Floats> out, dq, dkv;  // by rank
};

template <class T>
Results<T> compute(const Shape& s, const std::vector<T>& qkv, const std::vector<T>& dout, bool ring) {
    std::vector<std::vector<T>> own, keys;
    std::vector<T> all_keys;
    for (int r = 0; r < s.ranks; ++r) {
        own.push_back(rows_of(s, r, qkv, s.whole.row()));
        keys.push_back(keys_of(s, own.back()));
        all_keys.insert(all_keys.end(), keys.back().begin(), keys.back().end());
    }
    Results<T> found;
    found.dkv.assign(static_cast<std::size_t>(s.ranks), Floats(keys[0].size(), 0.0f));
    for (int r = 0; r < s.ranks; ++r) {
        const auto rank = static_cast<std::size_t>(r);
        const std::vector<T>& mine = own[rank];
        const std::vector<T> go = rows_of(s, r, dout, s.whole.width);
        const std::size_t n = s.tokens() * static_cast<std::size_t>(s.whole.width),
                          rows = heads_rows(s, mine);
        Floats out(n, NAN), lse(rows, NAN), part(n, NAN), part_lse(rows, NAN), dq(n, NAN), delta(rows, NAN);
        const int steps = ring ? s.ranks : 1;
        const auto source = [&](int step) {
            return static_cast<std::size_t>((r + s.ranks - step) % s.ranks);
        };
        for (int step = 0; step < steps; ++step) {
            const std::vector<T>& kv = ring ? keys[source(step)] : all_keys;
            context_attention_forward(mine.data(), kv.data(), step > 0 ? part.data() : out.data(),
                                      step > 0 ? part_lse.data() : lse.data(), s.of(r, ring ? step : -1));
            if (step > 0)
                merge_attention(out.data(), lse.data(), part.data(), part_lse.data(), s.of(r, step));
        }
        const std::vector<T> rounded = as<T>(out);
        for (int step = 0; step < steps; ++step) {
            const std::vector<T>& kv = ring ? keys[source(step)] : all_keys;
            Floats dkv(kv.size(), NAN);
            context_attention_backward(go.data(), mine.data(), kv.data(), rounded.data(), lse.data(),
                                       dq.data(), dkv.data(), delta.data(), s.of(r, ring ? step : -1));
            for (std::size_t i = 0; i < dkv.size(); ++i) {
                const std::size_t of = ring ? source(step) : i / keys[0].size();
                found.dkv[of][i % keys[0].size()] += dkv[i];
            }
        }
        found.out.push_back(std::move(out));
        found.dq.push_back(std::move(dq));
    }
    return found;
}

template <class T>
void expect_the_whole(const Shape& s, bool ring) {
    const AttentionShape& w = s.whole;
    const auto tokens = static_cast<std::size_t>(w.batch) * static_cast<std::size_t>(w.context);
    const auto qkv = as<T>(normals(tokens * static_cast<std::size_t>(w.row()), "qkv"));
    const auto dout = as<T>(normals(tokens * static_cast<std::size_t>(w.width), "dout"));
    std::vector<T> out(dout.size()), dqkv(qkv.size());
    Floats lse(tokens * static_cast<std::size_t>(w.heads)), delta(lse.size());
    fused_attention_forward(qkv.data(), out.data(), lse.data(), w);
    fused_attention_backward(dout.data(), qkv.data(), out.data(), lse.data(), dqkv.data(), delta.data(), w);
    const Results<T> found = compute(s, qkv, dout, ring);
    for (int r = 0; r < s.ranks; ++r) {
        const auto rank = static_cast<std::size_t>(r);
        EXPECT_LE(relative_error(found.out[rank], in_double(rows_of(s, r, out, w.width))), kTolerance<T>);
        const std::vector<T> gradient = rows_of(s, r, dqkv, w.row());
        std::vector<T> dq(found.dq[rank].size());
        copy_columns(gradient.data(), dq.data(), static_cast<int>(s.tokens()), w.width, w.width, w.row());
        EXPECT_LE(relative_error(found.dq[rank], in_double(dq)), 2 * kTolerance<T>);
        EXPECT_LE(relative_error(found.dkv[rank], in_double(keys_of(s, gradient))), 2 * kTolerance<T>);
    }
}

class ContextAttention : public ::testing::TestWithParam<Shape> {};

// Chunks of one token, of less than a tile and of several; keys for each query head, for two, and for all.
INSTANTIATE_TEST_SUITE_P(Shapes, ContextAttention,
                         ::testing::Values(Shape{{2, 4, 6, 2, 2}, 2}, Shape{{1, 8, 8, 2, 1}, 4},
                                           Shape{{2, 36, 24, 4, 2}, 3}, Shape{{1, 512, 24, 3, 1}, 2},
                                           Shape{{2, 6, 6, 2, 2, false}, 3},
                                           Shape{{1, 300, 16, 4, 4, false}, 2}));

TEST_P(ContextAttention, OfAllKeysIsThatOfWholeSequences) {
    expect_the_whole<float>(GetParam(), false);
    expect_the_whole<Bf16>(GetParam(), false);
    expect_the_whole<Fp16>(GetParam(), false);
}

TEST_P(ContextAttention, OfOneRankAfterTheOtherIsThatOfWholeSequences) {
    expect_the_whole<float>(GetParam(), true);
    expect_the_whole<Bf16>(GetParam(), true);
    expect_the_whole<Fp16>(GetParam(), true);
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::kernels
