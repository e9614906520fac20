// What tensor parallelism adds to the kernels, on a CUDA device compared with the CPU's: a divided
// vocabulary, shared heads of keys and values, the parts of a parameter's initial values, of its norm, of
// dropout and of a position embedding.
#include "tests/trainer/cuda_testing.h"

namespace shardscope::trainer::cuda {
namespace TEST_FILE {

using namespace cuda_testing;
using kernels::Bf16;
using testing::Tokens;
using testing::tokens;

class CudaVocabulary : public CudaTest {};

device::KernelContext place(int tensor, int tensors) {
    device::KernelContext context;
    context.seed = 7;
    context.tensor = tensor;
    context.tensors = tensors;
    return context;
}

// Rank 2 of 3 has entries 80 to 119, of which 100 to 119 are padding.
constexpr int kRows = 37, kClasses = 40, kAll = 100, kTensors = 3;

TEST_F(CudaVocabulary, TokensOfARank) {
    Tokens all = tokens(kRows, kAll, "tokens");
    all[3] = -1;
    for (const int tensor : {0, 1, 2}) {
        Comparison local(plan::Kernel::local_tokens, plan::DType::fp32, {kRows, kClasses});
        local.args(Tokens(kRows, 9), Tokens(kRows, 9), all).run(place(tensor, kTensors));
        local.expect_same<std::int32_t>(0);
        local.expect_same<std::int32_t>(1);
        for (std::size_t i = 0; i < all.size(); ++i) {
            const bool own = all[i] >= 0 && all[i] / kClasses == tensor;
            const std::int32_t elsewhere = all[i] < 0 ? -1 : kClasses;
            EXPECT_EQ(local.cpu<std::int32_t>(0)[i], own ? all[i] % kClasses : elsewhere);
            EXPECT_EQ(local.cpu<std::int32_t>(1)[i], own ? all[i] % kClasses : 0);
        }
        Comparison targets(plan::Kernel::local_tokens, plan::DType::fp32, {kRows, kClasses});
        targets.arg(Tokens(kRows, 9)).nothing().arg(all).run(place(tensor, kTensors));
        targets.expect_same<std::int32_t>(0);
    }
}

TEST_F(CudaVocabulary, RowsOfOtherRanksAreZero) {
    Tokens local = tokens(kRows, kClasses + 1, "local");
    Comparison rows(plan::Kernel::zero_rows, plan::DType::fp32, {kRows, 50, kClasses});
    rows.args(normals(kRows * 50, "y"), local).run();
    rows.expect_same<float>(0);
    Comparison narrow(plan::Kernel::zero_rows, plan::DType::bf16, {kRows, 50, kClasses});
    narrow.args(testing::as<Bf16>(normals(kRows * 50, "y")), local).run().expect_same<Bf16>(0);
}

// The parts of all ranks, joined, are the plain loss.
TEST_F(CudaVocabulary, PartsOfTheLoss) {
    const std::size_t n = kRows * kClasses;
    const Floats logits = normals(n, "logits");
    Tokens local = tokens(kRows, kClasses + 1, "targets");
    local[5] = -1;
    for (const int tensor : {0, 2}) {
        const device::KernelContext context = place(tensor, kTensors);
        Comparison largest(plan::Kernel::largest_logit, plan::DType::fp32, {kRows, kClasses, kAll});
        largest.args(unwritten<float>(kRows), logits).run(context);
        largest.expect_same<float>(0);
        Comparison parts(plan::Kernel::exp_logits, plan::DType::fp32, {kRows, kClasses, kAll});
        parts.args(unwritten<float>(n), unwritten<float>(kRows), unwritten<float>(kRows), logits,
                   largest.cpu<float>(0), local);
        parts.run(context);
        parts.expect_near<float>(0);
        parts.expect_near<float>(1);
        parts.expect_near<float>(2);
        Comparison loss(plan::Kernel::vocabulary_loss, plan::DType::fp32, {kRows, kClasses, 0});
        loss.args(Vector{NAN}, parts.cpu<float>(0), parts.cpu<float>(1), parts.cpu<float>(2), local);
        loss.run(context);
        loss.expect_near<double>(0, 1e-6);
        loss.expect_near<float>(1);
        Comparison slopes(plan::Kernel::cross_entropy_backward, plan::DType::fp32, {kRows, kClasses, 0});
        slopes.args(unwritten<float>(n), loss.cpu<float>(1), local).run(context);
        slopes.expect_near<float>(0);
    }
}

// Six ranks, three to a head of 9 features; 33 rows of 10 features of queries, keys and values.
template <class T>
void expect_shared_heads(plan::DType dtype) {
    constexpr std::int64_t kTokens = 33, kQueries = 10, kPart = 3, kSharing = 3, kRanks = 6,
                           kRow = kQueries + 2 * kPart * kSharing;
    const auto parts = testing::as<T>(normals(2 * kTokens * kPart * kRanks, "parts"));
    const auto heads = testing::as<T>(normals(kTokens * kRow, "heads"));
    for (const int tensor : {0, 2, 3, 5}) {
        Comparison take(plan::Kernel::take_kv_head, dtype, {kTokens, kRow, kPart, kSharing, kRanks});
        take.args(heads, parts).run(place(tensor, kRanks)).template expect_same<T>(0);
        Comparison spread(plan::Kernel::spread_kv_head, dtype, {kTokens, kRow, kPart, kSharing, kRanks});
        spread.args(unwritten<T>(parts.size()), heads).run(place(tensor, kRanks)).template expect_same<T>(0);
    }
}

TEST_F(CudaVocabulary, SharedHeadsOfKeysAndValues) {
    expect_shared_heads<float>(plan::DType::fp32);
    expect_shared_heads<Bf16>(plan::DType::bf16);
}

// A row-cut and a column-cut part of a parameter of 6 x 8, with 3 elements before it, on two ranks of a shard
// group.
TEST_F(CudaVocabulary, PartsOfInitialValues) {
    for (const plan::Kernel kernel :
         {plan::Kernel::init_normal, plan::Kernel::init_uniform, plan::Kernel::init_constant}) {
        for (const std::int64_t step : {0, 24, 4}) {
            const std::int64_t elements = step == 0 ? 48 : 24, per_rank = (elements + 3 + 1) / 2;
            for (const int shard : {0, 1}) {
                device::KernelContext context = place(1, 2);
                context.place = shard;
                Comparison part(kernel, plan::DType::fp32, {99, 3, elements, per_rank, 0, step}, {-0.5, 2});
                part.arg(Floats(static_cast<std::size_t>(per_rank), 0.0F)).run(context);
                part.expect_same<float>(0);
            }
        }
    }
}

TEST_F(CudaVocabulary, SquaresOfSegments) {
    const std::vector<plan::Segment> segments = {{0, 2, 700}, {1, 702, 300}, {2, 1200, 11}};
    for (const int shard : {0, 1, 2}) {
        device::KernelContext context;
        context.place = shard;
        context.segments = segments;
        Comparison squares(plan::Kernel::segment_squares, plan::DType::fp32, {500, 500});
        squares.args(Vector(3, NAN), normals(500, "x")).run(context);
        squares.expect_near<double>(0, 1e-13);
    }
}

// The second of two ranks has rows 15 to 29 of 30, at positions 5 to 9, 0 to 9 of 10.
TEST_F(CudaVocabulary, RowsOfARankHavePositionsOfTheirOwn) {
    Comparison added(plan::Kernel::position_forward, plan::DType::fp32, {3, 10, 20, 15});
    added.args(unwritten<float>(300), normals(300, "x"), normals(200, "table")).run(place(1, 2));
    added.expect_same<float>(0);
    EXPECT_EQ(added.cpu<float>(0)[0], normals(300, "x")[0] + normals(200, "table")[5 * 20]);
    Comparison slopes(plan::Kernel::position_backward, plan::DType::fp32, {3, 10, 20, 12, 15});
    slopes.args(unwritten<float>(240), normals(300, "dy")).run(place(1, 2));
    slopes.expect_same<float>(0);
    EXPECT_EQ(slopes.cpu<float>(0)[5 * 20], normals(300, "dy")[0] + normals(300, "dy")[10 * 20]);
}

TEST_F(CudaVocabulary, DropoutOfAPart) {
    Comparison part(plan::Kernel::dropout_forward, plan::DType::fp32, {500, 3, 1}, {0.3});
    part.args(unwritten<float>(500), normals(500, "x")).run(place(1, 2));
    part.expect_same<float>(0);
    // It has the second half of the numbers of the whole.
    Comparison whole(plan::Kernel::dropout_forward, plan::DType::fp32, {1000, 3, 0}, {0.3});
    Floats twice(500, 0.0F);
    for (const float value : normals(500, "x")) twice.push_back(value);
    whole.args(unwritten<float>(1000), twice).run(place(1, 2));
    const Floats of_whole = whole.cpu<float>(0);
    EXPECT_EQ(part.cpu<float>(0), Floats(of_whole.begin() + 500, of_whole.end()));
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::cuda
