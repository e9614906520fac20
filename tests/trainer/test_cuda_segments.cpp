// Kernels that work on parts of a slot's sequence, or move pieces between buffers, on a CUDA device: the
// CPU's bits (norms except for the order of their sums).
#include "tests/trainer/cuda_testing.h"

namespace shardscope::trainer::cuda {
namespace TEST_FILE {

using namespace cuda_testing;
using kernels::Bf16;

device::KernelContext at_place(int place, std::span<const plan::Segment> segments = {}) {
    device::KernelContext context;
    context.place = place;
    context.seed = 3;
    context.step = 6;
    context.lr = 0.1;
    context.segments = segments;
    return context;
}

// --- initial values ----------------------------------------------------------------------------------------

class CudaInitialize : public CudaTest {};

TEST_F(CudaInitialize, MakesTheCpusBits) {
    for (const plan::Kernel kernel :
         {plan::Kernel::init_normal, plan::Kernel::init_uniform, plan::Kernel::init_constant}) {
        for (const std::size_t n : kSizes) {
            const auto elements = static_cast<std::int64_t>(n);
            Comparison whole(kernel, plan::DType::fp32, {77, 0, elements, 0}, {0.5, 2.0});
            whole.arg(Floats(n, 0.0f)).run(at_place(0)).expect_same<float>(0);
        }
    }
}

// A parameter of 120 elements that starts at element 5 of the sequence; ranks hold 50 each, so each begins in
// the middle of four that are generated together.
TEST_F(CudaInitialize, RanksHoldTheirParts) {
    for (const plan::Kernel kernel :
         {plan::Kernel::init_normal, plan::Kernel::init_uniform, plan::Kernel::init_constant}) {
        for (int place = 0; place < 4; ++place) {
            Comparison part(kernel, plan::DType::fp32, {77, 5, 120, 50}, {0.5, 2.0});
            part.arg(Floats(50, 0.0f)).run(at_place(place)).expect_same<float>(0);
        }
    }
}

// --- optimizers --------------------------------------------------------------------------------------------

// What one slot holds, its segments, and its part of the sequence.
struct Slot {
    const char* name;
    std::vector<plan::Segment> segments;
    std::int64_t held, per_rank;
    int place;
};

// `count` segments of `size` elements, one after the other; every third is frozen, every fifth not adapted.
std::vector<plan::Segment> many(int count, std::int64_t size) {
    std::vector<plan::Segment> made;
    for (int i = 0; i < count; ++i) made.push_back({i, i * size, size, i % 3 != 1, i % 5 != 2});
    return made;
}

const std::vector<plan::Segment> kThree = {
    {0, 0, 5, true, true}, {1, 5, 8, false, true}, {2, 13, 4, true, false}};

std::vector<Slot> slots() {
    return {{"whole", kThree, 20, 0, 0},
            {"first half", kThree, 10, 10, 0},
            {"second half", kThree, 10, 10, 1},
            {"nothing but padding", kThree, 10, 10, 5},
            {"one of 13000", {{0, 0, 13000, true, true}}, 13001, 0, 0},
            {"across chunks", {{0, 3, 4090, true, true}, {1, 4093, 9000, true, true}}, 13100, 0, 0},
            {"a rank's part across chunks", {{0, 0, 30000, true, true}}, 10003, 10003, 1},
            {"40 segments", many(40, 37), 40 * 37, 0, 0},
            {"1510 segments", many(1510, 3), 1510 * 3, 0, 0}};
}

class CudaOptimizer : public CudaTest {
  protected:
    // The comparison with the slot's arrays: param, grad, then states of the sizes of second moments.
    template <class Check>
    void for_slots(Check check) {
        for (const Slot& slot : slots()) {
            for (const std::size_t shift : {0, 1}) {
                if (shift > 0 && slot.segments.size() > 1000) continue;  // slow if CUDA is simulated
                SCOPED_TRACE(std::string(slot.name) + ", shifted by " + std::to_string(shift));
                check(slot, shift, at_place(slot.place, slot.segments));
            }
        }
    }
    static Floats param(const Slot& slot) { return normals(static_cast<std::size_t>(slot.held), "param"); }
    static Floats grad(const Slot& slot) { return normals(static_cast<std::size_t>(slot.held), "grad"); }
    static Floats first(const Slot& slot) { return normals(static_cast<std::size_t>(slot.held), "m"); }
    static Floats second(const Slot& slot) {
        Floats made = normals(static_cast<std::size_t>(slot.held), "v");
        for (float& value : made) value *= value;
        return made;
    }
    // The squares of norms as ranks have summed them; segment 3's are 0.
    static Vector norms(const Slot& slot) {
        Vector made(2 * slot.segments.size());
        for (std::size_t i = 0; i < made.size(); ++i)
            made[i] = i / 2 == 3 ? 0.0 : 1.0 + static_cast<double>(i % 7);
        return made;
    }
};

constexpr std::array<double, 5> kAdamScalars = {0.9, 0.999, 1e-8, 0.1};

TEST_F(CudaOptimizer, Sgd) {
    for_slots([](const Slot& slot, std::size_t shift, const device::KernelContext& context) {
        for (const double nesterov : {0.0, 1.0}) {
            Comparison step(plan::Kernel::sgd, plan::DType::fp32, {slot.held, slot.per_rank},
                            {0.9, 0.1, nesterov});
            step.args(param(slot), grad(slot), first(slot)).shifted(shift).run(context);
            for (const std::size_t arg : {0, 1, 2}) step.expect_same<float>(arg);
        }
        Comparison plain(plan::Kernel::sgd, plan::DType::fp32, {slot.held, slot.per_rank}, {0.0, 0.1, 0.0});
        plain.args(param(slot), grad(slot)).shifted(shift).run(context);
        plain.expect_same<float>(0);
    });
}

TEST_F(CudaOptimizer, Adam) {
    for_slots([](const Slot& slot, std::size_t shift, const device::KernelContext& context) {
        for (const plan::Kernel kernel : {plan::Kernel::adam, plan::Kernel::adamw}) {
            Comparison step(kernel, plan::DType::fp32, {slot.held, slot.per_rank}, kAdamScalars);
            step.args(param(slot), grad(slot), first(slot), second(slot)).shifted(shift).run(context);
            for (const std::size_t arg : {0, 1, 2, 3}) step.expect_same<float>(arg);
        }
    });
}

TEST_F(CudaOptimizer, Lars) {
    for_slots([](const Slot& slot, std::size_t shift, const device::KernelContext& context) {
        Comparison look(plan::Kernel::lars_norms, plan::DType::fp32, {slot.held, slot.per_rank});
        look.args(Vector(2 * slot.segments.size(), NAN), param(slot), grad(slot)).shifted(shift).run(context);
        look.expect_near<double>(0, 1e-13);
        Comparison step(plan::Kernel::lars, plan::DType::fp32, {slot.held, slot.per_rank},
                        {0.9, 0.1, 0.02, 1.0});
        step.args(param(slot), grad(slot), first(slot), norms(slot)).shifted(shift).run(context);
        step.expect_same<float>(0);
        step.expect_same<float>(2);
        Comparison plain(plan::Kernel::lars, plan::DType::fp32, {slot.held, slot.per_rank},
                         {0.0, 0.1, 0.02, 0.0});
        plain.args(param(slot), grad(slot), norms(slot)).shifted(shift).run(context).expect_same<float>(0);
    });
}

TEST_F(CudaOptimizer, Lamb) {
    for_slots([](const Slot& slot, std::size_t shift, const device::KernelContext& context) {
        Comparison look(plan::Kernel::lamb_update, plan::DType::fp32, {slot.held, slot.per_rank},
                        kAdamScalars);
        look.args(Vector(2 * slot.segments.size(), NAN), grad(slot), param(slot), first(slot));
        look.arg(second(slot)).shifted(shift).run(context);
        look.expect_near<double>(0, 1e-13);
        for (const std::size_t arg : {1, 2, 3, 4}) look.expect_same<float>(arg);
        Comparison step(plan::Kernel::lamb, plan::DType::fp32, {slot.held, slot.per_rank});
        step.args(param(slot), grad(slot), norms(slot)).shifted(shift).run(context).expect_same<float>(0);
    });
}

TEST_F(CudaOptimizer, NovoGrad) {
    for_slots([](const Slot& slot, std::size_t shift, const device::KernelContext& context) {
        for (const std::int64_t steps_before : {0, 3}) {
            device::KernelContext at = context;
            at.step = at.updates = steps_before;
            const auto count = static_cast<std::int64_t>(slot.segments.size());
            const Floats moments(slot.segments.size(), 0.5f);
            Comparison look(plan::Kernel::novograd_moments, plan::DType::fp32, {count}, {0.98});
            look.args(moments, norms(slot)).run(at);
            look.expect_same<float>(0);
            Comparison step(plan::Kernel::novograd, plan::DType::fp32, {slot.held, slot.per_rank},
                            {0.95, 1e-8, 0.1});
            step.args(param(slot), grad(slot), first(slot)).shifted(shift);
            step.arg(moments).run(at);
            step.expect_same<float>(0);
            step.expect_same<float>(2);
        }
    });
}

// --- copies ------------------------------------------------------------------------------------------------

class CudaCopies : public CudaTest {};

std::vector<std::uint8_t> bytes(std::size_t n, std::uint8_t first) {
    std::vector<std::uint8_t> made(n);
    for (std::size_t i = 0; i < n; ++i) made[i] = static_cast<std::uint8_t>(first + i * 7);
    return made;
}

// Pieces of odd sizes, larger than a block's chunk, and empty; in launches of few and of many pieces.
TEST_F(CudaCopies, CatAndSplit) {
    const std::vector<std::vector<std::size_t>> cases = {
        {1}, {16, 32, 64}, {40000, 1, 7, 33, 4096}, {2, 0, 6}, std::vector<std::size_t>(700, 5)};
    for (const std::vector<std::size_t>& sizes : cases) {
        for (const std::size_t shift : {0, 1, 2, 4}) {
            SCOPED_TRACE(std::to_string(sizes.size()) + " pieces, shifted by " + std::to_string(shift));
            std::size_t total = 0;
            for (const std::size_t size : sizes) total += size;
            Comparison cat(plan::Kernel::cat, plan::DType::fp32, {}),
                split(plan::Kernel::split, plan::DType::fp32, {});
            cat.arg(bytes(total, 0));
            split.arg(bytes(total, 3));
            for (std::size_t i = 0; i < sizes.size(); ++i) {
                cat.arg(bytes(sizes[i], static_cast<std::uint8_t>(i)));
                split.arg(bytes(sizes[i], 0));
            }
            cat.shifted(shift).run().expect_same<std::uint8_t>(0);
            split.shifted(shift).run();
            for (std::size_t i = 0; i <= sizes.size(); ++i) split.expect_same<std::uint8_t>(i);
        }
    }
}

template <class T>
class CudaChunks : public TypedCudaTest<T> {};
TYPED_TEST_SUITE(CudaChunks, Elements, ElementNames);

// Buffers of `sizes` elements, cut for `ranks`: pieces of size / ranks rounded up, the last ones short or
// empty.
TYPED_TEST(CudaChunks, CatAndSplitByRank) {
    using T = TypeParam;
    struct Case {
        std::int64_t ranks;
        std::vector<std::int64_t> sizes;
    };
    for (const Case& c : {Case{1, {5}}, Case{3, {7, 2}}, Case{4, {1}}, Case{8, {40001, 100, 64, 9}},
                          Case{2, std::vector<std::int64_t>(30, 11)}}) {
        for (const std::size_t shift : {0, 1}) {
            SCOPED_TRACE(std::to_string(c.ranks) + " ranks, shifted by " + std::to_string(shift));
            std::vector<plan::Segment> pieces;
            std::int64_t part = 0;
            for (const std::int64_t size : c.sizes) {
                const std::int64_t piece = (size + c.ranks - 1) / c.ranks;
                pieces.push_back({static_cast<std::int32_t>(pieces.size()), part, piece});
                part += piece;
            }
            Comparison cat(plan::Kernel::chunk_cat, kDType<T>, {c.ranks}),
                split(plan::Kernel::chunk_split, kDType<T>, {c.ranks});
            cat.arg(unwritten<T>(static_cast<std::size_t>(c.ranks * part)));
            split.arg(as<T>(normals(static_cast<std::size_t>(c.ranks * part), "whole")));
            for (const std::int64_t size : c.sizes) {
                cat.arg(as<T>(normals(static_cast<std::size_t>(size), std::to_string(size))));
                split.arg(unwritten<T>(static_cast<std::size_t>(size)));
            }
            cat.shifted(shift).run(at_place(0, pieces)).template expect_same<T>(0);
            split.shifted(shift).run(at_place(0, pieces));
            for (std::size_t i = 1; i <= c.sizes.size(); ++i) split.template expect_same<T>(i);
        }
    }
}

TEST_F(CudaCopies, ConvertThePiecesByRank) {
    const std::vector<std::int64_t> sizes = {40001, 100, 9};
    constexpr std::int64_t kRanks = 4;
    std::vector<plan::Segment> pieces;
    std::int64_t part = 0;
    for (const std::int64_t size : sizes) {
        const std::int64_t piece = (size + kRanks - 1) / kRanks;
        pieces.push_back({static_cast<std::int32_t>(pieces.size()), part, piece});
        part += piece;
    }
    const auto elements = static_cast<std::size_t>(kRanks * part);
    Comparison wide(plan::Kernel::chunk_cat, plan::DType::fp32,
                    {kRanks, 1 + static_cast<std::int64_t>(plan::DType::bf16)});
    Comparison narrow(plan::Kernel::chunk_cat, plan::DType::bf16,
                      {kRanks, 1 + static_cast<std::int64_t>(plan::DType::fp32)});
    wide.arg(unwritten<float>(elements));
    narrow.arg(unwritten<Bf16>(elements));
    for (const std::int64_t size : sizes) {
        const Floats values = normals(static_cast<std::size_t>(size), std::to_string(size));
        wide.arg(as<Bf16>(values));
        narrow.arg(values);
    }
    wide.run(at_place(0, pieces)).expect_same<float>(0);
    narrow.run(at_place(0, pieces)).expect_same<Bf16>(0);
}

TEST_F(CudaCopies, RefuseAPlanWithoutThePlacesOfThePieces) {
    Comparison cat(plan::Kernel::chunk_cat, plan::DType::fp32, {1});
    cat.args(Floats(1), Floats(1));
    EXPECT_THROW(cat.run(), std::logic_error);
}

// --- orthonormal vectors -----------------------------------------------------------------------------------

class CudaOrthogonalize : public CudaTest {};

// Matrices of 3 vectors of 70 and of 5000 numbers, one of zeros among those of the first.
TEST_F(CudaOrthogonalize, MakesTheCpusVectors) {
    const std::vector<plan::Segment> segments = {{0, 0, 210}, {1, 215, 15000}};
    for (const std::int64_t by_rows : {0, 1}) {
        for (const double epsilon : {0.0, 0.25}) {
            Floats matrices = normals(15215, "matrices");
            for (int i = 0; i < 70; ++i)
                matrices[static_cast<std::size_t>(by_rows != 0 ? 70 + i : 3 * i + 1)] = 0;
            Comparison both(plan::Kernel::orthogonalize, plan::DType::fp32, {3, by_rows}, {epsilon});
            both.arg(matrices).run(at_place(0, segments)).expect_near<float>(0);
        }
    }
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::cuda
