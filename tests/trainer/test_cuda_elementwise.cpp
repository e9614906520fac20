// Kernels that compute elements independently, on a CUDA device: the CPU's bits, whatever the size and the
// alignment; GELU and SiLU, whose exponential is the device's own, within rounding.
#include "tests/trainer/cuda_testing.h"

namespace shardscope::trainer {
namespace TEST_FILE {

using namespace cuda_testing;

template <class T>
class CudaElementwise : public TypedCudaTest<T> {};
TYPED_TEST_SUITE(CudaElementwise, Elements, ElementNames);

// Operands of every size, aligned and not.
template <class Check>
void for_sizes(Check check) {
    for (const std::size_t n : kSizes) {
        for (const std::size_t shift : {0, 1}) {
            SCOPED_TRACE(std::to_string(n) + " elements, shifted by " + std::to_string(shift));
            check(n, shift);
        }
    }
}

std::array<std::int64_t, 6> count(std::size_t n) {
    return {static_cast<std::int64_t>(n)};
}

TYPED_TEST(CudaElementwise, Add) {
    using T = TypeParam;
    for_sizes([](std::size_t n, std::size_t shift) {
        Comparison(Kernel::add, kDType<T>, count(n))
            .arg(unwritten<T>(n))
            .arg(as<T>(normals(n, "a")))
            .arg(as<T>(normals(n, "b")))
            .shifted(shift)
            .run()
            .template expect_same<T>(0);
    });
}

TYPED_TEST(CudaElementwise, AddIntoAnInput) {
    using T = TypeParam;
    for_sizes([](std::size_t n, std::size_t shift) {
        Comparison(Kernel::add, kDType<T>, count(n))
            .arg(as<T>(normals(n, "a")))
            .again(0)
            .arg(as<T>(normals(n, "b")))
            .shifted(shift)
            .run()
            .template expect_same<T>(0);
    });
}

TYPED_TEST(CudaElementwise, Accumulate) {
    using T = TypeParam;
    for_sizes([](std::size_t n, std::size_t shift) {
        Comparison(Kernel::accumulate, kDType<T>, count(n))
            .arg(as<T>(normals(n, "y")))
            .arg(as<T>(normals(n, "x")))
            .shifted(shift)
            .run()
            .template expect_same<T>(0);
    });
}

TYPED_TEST(CudaElementwise, AccumulateTheOtherType) {
    using T = TypeParam;
    using Other = std::conditional_t<std::is_same_v<T, float>, Bf16, float>;
    for_sizes([](std::size_t n, std::size_t shift) {
        Comparison(Kernel::accumulate, kDType<T>, {static_cast<std::int64_t>(n), input_dim(kDType<Other>)})
            .arg(as<T>(normals(n, "y")))
            .arg(as<Other>(normals(n, "x")))
            .shifted(shift)
            .run()
            .template expect_same<T>(0);
    });
}

TYPED_TEST(CudaElementwise, Scale) {
    using T = TypeParam;
    for_sizes([](std::size_t n, std::size_t shift) {
        Comparison(Kernel::scale, kDType<T>, count(n), {0.3})
            .arg(as<T>(normals(n, "x")))
            .shifted(shift)
            .run()
            .template expect_same<T>(0);
    });
}

TYPED_TEST(CudaElementwise, ScaleByAFactorOnTheDevice) {
    using T = TypeParam;
    for_sizes([](std::size_t n, std::size_t shift) {
        Comparison(Kernel::scale_by, kDType<T>, count(n))
            .arg(as<T>(normals(n, "x")))
            .arg(Floats{0.7f})
            .shifted(shift)
            .run()
            .template expect_same<T>(0);
    });
}

TYPED_TEST(CudaElementwise, Relu) {
    using T = TypeParam;
    for_sizes([](std::size_t n, std::size_t shift) {
        const auto x = as<T>(normals(n, "x"));
        Comparison(Kernel::relu_forward, kDType<T>, count(n))
            .arg(unwritten<T>(n))
            .arg(x)
            .shifted(shift)
            .run()
            .template expect_same<T>(0);
        Comparison(Kernel::relu_backward, kDType<T>, count(n))
            .arg(unwritten<T>(n))
            .arg(as<T>(normals(n, "dy")))
            .arg(x)
            .shifted(shift)
            .run()
            .template expect_same<T>(0);
    });
}

TYPED_TEST(CudaElementwise, Gelu) {
    using T = TypeParam;
    for_sizes([](std::size_t n, std::size_t shift) {
        Floats wide = normals(n, "x");
        for (float& value : wide) value *= 6.0f;  // including outside the clamped range
        const auto x = as<T>(wide);
        Comparison(Kernel::gelu_forward, kDType<T>, count(n))
            .arg(unwritten<T>(n))
            .arg(x)
            .shifted(shift)
            .run()
            .template expect_near<T>(0);
        Comparison(Kernel::gelu_backward, kDType<T>, count(n))
            .arg(unwritten<T>(n))
            .arg(as<T>(normals(n, "dy")))
            .arg(x)
            .shifted(shift)
            .run()
            .template expect_near<T>(0);
    });
}

TYPED_TEST(CudaElementwise, SiluMul) {
    using T = TypeParam;
    for_sizes([](std::size_t n, std::size_t shift) {
        Floats wide = normals(n, "gate");
        for (float& value : wide) value *= 50.0f;
        const auto gate = as<T>(wide), up = as<T>(normals(n, "up"));
        Comparison(Kernel::silu_mul_forward, kDType<T>, count(n))
            .arg(unwritten<T>(n))
            .arg(gate)
            .arg(up)
            .shifted(shift)
            .run()
            .template expect_near<T>(0);
        Comparison slopes(Kernel::silu_mul_backward, kDType<T>, count(n));
        slopes.arg(unwritten<T>(n)).arg(unwritten<T>(n)).arg(as<T>(normals(n, "dy"))).arg(gate).arg(up);
        slopes.shifted(shift).run();
        slopes.template expect_near<T>(0);
        slopes.template expect_near<T>(1);
    });
}

TYPED_TEST(CudaElementwise, SiluMulSlopesInPlace) {
    using T = TypeParam;
    constexpr std::size_t kCount = 1000;
    Comparison slopes(Kernel::silu_mul_backward, kDType<T>, count(kCount));
    slopes.arg(as<T>(normals(kCount, "gate"))).arg(as<T>(normals(kCount, "up")));
    slopes.arg(as<T>(normals(kCount, "dy"))).again(0).again(1).run();
    slopes.template expect_near<T>(0);
    slopes.template expect_near<T>(1);
}

// Keeps exactly what the CPU keeps, in each micro-batch of each rank, even if its first element is in the
// middle of a group of four.
TYPED_TEST(CudaElementwise, DropoutDropsWhatTheCpuDrops) {
    using T = TypeParam;
    for_sizes([](std::size_t n, std::size_t shift) {
        for (const std::int64_t micro_step : {0, 3}) {
            KernelContext context;
            context.seed = 11;
            context.rank = 1;
            context.ranks = 2;
            context.micro_step = micro_step;
            const Kernel kernel = micro_step == 0 ? Kernel::dropout_forward : Kernel::dropout_backward;
            Comparison drop(kernel, kDType<T>, {static_cast<std::int64_t>(n), 42}, {0.3});
            drop.arg(unwritten<T>(n)).arg(as<T>(normals(n, "x"))).shifted(shift).run(context);
            drop.template expect_same<T>(0);
        }
    });
}

// A NaN stays NaN, infinities keep their sign.
TYPED_TEST(CudaElementwise, KeepsWhatIsNotFinite) {
    using T = TypeParam;
    const auto x = as<T>({NAN, -NAN, INFINITY, -INFINITY, 0.0f});
    Comparison relu(Kernel::relu_forward, kDType<T>, count(5)),
        gelu(Kernel::gelu_forward, kDType<T>, count(5));
    relu.arg(unwritten<T>(5)).arg(x).run();
    gelu.arg(unwritten<T>(5)).arg(x).run();
    for (const Comparison* kernel : {&relu, &gelu}) {
        const Vector result = in_double(kernel->template cuda<T>(0)),
                     expected = in_double(kernel->template cpu<T>(0));
        for (std::size_t i = 0; i < result.size(); ++i) {
            const bool same = std::isnan(expected[i]) ? std::isnan(result[i]) : result[i] == expected[i];
            // GELU of -infinity is -8 times a share of at most 1e-21.
            EXPECT_TRUE(same || std::abs(result[i] - expected[i]) < 1e-19) << i << ": " << result[i];
        }
    }
}

class CudaCast : public CudaTest {};

// 1 + 2^-8 is halfway between two bf16 and is rounded to the even one; 1 + 3 * 2^-8 is rounded in the other
// direction; 3.4e38 is beyond the largest.
TEST_F(CudaCast, RoundsToTheNearestAndTiesToEven) {
    const Floats x = {1.0f + 0x1p-8f, 1.0f + 0x3p-8f, -1.00390625f, 3.4e38f, 1e-40f, -0.0f, INFINITY};
    Comparison cast(Kernel::cast_to_bf16, DType::bf16, count(x.size()));
    cast.arg(unwritten<Bf16>(x.size())).arg(x).run();
    cast.expect_same<Bf16>(0);
    EXPECT_EQ(kernels::to_float(cast.cuda<Bf16>(0)[0]), 1.0f);
    EXPECT_EQ(kernels::to_float(cast.cuda<Bf16>(0)[1]), 1.015625f);
}

TEST_F(CudaCast, ConvertsBuffersOfAnySize) {
    for_sizes([](std::size_t n, std::size_t shift) {
        const Floats x = normals(n, "x");
        Comparison(Kernel::cast_to_bf16, DType::bf16, count(n))
            .arg(unwritten<Bf16>(n))
            .arg(x)
            .shifted(shift)
            .run()
            .expect_same<Bf16>(0);
        Comparison(Kernel::cast_to_fp32, DType::bf16, count(n))
            .arg(unwritten<float>(n))
            .arg(as<Bf16>(x))
            .shifted(shift)
            .run()
            .expect_same<float>(0);
    });
}

TEST_F(CudaCast, KeepsANaN) {
    Comparison cast(Kernel::cast_to_bf16, DType::bf16, count(1));
    cast.arg(unwritten<Bf16>(1)).arg(Floats{NAN}).run();
    EXPECT_TRUE(std::isnan(kernels::to_float(cast.cuda<Bf16>(0)[0])));
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer
