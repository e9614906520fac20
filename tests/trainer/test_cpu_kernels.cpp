// From operations of a Plan to kernels: the order of args and dims, ranks' parts of a sequence, pieces by
// rank, the mask of dropout, and the search for values that are not finite.
#include <span>
#include <string>

#include <gtest/gtest.h>

#include "tests/trainer/kernel_testing.h"
#include "trainer/executor/cpu_kernels.h"
#include "trainer/kernels/optimizer.h"
#include "trainer/kernels/reductions.h"

namespace shardscope::trainer::executor {
namespace TEST_FILE {

using namespace testing;
using kernels::Bf16;
using kernels::Fp16;

// An operation and the addresses of its args.
class Call {
  public:
    Call(plan::Kernel kernel, plan::DType dtype, std::array<std::int64_t, 6> dims,
         std::array<double, 5> scalars = {}) {
        op_.kind = plan::OpKind::kernel;
        op_.own = plan::KernelOp{.kernel = kernel, .dtype = dtype, .dims = dims, .scalars = scalars};
        op_.module = 5;
    }
    template <class T>
    Call& arg(std::vector<T>& values) {
        op_.args.push_back({0, 0, static_cast<std::int64_t>(values.size() * sizeof(T))});
        data_.push_back(reinterpret_cast<std::byte*>(values.data()));
        return *this;
    }
    Call& nothing() {
        op_.args.push_back({});
        data_.push_back(nullptr);
        return *this;
    }
    Call& checked(std::vector<std::int32_t>& flag) {
        op_.kernel().checks_output = true;
        return arg(flag);
    }
    void run(const device::KernelContext& context = {}) const { run_kernel(op_, data_, context); }

  private:
    plan::Op op_;
    std::vector<std::byte*> data_;
};

device::KernelContext at_place(int place, std::span<const plan::Segment> segments = {}) {
    device::KernelContext context;
    context.place = place;
    context.seed = 3;
    context.lr = 0.1;
    context.segments = segments;
    return context;
}

// --- optimizers on shards --------------------------------------------------------------------------------

// Three parameters of 5, 8 and 4 elements, the second frozen, the third not adapted, then 3 of padding; two
// ranks hold 10 each: the second parameter is split between them.
const std::vector<plan::Segment> kSegments = {
    {0, 0, 5, true, true}, {1, 5, 8, false, true}, {2, 13, 4, true, false}};
constexpr std::int64_t kElements = 20, kPerRank = 10;

struct State {
    Floats param = normals(kElements, "param"), grad = normals(kElements, "grad"),
           m = Floats(kElements, 0.0f), v = Floats(kElements, 0.0f);
    Vector norms = Vector(2 * kSegments.size(), NAN);
    Floats moments = Floats(kSegments.size(), 0.5f);
};

State piece(const State& whole, int place) {
    State part;
    const auto cut = [&](const Floats& x) {
        return Floats(x.begin() + place * kPerRank, x.begin() + (place + 1) * kPerRank);
    };
    part.param = cut(whole.param);
    part.grad = cut(whole.grad);
    part.m = cut(whole.m);
    part.v = cut(whole.v);
    return part;
}

constexpr std::array<double, 5> kAdamScalars = {0.9, 0.999, 1e-8, 0.1};

// One step of `kernel` on a rank's part; if it needs norms first, with the given sums over the ranks.
using Step = void (*)(State& state, std::int64_t held, std::int64_t per_rank,
                      const device::KernelContext& context);

void look_lars(State& s, std::int64_t held, std::int64_t per_rank, const device::KernelContext& context) {
    Call(plan::Kernel::lars_norms, plan::DType::fp32, {held, per_rank})
        .arg(s.norms)
        .arg(s.param)
        .arg(s.grad)
        .run(context);
}
void step_lars(State& s, std::int64_t held, std::int64_t per_rank, const device::KernelContext& context) {
    Call(plan::Kernel::lars, plan::DType::fp32, {held, per_rank}, {0.9, 0.1, 0.02, 1})
        .arg(s.param)
        .arg(s.grad)
        .arg(s.m)
        .arg(s.norms)
        .run(context);
}
void look_lamb(State& s, std::int64_t held, std::int64_t per_rank, const device::KernelContext& context) {
    Call(plan::Kernel::lamb_update, plan::DType::fp32, {held, per_rank}, kAdamScalars)
        .arg(s.norms)
        .arg(s.grad)
        .arg(s.param)
        .arg(s.m)
        .arg(s.v)
        .run(context);
}
void step_lamb(State& s, std::int64_t held, std::int64_t per_rank, const device::KernelContext& context) {
    Call(plan::Kernel::lamb, plan::DType::fp32, {held, per_rank})
        .arg(s.param)
        .arg(s.grad)
        .arg(s.norms)
        .run(context);
}
// At the second step, so that the moments that are there count.
void step_novograd(State& s, std::int64_t held, std::int64_t per_rank, const device::KernelContext& context) {
    device::KernelContext second = context;
    second.step = second.updates = 1;
    Call(plan::Kernel::novograd_moments, plan::DType::fp32, {std::ssize(s.moments)}, {0.75})
        .arg(s.moments)
        .arg(s.norms)
        .run(second);
    Call(plan::Kernel::novograd, plan::DType::fp32, {held, per_rank}, {0.95, 1e-8, 0.1})
        .arg(s.param)
        .arg(s.grad)
        .arg(s.m)
        .arg(s.moments)
        .run(second);
}
void step_sgd(State& s, std::int64_t held, std::int64_t per_rank, const device::KernelContext& context) {
    Call(plan::Kernel::sgd, plan::DType::fp32, {held, per_rank}, {0.9, 0.1, 1})
        .arg(s.param)
        .arg(s.grad)
        .arg(s.m)
        .run(context);
}
template <plan::Kernel kKernel>
void step_adam(State& s, std::int64_t held, std::int64_t per_rank, const device::KernelContext& context) {
    Call(kKernel, plan::DType::fp32, {held, per_rank}, kAdamScalars)
        .arg(s.param)
        .arg(s.grad)
        .arg(s.m)
        .arg(s.v)
        .run(context);
}

struct Optimizer {
    const char* name;
    Step look, step;
};

class ShardedOptimizer : public ::testing::TestWithParam<Optimizer> {};
INSTANTIATE_TEST_SUITE_P(All, ShardedOptimizer,
                         ::testing::Values(Optimizer{"sgd", nullptr, step_sgd},
                                           Optimizer{"adam", nullptr, step_adam<plan::Kernel::adam>},
                                           Optimizer{"adamw", nullptr, step_adam<plan::Kernel::adamw>},
                                           Optimizer{"lars", look_lars, step_lars},
                                           Optimizer{"lamb", look_lamb, step_lamb},
                                           Optimizer{"novograd", look_lars, step_novograd}),
                         [](const auto& chosen) { return std::string(chosen.param.name); });

TEST_P(ShardedOptimizer, ShardByShardHasTheBitsOfTheWhole) {
    const auto [name, look, step] = GetParam();
    State whole;
    State parts[] = {piece(whole, 0), piece(whole, 1)};
    for (int place = 0; place < 2; ++place) {
        if (look) look(parts[place], kPerRank, kPerRank, at_place(place, kSegments));
    }
    if (look) {
        look(whole, kElements, 0, at_place(0, kSegments));
        for (std::size_t i = 0; i < whole.norms.size(); ++i) {
            const double sum = parts[0].norms[i] + parts[1].norms[i];  // the sum that the ranks reduce
            EXPECT_NEAR(sum, whole.norms[i], 1e-12);
            parts[0].norms[i] = parts[1].norms[i] = whole.norms[i];
        }
    }
    step(whole, kElements, 0, at_place(0, kSegments));
    for (int place = 0; place < 2; ++place) {
        step(parts[place], kPerRank, kPerRank, at_place(place, kSegments));
        const State expected = piece(whole, place);
        EXPECT_EQ(parts[place].param, expected.param);
        EXPECT_EQ(parts[place].m, expected.m);
        EXPECT_EQ(parts[place].v, expected.v);
    }
}

TEST_P(ShardedOptimizer, ChangesOnlyTrainedSegments) {
    const auto [name, look, step] = GetParam();
    State after;
    if (look) look(after, kElements, 0, at_place(0, kSegments));
    step(after, kElements, 0, at_place(0, kSegments));
    const State before;
    for (std::int64_t i = 0; i < kElements; ++i) {
        const bool trained = i < 5 || (i >= 13 && i < 17);
        const auto at = static_cast<std::size_t>(i);
        EXPECT_EQ(after.param[at] != before.param[at], trained) << i;
    }
    if (!look) return;
    EXPECT_EQ(after.norms[2], 0.0) << "frozen";
    EXPECT_EQ(after.norms[0], kernels::sum_of_squares(before.param.data(), 5));
}

// The mean of the moment and of the gradient's square, which follows the parameter's.
TEST(NovoGrad, HasAMomentForEachSegment) {
    State state;
    state.norms = {9, 4.5, 9, 0, 9, 2.5};
    step_novograd(state, kElements, 0, at_place(0, kSegments));
    EXPECT_EQ(state.moments, (Floats{1.5f, 0.375f, 1.0f}));  // 3/4 of 1/2, and 1/4 of 4.5, 0 and 2.5
}

// The third segment is not adapted: its rate is 1, so LARS equals SGD there.
TEST(Lars, LeavesTheRateOfASegmentThatIsNotAdapted) {
    State lars, sgd;
    look_lars(lars, kElements, 0, at_place(0, kSegments));
    step_lars(lars, kElements, 0, at_place(0, kSegments));
    step_sgd(sgd, kElements, 0, at_place(0, kSegments));
    EXPECT_TRUE(std::equal(lars.param.begin() + 13, lars.param.begin() + 17, sgd.param.begin() + 13));
    EXPECT_FALSE(std::equal(lars.param.begin(), lars.param.begin() + 5, sgd.param.begin()));
}

// --- initialisation --------------------------------------------------------------------------------------

TEST(Initialize, RanksHoldTheirPartsOfWhatOneRankHolds) {
    // A parameter of 12 elements that starts at element 5 of the sequence.
    Floats whole(kElements, 0.0f);
    Call(plan::Kernel::init_normal, plan::DType::fp32, {77, 5, 12, 0}, {1.0, 2.0})
        .arg(whole)
        .run(at_place(0));
    Floats joined;
    for (int place = 0; place < 2; ++place) {
        Floats part(kPerRank, 0.0f);
        Call(plan::Kernel::init_normal, plan::DType::fp32, {77, 5, 12, kPerRank}, {1.0, 2.0})
            .arg(part)
            .run(at_place(place));
        joined.insert(joined.end(), part.begin(), part.end());
    }
    EXPECT_EQ(joined, whole);
    EXPECT_EQ(std::count(whole.begin(), whole.end(), 0.0f), 8);  // 5 before, 3 after
    EXPECT_EQ(whole[5], 1.0f + 2.0f * kernels::normal(3, 77, 0));
}

// --- copies ----------------------------------------------------------------------------------------------

// 3 ranks; a parameter of 7 elements in pieces of 3 (the last has 1 and two zeros), one of 2 in pieces of 1
// (the last is a zero): a rank's part is 4 elements.
TEST(ChunkCat, PutsThePiecesOfEachRankTogetherAndFillsWithZeros) {
    const std::vector<plan::Segment> pieces = {{0, 0, 3}, {1, 3, 1}};
    Floats a = {1, 2, 3, 4, 5, 6, 7}, b = {10, 20};
    Floats out(12, NAN);
    Call(plan::Kernel::chunk_cat, plan::DType::fp32, {3}).arg(out).arg(a).arg(b).run(at_place(0, pieces));
    EXPECT_EQ(out, (Floats{1, 2, 3, 10, 4, 5, 6, 20, 7, 0, 0, 0}));

    Floats a2(7, NAN), b2(2, NAN);
    Call(plan::Kernel::chunk_split, plan::DType::fp32, {3}).arg(out).arg(a2).arg(b2).run(at_place(0, pieces));
    EXPECT_EQ(a2, a);
    EXPECT_EQ(b2, b);
}

TEST(ChunkCat, CountsElementsOfItsType) {
    const std::vector<plan::Segment> pieces = {{0, 0, 2}};
    auto a = as<Bf16>({1, 2, 3}), out = unwritten<Bf16>(4), back = unwritten<Bf16>(3);
    Call(plan::Kernel::chunk_cat, plan::DType::bf16, {2}).arg(out).arg(a).run(at_place(0, pieces));
    EXPECT_EQ(in_double(out), (Vector{1, 2, 3, 0}));
    Call(plan::Kernel::chunk_split, plan::DType::bf16, {2}).arg(out).arg(back).run(at_place(0, pieces));
    EXPECT_EQ(back, a);
}

// The gradients have one type and the buffer the other.
TEST(ChunkCat, ConvertsThePiecesToItsType) {
    constexpr std::int64_t kFromFp32 = 1 + static_cast<std::int64_t>(plan::DType::fp32),
                           kFromBf16 = 1 + static_cast<std::int64_t>(plan::DType::bf16);
    const std::vector<plan::Segment> pieces = {{0, 0, 2}, {1, 2, 1}};
    auto a = as<Bf16>({1, 2, 3}), b = as<Bf16>({0.5f});
    Floats wide(6, NAN);
    Call(plan::Kernel::chunk_cat, plan::DType::fp32, {2, kFromBf16})
        .arg(wide)
        .arg(a)
        .arg(b)
        .run(at_place(0, pieces));
    EXPECT_EQ(wide, (Floats{1, 2, 0.5f, 3, 0, 0}));
    Floats c = {257, 2, 3}, d = {0.5f};  // bf16 cannot represent 257: 256 is the even neighbour
    auto narrow = unwritten<Bf16>(6);
    Call(plan::Kernel::chunk_cat, plan::DType::bf16, {2, kFromFp32})
        .arg(narrow)
        .arg(c)
        .arg(d)
        .run(at_place(0, pieces));
    EXPECT_EQ(in_double(narrow), (Vector{256, 2, 0.5, 3, 0, 0}));
}

// 65,520 is beyond the largest number of fp16.
TEST(ChunkCat, ConvertsToFp16AndFromIt) {
    const std::vector<plan::Segment> pieces = {{0, 0, 2}};
    Floats wide = {1 + 0x1p-10f + 0x1p-11f, 65520}, back(2, NAN);
    auto narrow = unwritten<Fp16>(2);
    Call(plan::Kernel::chunk_cat, plan::DType::fp16, {1, input_dim(plan::DType::fp32)})
        .arg(narrow)
        .arg(wide)
        .run(at_place(0, pieces));
    Call(plan::Kernel::chunk_cat, plan::DType::fp32, {1, input_dim(plan::DType::fp16)})
        .arg(back)
        .arg(narrow)
        .run(at_place(0, pieces));
    EXPECT_EQ(back, (Floats{1 + 0x1p-9f, HUGE_VALF}));
}

TEST(Cast, ToFp16AndBack) {
    Floats wide = {0.1f, -3}, back(2, NAN);
    auto narrow = unwritten<Fp16>(2);
    Call(plan::Kernel::cast_from_fp32, plan::DType::fp16, {2}).arg(narrow).arg(wide).run();
    Call(plan::Kernel::cast_to_fp32, plan::DType::fp16, {2}).arg(back).arg(narrow).run();
    EXPECT_EQ(back, (Floats{0.0999755859375f, -3}));
}

TEST(Unscale, DividesByTheScaleAndFindsWhatIsNotFinite) {
    device::KernelContext context = at_place(0);
    context.loss_scale = 1024;
    Floats gradient = {2048, -1}, found = {0};
    Call(plan::Kernel::unscale, plan::DType::fp32, {2}).arg(gradient).arg(found).run(context);
    EXPECT_EQ(gradient, (Floats{2, -0x1p-10f}));
    EXPECT_EQ(found, Floats{0});
    for (const float bad : {HUGE_VALF, NAN}) {
        found = {0};
        gradient = {1, bad};
        Call(plan::Kernel::unscale, plan::DType::fp32, {2}).arg(gradient).arg(found).run(context);
        EXPECT_EQ(found, Floats{1});
        gradient = {1, 1};  // a finite gradient after it changes nothing
        Call(plan::Kernel::unscale, plan::DType::fp32, {2}).arg(gradient).arg(found).run(context);
        EXPECT_EQ(found, Floats{1});
    }
}

TEST(LossScale, MultipliesTheGradientsOfTheLosses) {
    device::KernelContext context = at_place(0);
    context.loss_scale = 8;
    Floats y = {3, 1}, target = {1, 1}, dy(2, NAN);
    Call(plan::Kernel::mse_backward, plan::DType::fp32, {2}).arg(dy).arg(y).arg(target).run(context);
    EXPECT_EQ(dy, (Floats{16, 0}));
    Floats probabilities = {0.25f, 0.75f};
    std::vector<std::int32_t> targets = {1};
    Call(plan::Kernel::cross_entropy_backward, plan::DType::fp32, {1, 2})
        .arg(dy)
        .arg(probabilities)
        .arg(targets)
        .run(context);
    EXPECT_EQ(dy, (Floats{2, -2}));
}

// Gradients of one type are added to a sum of the other, which is rounded once: 256 + 1.001 is nearer to 258
// than to 256; with 1.001 in bf16 it would be a tie, which goes to the even 256.
TEST(Accumulate, AddsTheOtherTypeAsItIs) {
    auto narrow = as<Bf16>({0.0078125f, 2});  // 2^-7
    Floats wide = {1.00001f, 0.1f};
    Call(plan::Kernel::accumulate, plan::DType::fp32, {2, input_dim(plan::DType::bf16)})
        .arg(wide)
        .arg(narrow)
        .run();
    EXPECT_EQ(wide, (Floats{1.00001f + 0.0078125f, 2.1f}));
    narrow = as<Bf16>({256, 2});
    wide = {1.001f, 1};
    Call(plan::Kernel::accumulate, plan::DType::bf16, {2, input_dim(plan::DType::fp32)})
        .arg(narrow)
        .arg(wide)
        .run();
    EXPECT_EQ(in_double(narrow), (Vector{258, 3}));
}

// An earlier version counted 2^31 rows as a negative number, and computed nothing.
TEST(Kernels, RefuseMoreRowsThanTheyCanCount) {
    constexpr std::int64_t kRows = std::int64_t{1} << 31;
    Floats none;
    const auto refused = [&](plan::Kernel kernel, std::array<std::int64_t, 6> dims) {
        try {
            Call(kernel, plan::DType::fp32, dims).arg(none).arg(none).arg(none).arg(none).run();
            return std::string("nothing");
        } catch (const std::length_error& error) {
            return std::string(error.what());
        }
    };
    const std::string sentence =
        "model.context x data.batch is too large: a kernel has 2147483648 rows or columns, of at most "
        "2147483647; make data.batch smaller and train.accumulation larger";
    EXPECT_EQ(refused(plan::Kernel::linear_forward, {kRows, 1, 1}), sentence);
    EXPECT_EQ(refused(plan::Kernel::embedding_backward, {kRows, 1, 1}), sentence);
    EXPECT_EQ(refused(plan::Kernel::position_forward, {1 << 16, 1 << 15, 1}), sentence);
    EXPECT_EQ(refused(plan::Kernel::position_backward, {1 << 16, 1 << 15, 1, 1 << 15}), sentence);
}

TEST(Cat, IsUndoneBySplit) {
    Floats a = {1, 2}, b = {3}, whole(3, NAN), a2(2, NAN), b2(1, NAN);
    Call(plan::Kernel::cat, plan::DType::fp32, {}).arg(whole).arg(a).arg(b).run();
    EXPECT_EQ(whole, (Floats{1, 2, 3}));
    Call(plan::Kernel::split, plan::DType::fp32, {}).arg(whole).arg(a2).arg(b2).run();
    EXPECT_EQ(a2, a);
    EXPECT_EQ(b2, b);
}

// --- dropout ---------------------------------------------------------------------------------------------

Floats dropout_mask(int rank, int ranks, std::int64_t micro_step,
                    plan::Kernel kernel = plan::Kernel::dropout_forward) {
    device::KernelContext context = at_place(0);
    context.data_rank = rank;
    context.data_ranks = ranks;
    context.micro_step = micro_step;
    Floats ones(100, 1.0f), y(100, NAN);
    Call(kernel, plan::DType::fp32, {100, 42}, {0.5}).arg(y).arg(ones).run(context);
    return y;
}

// Rank 1 of 2 in micro-batch 3 does what a single rank does in its micro-batch 3 * 2 + 1.
TEST(DropoutOfAStep, DependsOnTheMicroBatchNotOnTheRank) {
    EXPECT_EQ(dropout_mask(1, 2, 3), dropout_mask(0, 1, 7));
    EXPECT_NE(dropout_mask(0, 2, 3), dropout_mask(1, 2, 3));
    EXPECT_EQ(dropout_mask(1, 2, 3, plan::Kernel::dropout_backward), dropout_mask(1, 2, 3));
}

// --- values that are not finite --------------------------------------------------------------------------

template <class T>
void expect_first_module_is_kept(plan::DType dtype) {
    auto x = as<T>(normals(40, "x")), y = unwritten<T>(40);
    std::vector<std::int32_t> flag = {-1};
    Call relu(plan::Kernel::relu_forward, dtype, {40});
    relu.arg(y).arg(x).checked(flag);
    relu.run();
    EXPECT_EQ(flag[0], -1);
    x[33] = as<T>({NAN})[0];
    relu.run();
    EXPECT_EQ(flag[0], 5);
    flag[0] = 2;  // another module set it first
    relu.run();
    EXPECT_EQ(flag[0], 2);
}

TEST(CheckedOutput, NamesTheFirstModuleWithAValueThatIsNotFinite) {
    expect_first_module_is_kept<float>(plan::DType::fp32);
    expect_first_module_is_kept<Bf16>(plan::DType::bf16);
    expect_first_module_is_kept<Fp16>(plan::DType::fp16);
}

// The flag comes after the args, so a linear layer without a bias must not take it for one.
TEST(CheckedOutput, IsNotMistakenForABias) {
    Floats y(1, NAN), x = {2.0f}, w = {3.0f};
    std::vector<std::int32_t> flag = {-1};
    Call(plan::Kernel::linear_forward, plan::DType::fp32, {1, 1, 1}).arg(y).arg(x).arg(w).checked(flag).run();
    EXPECT_EQ(y[0], 6.0f);
    EXPECT_EQ(flag[0], -1);
    Call(plan::Kernel::linear_relu_forward, plan::DType::fp32, {1, 1, 1})
        .arg(y)
        .arg(x)
        .arg(w)
        .checked(flag)
        .run();
    EXPECT_EQ(y[0], 6.0f);
    Floats sum(1, NAN);
    Call(plan::Kernel::linear_gelu_forward, plan::DType::fp32, {1, 1, 1})
        .arg(y)
        .arg(sum)
        .arg(x)
        .arg(w)
        .checked(flag)
        .run();
    EXPECT_EQ(sum[0], 6.0f);
    EXPECT_EQ(flag[0], -1);
    x[0] = NAN;  // ReLU and GELU keep it
    Call(plan::Kernel::linear_relu_forward, plan::DType::fp32, {1, 1, 1})
        .arg(y)
        .arg(x)
        .arg(w)
        .checked(flag)
        .run();
    EXPECT_EQ(flag[0], 5);
}

// --- gradients that nobody wants -------------------------------------------------------------------------

TEST(NormBackward, LeavesOutWhatHasNoBuffer) {
    Floats dy = normals(12, "dy"), x = normals(12, "x"), gamma = normals(4, "gamma"), rstd(3, 1.0f);
    Floats dx(12, NAN), dgamma(4, NAN), both_dx(12, NAN), both_dgamma(4, NAN);
    const auto norm = [&] { return Call(plan::Kernel::rms_norm_backward, plan::DType::fp32, {3, 4}); };
    norm().arg(both_dx).arg(both_dgamma).arg(dy).arg(x).arg(gamma).arg(rstd).run();
    norm().nothing().arg(dgamma).arg(dy).arg(x).arg(gamma).arg(rstd).run();
    norm().arg(dx).nothing().arg(dy).arg(x).arg(gamma).arg(rstd).run();
    EXPECT_EQ(dx, both_dx);
    EXPECT_EQ(dgamma, both_dgamma);
}

TEST(RunKernel, RefusesAnUnknownKernel) {
    Floats y(1);
    EXPECT_THROW(Call(static_cast<plan::Kernel>(250), plan::DType::fp32, {}).arg(y).run(), std::logic_error);
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::executor
