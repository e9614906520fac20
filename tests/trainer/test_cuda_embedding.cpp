// Embeddings and rotary embeddings on a CUDA device: the CPU's bits.
#include "tests/trainer/cuda_testing.h"

namespace shardscope::trainer::cuda {
namespace TEST_FILE {

using namespace cuda_testing;
using kernels::Bf16;
using testing::Tokens;
using testing::tokens;

template <class T>
class CudaEmbedding : public TypedCudaTest<T> {};
TYPED_TEST_SUITE(CudaEmbedding, Elements, ElementNames);

struct Shape {
    std::size_t rows, width;
    int entries;
};
// Vocabularies of one-digit, two-digit and three-digit sizes; widths that are not multiples of a pack, and of
// more than one round of a block; rows of more than one block, and entries that have many pieces.
constexpr Shape kShapes[] = {{1, 1, 1},     {7, 5, 3},    {300, 33, 50}, {64, 64, 3000},
                             {10, 5000, 4}, {5000, 3, 7}, {9, 1, 65537}, {4500, 1, 3000}};

template <class Check>
void for_shapes(Check check) {
    for (const Shape& shape : kShapes) {
        for (const std::size_t shift : {0, 1}) {
            SCOPED_TRACE(std::to_string(shape.rows) + " rows, width " + std::to_string(shape.width) +
                         ", shifted by " + std::to_string(shift));
            check(shape, shift);
        }
    }
}

std::array<std::int64_t, 6> dims(std::size_t a, std::size_t b, std::size_t c = 0, std::size_t d = 0) {
    return {static_cast<std::int64_t>(a), static_cast<std::int64_t>(b), static_cast<std::int64_t>(c),
            static_cast<std::int64_t>(d)};
}

TYPED_TEST(CudaEmbedding, LooksRowsUp) {
    using T = TypeParam;
    for_shapes([](const Shape& shape, std::size_t shift) {
        const std::size_t table = static_cast<std::size_t>(shape.entries) * shape.width;
        Comparison(plan::Kernel::embedding_forward, kDType<T>, dims(shape.rows, shape.width))
            .args(unwritten<T>(shape.rows * shape.width), tokens(shape.rows, shape.entries, "tokens"),
                  as<T>(normals(table, "table")))
            .shifted(shift)
            .run()
            .template expect_same<T>(0);
    });
}

template <class T>
Comparison backward(const Shape& shape, const Tokens& of_rows) {
    const auto entries = static_cast<std::size_t>(shape.entries);
    Comparison sums(plan::Kernel::embedding_backward, kDType<T>, dims(shape.rows, shape.width, entries));
    sums.arg(unwritten<T>(entries * shape.width));
    sums.args(as<T>(normals(shape.rows * shape.width, "dy")), of_rows);
    return sums;
}

TYPED_TEST(CudaEmbedding, AddsRowsInTheirOrder) {
    using T = TypeParam;
    for_shapes([](const Shape& shape, std::size_t shift) {
        Comparison sums = backward<T>(shape, tokens(shape.rows, shape.entries, "tokens"));
        sums.shifted(shift).run().template expect_same<T>(0);
    });
}

// All rows have one token, the last of the table: the longest possible list.
TYPED_TEST(CudaEmbedding, AddsRowsOfOneToken) {
    using T = TypeParam;
    const Shape shape{700, 8, 1025};
    backward<T>(shape, Tokens(shape.rows, 1024)).run().template expect_same<T>(0);
}

// Some entries have several pieces, and others between them have few rows.
TYPED_TEST(CudaEmbedding, AddsRowsOfFrequentAndRareTokens) {
    using T = TypeParam;
    for (const std::size_t rare : {1U, 3U, 255U, 256U, 257U, 511U}) {
        Tokens of_rows;
        for (std::size_t row = 0; row < 2000; ++row) {
            of_rows.push_back(row % 3 != 0 ? 9 : row / 3 < rare ? 4 : static_cast<std::int32_t>(row % 13));
        }
        backward<T>({of_rows.size(), 9, 14}, of_rows).run().template expect_same<T>(0);
    }
}

#ifdef SHARDSCOPE_PLAYED_CUDA
// Every row has its own token: twice the rows are twice the work, not four times.
TEST(CudaEmbeddingWork, IsLinearWhenAllRowsAreOfOneToken) {
    const auto steps_of = [](std::size_t rows) {
        const std::uint64_t before = played_cuda::steps();
        backward<float>({rows, 8, 2}, Tokens(rows, 1)).run().expect_same<float>(0);
        return static_cast<double>(played_cuda::steps() - before);
    };
    const double once = steps_of(2048), twice = steps_of(4096);
    EXPECT_GT(once, 2048.0) << "counted at all";
    EXPECT_LT(twice, 2.2 * once);
}
#endif

TYPED_TEST(CudaEmbedding, Positions) {
    using T = TypeParam;
    struct Case {
        std::size_t batch, context, width, entries;
    };
    for (const Case& c : {Case{1, 1, 1, 1}, Case{3, 5, 33, 8}, Case{4, 16, 64, 16}, Case{600, 2, 9, 3}}) {
        const std::size_t n = c.batch * c.context * c.width;
        const auto table = as<T>(normals(c.entries * c.width, "table"));
        Comparison added(plan::Kernel::position_forward, kDType<T>, dims(c.batch, c.context, c.width));
        added.args(unwritten<T>(n), as<T>(normals(n, "x")), table).run().template expect_same<T>(0);
        Comparison alone(plan::Kernel::position_forward, kDType<T>, dims(c.batch, c.context, c.width));
        alone.arg(unwritten<T>(n)).nothing().arg(table).run().template expect_same<T>(0);
        Comparison slopes(plan::Kernel::position_backward, kDType<T>,
                          dims(c.batch, c.context, c.width, c.entries));
        slopes.args(unwritten<T>(c.entries * c.width), as<T>(normals(n, "dy")));
        slopes.run().template expect_same<T>(0);
    }
}

// --- rotary ------------------------------------------------------------------------------------------------

template <class T>
class CudaRotary : public TypedCudaTest<T> {};
TYPED_TEST_SUITE(CudaRotary, Elements, ElementNames);

struct RotaryCase {
    std::int64_t batch, context, rotated, heads, width;
    std::size_t n() const { return static_cast<std::size_t>(batch * context * heads * width); }
    std::size_t table() const { return static_cast<std::size_t>(context * width); }
};
constexpr RotaryCase kRotary[] = {{1, 1, 1, 1, 2}, {2, 3, 2, 4, 6}, {2, 5, 12, 16, 64}, {1, 4, 40, 48, 128}};

template <class T, class Table>
void expect_turns(const RotaryCase& c, plan::Kernel kernel, bool in_place, std::size_t shift) {
    Comparison turns(kernel, kDType<T>,
                     {c.batch, c.context, c.rotated, c.heads, c.width, plan::input_dim(kDType<Table>)});
    const auto x = as<T>(normals(c.n(), "x"));
    if (in_place) {
        turns.arg(x).again(0);
    } else {
        turns.args(unwritten<T>(c.n()), x);
    }
    turns.arg(as<Table>(normals(c.table(), "table"))).shifted(shift).run().template expect_same<T>(0);
}

TYPED_TEST(CudaRotary, RotatesTheFirstHeadsAndCopiesTheRest) {
    using T = TypeParam;
    for (const RotaryCase& c : kRotary) {
        SCOPED_TRACE(std::to_string(c.heads) + " heads of " + std::to_string(c.width));
        for (const bool in_place : {false, true}) {
            expect_turns<T, float>(c, plan::Kernel::rotary_forward, in_place, 0);
            expect_turns<T, Bf16>(c, plan::Kernel::rotary_backward, in_place, 0);
            expect_turns<T, T>(c, plan::Kernel::rotary_forward, in_place, 1);
        }
    }
}

TYPED_TEST(CudaRotary, Table) {
    using T = TypeParam;
    for (const std::int64_t context : {1, 7, 300}) {
        Comparison table(plan::Kernel::rotary_table, kDType<T>, {context, 64}, {10000.0});
        table.arg(unwritten<T>(static_cast<std::size_t>(context * 64))).run();
        table.template expect_near<T>(0);
        Comparison given(plan::Kernel::rotary_table, kDType<T>, {context, 64}, {10000.0});
        std::vector<std::int32_t> positions;
        for (std::int64_t i = 0; i < context; ++i) positions.push_back(static_cast<std::int32_t>(3 * i % 11));
        given.args(unwritten<T>(static_cast<std::size_t>(context * 64)), positions).run();
        given.template expect_near<T>(0);
    }
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::cuda
