// Layer norm and RMS norm on a CUDA device compared with the CPU's: rows in one pack per thread, in several,
// and too long for the registers; columns summed over slices of the rows.
#include "tests/trainer/cuda_testing.h"

namespace shardscope::trainer::cuda {
namespace TEST_FILE {

using namespace cuda_testing;

template <class T>
class CudaNorm : public TypedCudaTest<T> {};
TYPED_TEST_SUITE(CudaNorm, Elements, ElementNames);

struct Shape {
    std::size_t rows, cols;
    std::array<std::int64_t, 6> dims() const {
        return {static_cast<std::int64_t>(rows), static_cast<std::int64_t>(cols)};
    }
};
// 16400 columns are more than 512 threads hold in registers, of either type.
constexpr Shape kShapes[] = {{1, 1},   {3, 7},    {5, 31},   {2, 33},   {9, 128},
                             {6, 768}, {3, 1000}, {2, 4097}, {2, 16400}};

std::string text_of(const Shape& shape) {
    return std::to_string(shape.rows) + " x " + std::to_string(shape.cols);
}

// Rows with a mean of 3, so that the mean matters.
template <class T>
std::vector<T> rows_of(const Shape& shape) {
    Floats x = normals(shape.rows * shape.cols, "x");
    for (float& value : x) value += 3.0f;
    return as<T>(x);
}

// What the forward would have kept; any numbers of that size are suitable.
Floats means(std::size_t rows) {
    return Floats(rows, 3.0f);
}
Floats inverses(std::size_t rows) {
    Floats made = normals(rows, "rstd");
    for (float& value : made) value = 1.0f + 0.1f * value;
    return made;
}

template <class T>
Comparison layer_norm_backward(const Shape& shape, bool input, bool parameters) {
    const std::size_t n = shape.rows * shape.cols;
    Comparison norm(plan::Kernel::layer_norm_backward, kDType<T>, shape.dims());
    input ? norm.arg(unwritten<T>(n)) : norm.nothing();
    const auto dgamma = unwritten<T>(shape.cols);
    parameters ? norm.args(dgamma, dgamma) : norm.nothing().nothing();
    norm.args(as<T>(normals(n, "dy")), rows_of<T>(shape), as<T>(normals(shape.cols, "gamma")));
    return norm.args(means(shape.rows), inverses(shape.rows));
}

template <class T>
std::vector<KernelCase<T>> cases(const Shape& shape) {
    constexpr double kNear = testing::kTolerance<T>;
    const std::size_t n = shape.rows * shape.cols;
    const auto y = unwritten<T>(n), x = rows_of<T>(shape), gamma = as<T>(normals(shape.cols, "gamma")),
               beta = as<T>(normals(shape.cols, "beta"));
    const Floats statistics = unwritten<float>(shape.rows);
    const auto of = [&](plan::Kernel kernel) { return Comparison(kernel, kDType<T>, shape.dims()); };
    return {{"layer norm",
             of(plan::Kernel::layer_norm_forward).args(y, statistics, statistics, x, gamma, beta),
             kNear,
             {0},
             {1, 2}},
            {"its gradients", layer_norm_backward<T>(shape, true, true), kNear, {0, 1, 2}},
            {"RMS norm", of(plan::Kernel::rms_norm_forward).args(y, statistics, x, gamma), kNear, {0}, {1}},
            {"its gradients",
             of(plan::Kernel::rms_norm_backward)
                 .args(y, unwritten<T>(shape.cols), as<T>(normals(n, "dy")), x, gamma, inverses(shape.rows)),
             kNear,
             {0, 1}}};
}

TYPED_TEST(CudaNorm, ComputesWhatTheCpuComputes) {
    check_cases(kShapes, text_of, cases<TypeParam>);
}

// dx in the memory of dy: the parameters' gradients need dy first.
TYPED_TEST(CudaNorm, LayerNormBackwardInPlace) {
    using T = TypeParam;
    const Shape shape{20, 300};
    const std::size_t n = shape.rows * shape.cols;
    Comparison norm(plan::Kernel::layer_norm_backward, kDType<T>, shape.dims());
    norm.args(as<T>(normals(n, "dy")), unwritten<T>(shape.cols), unwritten<T>(shape.cols)).again(0);
    norm.args(rows_of<T>(shape), as<T>(normals(shape.cols, "gamma")), means(shape.rows),
              inverses(shape.rows));
    norm.run();
    for (const std::size_t arg : {0, 1, 2}) norm.template expect_near<T>(arg);
}

// 1300 rows make slices of 11 (the last has 2), 7 one row per warp, 70000 more slices than the limit.
TYPED_TEST(CudaNorm, SumsAnyNumberOfRows) {
    using T = TypeParam;
    for (const std::size_t rows : {1, 7, 100, 1300, 70000}) {
        SCOPED_TRACE(std::to_string(rows) + " rows");
        Comparison norm =
            layer_norm_backward<T>({rows, rows > 10000 ? std::size_t{3} : std::size_t{40}}, false, true);
        norm.run();
        norm.template expect_near<T>(1);
        norm.template expect_near<T>(2);
    }
}

TYPED_TEST(CudaNorm, OmitsGradientsThatAreNotNeeded) {
    using T = TypeParam;
    Comparison norm = layer_norm_backward<T>({4, 100}, true, false);
    norm.run();
    norm.template expect_near<T>(0);
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::cuda
