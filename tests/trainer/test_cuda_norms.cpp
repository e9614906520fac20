// Layer norm and RMS norm on a CUDA device compared with the CPU's: rows in one pack per thread, in several,
// and too long for the registers; columns summed over slices of the rows.
#include "tests/trainer/cuda_testing.h"

namespace shardscope::trainer {
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

template <class Check>
void for_shapes(Check check) {
    for (const Shape& shape : kShapes) {
        for (const std::size_t shift : {0, 1}) {
            SCOPED_TRACE(std::to_string(shape.rows) + " x " + std::to_string(shape.cols) + ", shifted by " +
                         std::to_string(shift));
            check(shape, shift);
        }
    }
}

// Rows with a mean of 3, so that the mean matters.
template <class T>
std::vector<T> rows_of(const Shape& shape) {
    Floats x = normals(shape.rows * shape.cols, "x");
    for (float& value : x) value += 3.0f;
    return as<T>(x);
}

TYPED_TEST(CudaNorm, LayerNormForward) {
    using T = TypeParam;
    for_shapes([](const Shape& shape, std::size_t shift) {
        Comparison norm(Kernel::layer_norm_forward, kDType<T>, shape.dims());
        norm.arg(unwritten<T>(shape.rows * shape.cols)).arg(unwritten<float>(shape.rows));
        norm.arg(unwritten<float>(shape.rows))
            .arg(rows_of<T>(shape))
            .arg(as<T>(normals(shape.cols, "gamma")));
        norm.arg(as<T>(normals(shape.cols, "beta"))).shifted(shift).run();
        norm.template expect_near<T>(0);
        norm.template expect_near<float>(1);
        norm.template expect_near<float>(2);
    });
}

TYPED_TEST(CudaNorm, RmsNormForward) {
    using T = TypeParam;
    for_shapes([](const Shape& shape, std::size_t shift) {
        Comparison norm(Kernel::rms_norm_forward, kDType<T>, shape.dims());
        norm.arg(unwritten<T>(shape.rows * shape.cols))
            .arg(unwritten<float>(shape.rows))
            .arg(rows_of<T>(shape));
        norm.arg(as<T>(normals(shape.cols, "gamma"))).shifted(shift).run();
        norm.template expect_near<T>(0);
        norm.template expect_near<float>(1);
    });
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
    Comparison norm(Kernel::layer_norm_backward, kDType<T>, shape.dims());
    input ? norm.arg(unwritten<T>(n)) : norm.nothing();
    parameters ? norm.arg(unwritten<T>(shape.cols)).arg(unwritten<T>(shape.cols)) : norm.nothing().nothing();
    norm.arg(as<T>(normals(n, "dy"))).arg(rows_of<T>(shape)).arg(as<T>(normals(shape.cols, "gamma")));
    norm.arg(means(shape.rows)).arg(inverses(shape.rows));
    return norm;
}

TYPED_TEST(CudaNorm, LayerNormBackward) {
    using T = TypeParam;
    for_shapes([](const Shape& shape, std::size_t shift) {
        Comparison norm = layer_norm_backward<T>(shape, true, true);
        norm.shifted(shift).run();
        for (const std::size_t arg : {0, 1, 2}) norm.template expect_near<T>(arg);
    });
}

TYPED_TEST(CudaNorm, RmsNormBackward) {
    using T = TypeParam;
    for_shapes([](const Shape& shape, std::size_t shift) {
        const std::size_t n = shape.rows * shape.cols;
        Comparison norm(Kernel::rms_norm_backward, kDType<T>, shape.dims());
        norm.arg(unwritten<T>(n))
            .arg(unwritten<T>(shape.cols))
            .arg(as<T>(normals(n, "dy")))
            .arg(rows_of<T>(shape));
        norm.arg(as<T>(normals(shape.cols, "gamma"))).arg(inverses(shape.rows)).shifted(shift).run();
        norm.template expect_near<T>(0);
        norm.template expect_near<T>(1);
    });
}

// dx in the memory of dy: the parameters' gradients need dy first.
TYPED_TEST(CudaNorm, LayerNormBackwardInPlace) {
    using T = TypeParam;
    const Shape shape{20, 300};
    const std::size_t n = shape.rows * shape.cols;
    Comparison norm(Kernel::layer_norm_backward, kDType<T>, shape.dims());
    norm.arg(as<T>(normals(n, "dy"))).arg(unwritten<T>(shape.cols)).arg(unwritten<T>(shape.cols)).again(0);
    norm.arg(rows_of<T>(shape)).arg(as<T>(normals(shape.cols, "gamma")));
    norm.arg(means(shape.rows)).arg(inverses(shape.rows)).run();
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
}  // namespace shardscope::trainer
