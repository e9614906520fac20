// Embeddings of tokens and positions compared with their plain form and finite differences.
#include <gtest/gtest.h>

#include "tests/trainer/kernel_testing.h"
#include "trainer/kernels/embedding.h"

namespace shardscope::trainer::kernels {
namespace TEST_FILE {

using namespace testing;

TEST(Embedding, LooksRowsUp) {
    const Floats table = {1, 2, 3, 4, 5, 6};  // 3 entries, 2 wide
    const Tokens chosen = {2, 0, 2};
    Floats y(6, NAN);
    embedding_forward(chosen.data(), table.data(), y.data(), 3, 2);
    EXPECT_EQ(y, (Floats{5, 6, 1, 2, 5, 6}));
}

TEST(Embedding, GradientsOfOneEntryAddUpAndUnusedEntriesGetZero) {
    const Floats dy = {1, 10, 2, 20, 3, 30};
    const Tokens chosen = {2, 0, 2};
    Floats dtable(8, NAN);  // 4 entries
    embedding_backward(dy.data(), chosen.data(), dtable.data(), 3, 4, 2);
    EXPECT_EQ(dtable, (Floats{2, 20, 0, 0, 4, 40, 0, 0}));
}

TEST(Embedding, GradientAgreesWithFiniteDifferences) {
    constexpr int kRows = 6, kEntries = 4, kWidth = 3;
    const Vector table = in_double(normals(kEntries * kWidth, "table"));
    const Floats dy = normals(kRows * kWidth, "dy");
    const Tokens chosen = tokens(kRows, kEntries, "tokens");
    const auto loss = [&](const Vector& v) {
        return dot(in_double(dy), reference::embedding_forward(chosen, v, kWidth));
    };
    const Vector plain = reference::embedding_backward(in_double(dy), chosen, kEntries, kWidth);
    EXPECT_LE(relative_error(plain, finite_differences(table, loss)), kFiniteDifferenceTolerance);
    Floats dtable(kEntries * kWidth, NAN);
    embedding_backward(dy.data(), chosen.data(), dtable.data(), kRows, kEntries, kWidth);
    EXPECT_LE(relative_error(dtable, plain), kFloatTolerance);
}

// In Bf16 256 + 1 is 256: only a sum in fp32 that is rounded at its end gives 256 + 1 + 1 = 258.
TEST(Embedding, GradientsInBf16AddUpInFp32) {
    const auto dy = as<Bf16>({256.0f, 1.0f, 1.0f});
    const Tokens chosen = {1, 1, 1};
    auto dtable = unwritten<Bf16>(2);
    embedding_backward(dy.data(), chosen.data(), dtable.data(), 3, 2, 1);
    EXPECT_EQ(in_double(dtable), (Vector{0.0, 258.0}));
    auto positions = unwritten<Bf16>(2);
    position_embedding_backward(dy.data(), positions.data(), 3, 1, 2, 1);
    EXPECT_EQ(in_double(positions), (Vector{258.0, 0.0}));
}

TEST(Embedding, InBf16IsThePlainForm) {
    constexpr int kRows = 50, kEntries = 7, kWidth = 130;  // wider than one tile of columns
    const auto table = as<Bf16>(normals(kEntries * kWidth, "table"));
    const auto dy = as<Bf16>(normals(kRows * kWidth, "dy"));
    const Tokens chosen = tokens(kRows, kEntries, "tokens");
    auto y = unwritten<Bf16>(kRows * kWidth), dtable = unwritten<Bf16>(kEntries * kWidth);
    embedding_forward(chosen.data(), table.data(), y.data(), kRows, kWidth);
    EXPECT_EQ(in_double(y), reference::embedding_forward(chosen, in_double(table), kWidth));
    embedding_backward(dy.data(), chosen.data(), dtable.data(), kRows, kEntries, kWidth);
    EXPECT_LE(relative_error(in_double(dtable),
                             reference::embedding_backward(in_double(dy), chosen, kEntries, kWidth)),
              kTolerance<Bf16>);
}

// A position embedding is the embedding of tokens 0, 1, … context - 1, 0, 1, …
TEST(PositionEmbedding, IsTheEmbeddingOfThePositions) {
    constexpr int kBatch = 3, kContext = 4, kEntries = 5, kWidth = 18, kRows = kBatch * kContext;
    Tokens positions;
    for (int i = 0; i < kRows; ++i) positions.push_back(i % kContext);
    const Floats table = normals(kEntries * kWidth, "table"), dy = normals(kRows * kWidth, "dy");
    const Floats x = normals(kRows * kWidth, "x");

    Floats expected(kRows * kWidth), y(kRows * kWidth, NAN);
    embedding_forward(positions.data(), table.data(), expected.data(), kRows, kWidth);
    position_embedding_forward(nullptr, table.data(), y.data(), kRows, kContext, kWidth);
    EXPECT_EQ(y, expected);

    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += x[i];
    position_embedding_forward(x.data(), table.data(), y.data(), kRows, kContext, kWidth);
    EXPECT_EQ(y, expected);
    y = x;
    position_embedding_forward(y.data(), table.data(), y.data(), kRows, kContext, kWidth);
    EXPECT_EQ(y, expected);

    Floats gradient(kEntries * kWidth), dtable(kEntries * kWidth, NAN);
    embedding_backward(dy.data(), positions.data(), gradient.data(), kRows, kEntries, kWidth);
    position_embedding_backward(dy.data(), dtable.data(), kRows, kContext, kEntries, kWidth);
    EXPECT_EQ(dtable, gradient);
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::kernels
