// Losses and reductions on a CUDA device compared with the CPU's.
#include "tests/trainer/cuda_testing.h"

namespace shardscope::trainer::cuda {
namespace TEST_FILE {

using namespace cuda_testing;
using testing::tokens;

class CudaLoss : public CudaTest {};

// 5000 classes are more than one round of a block of 1024 threads.
struct Shape {
    std::size_t rows;
    int classes;
};
constexpr Shape kShapes[] = {{1, 1}, {3, 2}, {7, 31}, {5, 33}, {40, 1000}, {2, 4097}, {3, 5000}};

Comparison cross_entropy(const Shape& shape, const Floats& logits) {
    const std::size_t n = shape.rows * static_cast<std::size_t>(shape.classes);
    Comparison loss(plan::Kernel::cross_entropy_forward, plan::DType::fp32,
                    {static_cast<std::int64_t>(shape.rows), shape.classes});
    loss.args(Vector{NAN}, unwritten<float>(n), logits, tokens(shape.rows, shape.classes, "targets"));
    return loss;
}

// Logits of 30: sums of their exponentials would lose all but the largest few.
TEST_F(CudaLoss, CrossEntropyForward) {
    for (const Shape& shape : kShapes) {
        for (const std::size_t shift : {0, 1}) {
            SCOPED_TRACE(std::to_string(shape.rows) + " x " + std::to_string(shape.classes));
            Floats logits = normals(shape.rows * static_cast<std::size_t>(shape.classes), "logits");
            for (float& value : logits) value *= 30.0f;
            Comparison loss = cross_entropy(shape, logits);
            loss.shifted(shift).run();
            loss.expect_near<double>(0, 1e-6);
            loss.expect_near<float>(1);
        }
    }
}

// Equal logits: log(classes), whatever their size.
TEST_F(CudaLoss, CrossEntropyOfEqualLogits) {
    for (const float value : {0.0f, 3e4f, -3e4f}) {
        Comparison loss = cross_entropy({3, 1000}, Floats(3000, value));
        loss.run();
        EXPECT_NEAR(loss.cuda<double>(0)[0], std::log(1000.0), 1e-5);
        EXPECT_NEAR(loss.cuda<float>(1)[0], 1e-3, 1e-8);
    }
}

// A class that is impossible has probability 0; a NaN makes its row's loss NaN.
TEST_F(CudaLoss, CrossEntropyOfWhatIsNotFinite) {
    Floats logits = {0.0f, -INFINITY, 0.0f, 0.0f};
    Comparison impossible(plan::Kernel::cross_entropy_forward, plan::DType::fp32, {1, 4});
    impossible.args(Vector{NAN}, unwritten<float>(4), logits, testing::Tokens{0}).run();
    EXPECT_NEAR(impossible.cuda<double>(0)[0], std::log(3.0), 1e-6);
    EXPECT_EQ(impossible.cuda<float>(1)[1], 0.0f);
    logits[2] = NAN;
    Comparison nan(plan::Kernel::cross_entropy_forward, plan::DType::fp32, {1, 4});
    nan.args(Vector{0.0}, unwritten<float>(4), logits, testing::Tokens{0}).run();
    EXPECT_TRUE(std::isnan(nan.cuda<double>(0)[0]));
}

TEST_F(CudaLoss, CrossEntropyInPlace) {
    Comparison loss(plan::Kernel::cross_entropy_forward, plan::DType::fp32, {6, 700});
    loss.args(Vector{NAN}, normals(6 * 700, "logits")).again(1).arg(tokens(6, 700, "targets")).run();
    loss.expect_near<double>(0, 1e-6);
    loss.expect_near<float>(1);
}

TEST_F(CudaLoss, CrossEntropyBackward) {
    for (const Shape& shape : kShapes) {
        const std::size_t n = shape.rows * static_cast<std::size_t>(shape.classes);
        Comparison slopes(plan::Kernel::cross_entropy_backward, plan::DType::fp32,
                          {static_cast<std::int64_t>(shape.rows), shape.classes});
        slopes.args(unwritten<float>(n), normals(n, "p"), tokens(shape.rows, shape.classes, "targets"));
        slopes.run().expect_same<float>(0);
    }
}

// A share of the target for every class: the loss has the mean of the logits in it.
TEST_F(CudaLoss, CrossEntropyWithLabelSmoothing) {
    for (const Shape& shape : kShapes) {
        for (const double smoothing : {0.1, 1.0}) {
            SCOPED_TRACE(std::to_string(shape.rows) + " x " + std::to_string(shape.classes));
            const std::size_t n = shape.rows * static_cast<std::size_t>(shape.classes);
            const std::array<std::int64_t, 6> dims = {static_cast<std::int64_t>(shape.rows), shape.classes};
            const testing::Tokens targets = tokens(shape.rows, shape.classes, "targets");
            Comparison loss(plan::Kernel::cross_entropy_forward, plan::DType::fp32, dims, {smoothing});
            loss.args(Vector{NAN}, unwritten<float>(n), normals(n, "logits"), targets).run();
            loss.expect_near<double>(0, 1e-6);
            loss.expect_near<float>(1);
            Comparison slopes(plan::Kernel::cross_entropy_backward, plan::DType::fp32, dims, {smoothing});
            slopes.args(unwritten<float>(n), normals(n, "p"), targets).run().expect_same<float>(0);
        }
    }
}

// The first of equal logits counts. A NaN never replaces another logit; as the first one it is never
// replaced.
TEST_F(CudaLoss, TopOneIsTheCpus) {
    for (const Shape& shape : kShapes) {
        SCOPED_TRACE(std::to_string(shape.rows) + " x " + std::to_string(shape.classes));
        const std::size_t n = shape.rows * static_cast<std::size_t>(shape.classes);
        Floats logits = normals(n, "logits");
        testing::Tokens targets;
        for (std::size_t i = 0; i < shape.rows;
             ++i) {  // the largest logit is twice in a row, and once the target's
            float* row = logits.data() + i * static_cast<std::size_t>(shape.classes);
            const int first = static_cast<int>(i * 7) % shape.classes;
            row[first] = row[shape.classes - 1] = 9.0f;
            targets.push_back(i % 3 == 0 ? shape.classes - 1 : first);
        }
        Comparison top(plan::Kernel::top_one, plan::DType::fp32,
                       {static_cast<std::int64_t>(shape.rows), shape.classes});
        top.args(Vector{NAN}, logits, targets).run().expect_same<double>(0);
    }
    for (const std::size_t at : {0, 2}) {
        Floats logits = {1.0f, 5.0f, 2.0f, 3.0f};
        logits[at] = NAN;
        Comparison top(plan::Kernel::top_one, plan::DType::fp32, {1, 4});
        top.args(Vector{NAN}, logits, testing::Tokens{at == 0 ? 0 : 1}).run().expect_same<double>(0);
        EXPECT_EQ(top.cuda<double>(0)[0], 1.0);
    }
}

// Rows without a target, like those of a text whose tokens are not masked.
TEST_F(CudaLoss, CrossEntropyLeavesOutRowsWithoutATarget) {
    constexpr std::size_t kRows = 5;
    for (const int classes : {33, 4097}) {
        const std::size_t n = kRows * static_cast<std::size_t>(classes);
        const testing::Tokens targets = {-1, 7, -1, -1, classes - 1};
        Comparison loss(plan::Kernel::cross_entropy_forward, plan::DType::fp32, {kRows, classes, 2});
        loss.args(Vector{NAN}, unwritten<float>(n), normals(n, "logits"), targets).run();
        loss.expect_near<double>(0, 1e-6);
        loss.expect_near<float>(1);
        Comparison slopes(plan::Kernel::cross_entropy_backward, plan::DType::fp32, {kRows, classes, 2});
        slopes.args(unwritten<float>(n), normals(n, "p"), targets).run().expect_same<float>(0);
    }
}

TEST_F(CudaLoss, SquaredError) {
    for (const std::size_t n : kSizes) {
        for (const std::size_t shift : {0, 1}) {
            SCOPED_TRACE(n);
            const Floats y = normals(n, "y"), target = normals(n, "target");
            Comparison loss(plan::Kernel::mse_forward, plan::DType::fp32, {static_cast<std::int64_t>(n)});
            loss.args(Vector{NAN}, y, target).shifted(shift).run().expect_near<double>(0, 1e-13);
            Comparison slopes(plan::Kernel::mse_backward, plan::DType::fp32, {static_cast<std::int64_t>(n)});
            slopes.args(unwritten<float>(n), y, target).shifted(shift).run().expect_same<float>(0);
        }
    }
}

// --- reductions --------------------------------------------------------------------------------------------

template <class T>
class CudaReduction : public TypedCudaTest<T> {};
TYPED_TEST_SUITE(CudaReduction, Elements, ElementNames);

TYPED_TEST(CudaReduction, SumOfSquares) {
    using T = TypeParam;
    for (const std::size_t n : {1, 7, 31, 33, 1000, 4097, 50021}) {
        for (const std::size_t shift : {0, 1}) {
            SCOPED_TRACE(n);
            Comparison sum(plan::Kernel::sum_of_squares, kDType<T>, {static_cast<std::int64_t>(n)});
            sum.args(Vector{NAN}, as<T>(normals(n, "x"))).shifted(shift).run();
            sum.template expect_near<double>(0, 1e-13);
        }
    }
}

// The same sum each time, bit for bit.
TYPED_TEST(CudaReduction, SumsInOneOrder) {
    using T = TypeParam;
    std::vector<double> sums;
    for (int i = 0; i < 2; ++i) {
        Comparison sum(plan::Kernel::sum_of_squares, kDType<T>, {30000});
        sum.args(Vector{NAN}, as<T>(normals(30000, "x"))).run();
        sums.push_back(sum.template cuda<double>(0)[0]);
    }
    EXPECT_EQ(sums[0], sums[1]);
}

class CudaClip : public CudaTest {};

// sqrt(9 + 16) = 5 against a largest of 1, and of 100.
TEST_F(CudaClip, FactorIsTheCpus) {
    for (const double most : {1.0, 100.0}) {
        Comparison clip(plan::Kernel::clip_factor, plan::DType::fp32, {2}, {most});
        clip.args(Floats{NAN}, Vector{NAN}, Vector{9.0, 16.0}).run();
        clip.expect_same<float>(0);
        clip.expect_same<double>(1);
        EXPECT_EQ(clip.cuda<double>(1)[0], 5.0);
    }
}

// --- the search for values that are not finite -------------------------------------------------------------

template <class T>
class CudaCheckedOutput : public TypedCudaTest<T> {};
TYPED_TEST_SUITE(CudaCheckedOutput, Elements, ElementNames);

// At each of these positions, in buffers of every size, aligned or not; the operation's module is 5.
TYPED_TEST(CudaCheckedOutput, FindsAValueThatIsNotFinite) {
    using T = TypeParam;
    const auto flag_after = [](Floats x, std::int32_t before, std::size_t shift) {
        Comparison scale(plan::Kernel::scale, kDType<T>, {static_cast<std::int64_t>(x.size())}, {1.0});
        scale.arg(as<T>(x)).checked(before).shifted(shift).run();
        scale.template expect_same<std::int32_t>(1);
        return scale.template cuda<std::int32_t>(1)[0];
    };
    for (const std::size_t n : kSizes) {
        for (const std::size_t shift : {0, 1}) {
            SCOPED_TRACE(n);
            Floats x = normals(n, "x");
            EXPECT_EQ(flag_after(x, -1, shift), -1);
            for (const std::size_t at : {std::size_t{0}, n / 2, n - 1}) {
                for (const float value : {NAN, INFINITY, -INFINITY}) {
                    x = normals(n, "x");
                    x[at] = value;
                    EXPECT_EQ(flag_after(x, -1, shift), 5);
                    EXPECT_EQ(flag_after(x, 2, shift), 2) << "another module was first";
                }
            }
        }
    }
}

TEST_F(CudaLoss, FindsALossThatIsNotFinite) {
    for (const float value : {1.0f, NAN, INFINITY}) {
        Comparison loss(plan::Kernel::mse_forward, plan::DType::fp32, {1});
        loss.args(Vector{0.0}, Floats{value}, Floats{0.0f}).checked(-1).run();
        EXPECT_EQ(loss.cuda<std::int32_t>(3)[0], std::isfinite(value) ? -1 : 5);
    }
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::cuda
