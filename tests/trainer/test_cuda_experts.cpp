// The kernels of a mixture of experts on a CUDA device, compared with the CPU's.
#include <cstdint>
#include <vector>

#include "tests/trainer/cuda_testing.h"

namespace shardscope::trainer::cuda {
namespace TEST_FILE {

using namespace cuda_testing;
using testing::Tokens;
using testing::tokens;

class CudaExperts : public CudaTest {};
template <class T>
class CudaExpertRows : public TypedCudaTest<T> {};
TYPED_TEST_SUITE(CudaExpertRows, Elements, ElementNames);

constexpr int kTokens = 37, kExperts = 6, kChosen = 2, kChoices = kTokens * kChosen;

TEST_F(CudaExperts, AreChosenAndRouted) {
    const Floats logits = normals(kTokens * kExperts, "logits");
    Comparison chosen(plan::Kernel::choose_experts, plan::DType::fp32, {kTokens, kExperts, kChosen});
    chosen.args(unwritten<float>(kChoices), Tokens(kChoices, 9), unwritten<float>(kTokens * kExperts),
                logits);
    chosen.run();
    chosen.expect_near<float>(0);
    chosen.expect_same<std::int32_t>(1);
    chosen.expect_near<float>(2);
    for (const bool balances : {false, true}) {
        Comparison slopes(plan::Kernel::choose_experts_backward, plan::DType::fp32,
                          {kTokens, kExperts, kChosen}, {0.25});
        slopes.args(unwritten<float>(kTokens * kExperts), normals(kChoices, "dweights"),
                    chosen.cpu<std::int32_t>(1), chosen.cpu<float>(2));
        balances ? slopes.arg(Floats{3, 1, 4, 1, 5, 9}) : slopes.nothing();
        slopes.run().expect_near<float>(0);
    }
    for (const std::int64_t capacity : {0, 5}) {
        Comparison routed(plan::Kernel::route, plan::DType::fp32, {kChoices, kExperts, capacity});
        routed.args(Tokens(kChoices, 9), Tokens(kExperts, 9), unwritten<float>(kExperts),
                    chosen.cpu<std::int32_t>(1));
        routed.run();
        routed.expect_same<std::int32_t>(0);
        routed.expect_same<std::int32_t>(1);
        routed.expect_same<float>(2);
    }
}

// Every choice has a row but the fourth and the last.
Tokens some_places() {
    Tokens places(kChoices);
    for (int c = 0; c < kChoices; ++c) places[static_cast<std::size_t>(c)] = c * 5 % kChoices;
    places[3] = places[kChoices - 1] = -1;
    return places;
}

TYPED_TEST(CudaExpertRows, GoThereAndBack) {
    using T = TypeParam;
    for (const int width : {1, 20, 300}) {
        const auto n = static_cast<std::size_t>(width);
        Comparison there(plan::Kernel::scatter_rows, kDType<T>, {kChoices, kChosen, width});
        there.arg(as<T>(Floats(kChoices * n, 9))).nothing().arg(as<T>(normals(kTokens * n, "x")));
        there.nothing().nothing().arg(some_places()).run().template expect_same<T>(0);
        Comparison slopes(plan::Kernel::scatter_rows, kDType<T>, {kChoices, kChosen, width});
        slopes.args(as<T>(Floats(kChoices * n, 9)), unwritten<float>(kChoices),
                    as<T>(normals(kTokens * n, "dy")), as<T>(normals(kChoices * n, "kept")),
                    normals(kChoices, "weights"), some_places());
        slopes.run().template expect_same<T>(0);
        slopes.template expect_near<float>(1);
        Comparison back(plan::Kernel::gather_rows, kDType<T>, {kChoices, kChosen, width});
        back.args(unwritten<T>(kTokens * n), as<T>(normals(kChoices * n, "rows")),
                  normals(kChoices, "weights"), some_places());
        back.run().template expect_near<T>(0);
    }
}

// Groups of two experts; the last rows of the buffers have no group.
TYPED_TEST(CudaExpertRows, AreMultiplied) {
    using T = TypeParam;
    const Tokens counts = {17, 0, 5, 33};
    constexpr std::int64_t kRows = 60, kIn = 37, kOut = 18;
    const std::array<std::int64_t, 6> dims = {kRows, kIn, kOut, 2, 4};
    const std::vector<T> x = as<T>(normals(kRows * kIn, "x")), dy = as<T>(normals(kRows * kOut, "dy")),
                         w = as<T>(normals(2 * kIn * kOut, "w"));
    const auto check = [&](plan::Kernel kernel, std::size_t n, const std::vector<T>& a,
                           const std::vector<T>& b) {
        Comparison product(kernel, kDType<T>, dims);
        product.args(as<T>(Floats(n, 9)), a, b, counts).run();
        product.template expect_near<T>(0);
    };
    check(plan::Kernel::grouped_linear_forward, kRows * kOut, x, w);
    check(plan::Kernel::grouped_linear_backward_input, kRows * kIn, dy, w);
    check(plan::Kernel::grouped_linear_backward_weight, 2 * kIn * kOut, dy, x);
}

// What follows the rows that exist is left alone.
TYPED_TEST(CudaExpertRows, AreActivatedIfTheyExist) {
    using T = TypeParam;
    const Tokens counts = {5, 0, 4};
    constexpr std::int64_t kRows = 12, kFeatures = 50, kAll = kRows * kFeatures;
    const std::vector<T> x = as<T>(normals(kAll, "x")), up = as<T>(normals(kAll, "up"));
    Comparison gelu(plan::Kernel::gelu_forward, kDType<T>, {kAll, kFeatures});
    gelu.args(as<T>(Floats(kAll, 9)), x, counts).run().template expect_near<T>(0);
    EXPECT_EQ(as<T>(Floats(1, 9))[0], gelu.template cuda<T>(0).back());
    Comparison gate(plan::Kernel::silu_mul_forward, kDType<T>, {kAll, kFeatures});
    gate.args(as<T>(Floats(kAll, 9)), x, up, counts).run().template expect_near<T>(0);
    Comparison slopes(plan::Kernel::silu_mul_backward, kDType<T>, {kAll, kFeatures});
    slopes.args(as<T>(Floats(kAll, 9)), as<T>(Floats(kAll, 9)), as<T>(normals(kAll, "dy")), x, up, counts)
        .run();
    slopes.template expect_near<T>(0);
    slopes.template expect_near<T>(1);
    EXPECT_EQ(as<T>(Floats(1, 9))[0], slopes.template cuda<T>(1).back());
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::cuda
