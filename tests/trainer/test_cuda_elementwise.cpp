// Kernels that compute elements independently, on a CUDA device: the CPU's bits, whatever the size and the
// alignment; GELU and SiLU, whose exponential is the device's own, within rounding.
#include "tests/trainer/cuda_testing.h"
#include "trainer/kernels/activation_kinds.h"

namespace shardscope::trainer::cuda {
namespace TEST_FILE {

using namespace cuda_testing;
using kernels::Bf16;
using kernels::Fp16;

template <class T>
class CudaElementwise : public TypedCudaTest<T> {};
TYPED_TEST_SUITE(CudaElementwise, Elements, ElementNames);

std::array<std::int64_t, 6> count(std::size_t n) {
    return {static_cast<std::int64_t>(n)};
}

// Arguments of activations, some beyond the bounds at which they are clamped.
template <class T>
std::vector<T> wide(std::size_t n, const char* name, float factor) {
    Floats x = normals(n, name);
    for (float& value : x) value *= factor;
    return as<T>(x);
}

template <class T>
std::vector<KernelCase<T>> cases(std::size_t n) {
    using Other = std::conditional_t<std::is_same_v<T, float>, Bf16, float>;
    const auto of = [n](plan::Kernel kernel, std::array<double, 5> scalars = {}) {
        return Comparison(kernel, kDType<T>, count(n), scalars);
    };
    Comparison other(plan::Kernel::accumulate, kDType<T>,
                     {static_cast<std::int64_t>(n), plan::input_dim(kDType<Other>)});
    const auto out = unwritten<T>(n), x = as<T>(normals(n, "x")), y = as<T>(normals(n, "y")),
               dy = as<T>(normals(n, "dy")), steep = wide<T>(n, "x", 6.0f), gate = wide<T>(n, "gate", 50.0f);
    constexpr double kNear = testing::kTolerance<T>;
    const auto near = [](kernels::ActivationKind kind) {
        return kind == kernels::ActivationKind::gelu ? kNear : 0;
    };
    return {
        {"add", of(plan::Kernel::add).args(out, x, y)},
        {"add into an input", of(plan::Kernel::add).args(x).again(0).args(y)},
        {"accumulate", of(plan::Kernel::accumulate).args(y, x)},
        {"accumulate the other type", other.args(y, as<Other>(normals(n, "x")))},
        {"subtract", of(plan::Kernel::subtract).args(y, x)},
        {"scale", of(plan::Kernel::scale, {0.3}).args(x)},
        {"scale by a factor on the device", of(plan::Kernel::scale_by).args(x, Floats{0.7f})},
#define ACTIVATION(name, ...)                                                                        \
    {#name, of(plan::Kernel::name##_forward).args(out, steep), near(kernels::ActivationKind::name)}, \
        {#name "'s gradient", of(plan::Kernel::name##_backward).args(out, dy, steep),                \
         near(kernels::ActivationKind::name)},
#include "trainer/kernels/activations.def"
#undef ACTIVATION
        {"gated silu", of(plan::Kernel::silu_mul_forward).args(out, gate, y), kNear},
        {"its gradients", of(plan::Kernel::silu_mul_backward).args(out, out, dy, gate, y), kNear, {0, 1}}};
}

TYPED_TEST(CudaElementwise, ComputesWhatTheCpuComputes) {
    check_cases(kSizes, text_of_size, cases<TypeParam>);
}

TYPED_TEST(CudaElementwise, SiluMulSlopesInPlace) {
    using T = TypeParam;
    constexpr std::size_t kCount = 1000;
    Comparison slopes(plan::Kernel::silu_mul_backward, kDType<T>, count(kCount));
    slopes.args(as<T>(normals(kCount, "gate")), as<T>(normals(kCount, "up")), as<T>(normals(kCount, "dy")));
    slopes.again(0).again(1).run();
    slopes.template expect_near<T>(0);
    slopes.template expect_near<T>(1);
}

// Keeps exactly what the CPU keeps, in each micro-batch of each rank, even if its first element is in the
// middle of a group of four.
TYPED_TEST(CudaElementwise, DropoutDropsWhatTheCpuDrops) {
    using T = TypeParam;
    device::KernelContext context;
    context.seed = 11;
    context.data_rank = 1;
    context.data_ranks = 2;
    for (const std::size_t n : kSizes) {
        for (const std::size_t shift : {0, 1}) {
            SCOPED_TRACE(text_of_size(n) + ", shifted by " + std::to_string(shift));
            for (const std::int64_t micro_step : {0, 3}) {
                context.micro_step = micro_step;
                const plan::Kernel kernel =
                    micro_step == 0 ? plan::Kernel::dropout_forward : plan::Kernel::dropout_backward;
                Comparison drop(kernel, kDType<T>, {static_cast<std::int64_t>(n), 42}, {0.3});
                drop.args(unwritten<T>(n), as<T>(normals(n, "x"))).shifted(shift).run(context);
                drop.template expect_same<T>(0);
            }
        }
    }
}

// A NaN stays NaN, infinities keep their sign.
TYPED_TEST(CudaElementwise, KeepsWhatIsNotFinite) {
    using T = TypeParam;
    const auto x = as<T>({NAN, -NAN, INFINITY, -INFINITY, 0.0f});
    Comparison relu(plan::Kernel::relu_forward, kDType<T>, count(5)),
        gelu(plan::Kernel::gelu_forward, kDType<T>, count(5));
    relu.args(unwritten<T>(5), x).run();
    gelu.args(unwritten<T>(5), x).run();
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
    Comparison cast(plan::Kernel::cast_from_fp32, plan::DType::bf16, count(x.size()));
    cast.args(unwritten<Bf16>(x.size()), x).run();
    cast.expect_same<Bf16>(0);
    EXPECT_EQ(kernels::to_float(cast.cuda<Bf16>(0)[0]), 1.0f);
    EXPECT_EQ(kernels::to_float(cast.cuda<Bf16>(0)[1]), 1.015625f);
}

TEST_F(CudaCast, ConvertsBuffersOfAnySize) {
    check_cases(kSizes, text_of_size, [](std::size_t n) {
        Comparison narrow(plan::Kernel::cast_from_fp32, plan::DType::bf16, count(n));
        return std::array{KernelCase<Bf16>{"to bf16", narrow.args(unwritten<Bf16>(n), normals(n, "x"))}};
    });
    check_cases(kSizes, text_of_size, [](std::size_t n) {
        Comparison wide(plan::Kernel::cast_to_fp32, plan::DType::bf16, count(n));
        return std::array{
            KernelCase<float>{"to fp32", wide.args(unwritten<float>(n), as<Bf16>(normals(n, "x")))}};
    });
}

// All 65,536 values, and floats around the smallest and the largest.
TEST_F(CudaCast, ConvertsFp16AsTheCpuDoes) {
    std::vector<Fp16> all;
    for (std::uint32_t bits = 0; bits < 1u << 16; ++bits) all.push_back({static_cast<std::uint16_t>(bits)});
    for (Fp16& x : all)
        if ((x.bits & 0x7c00) == 0x7c00 && (x.bits & 0x3ff) != 0) x.bits = 0;  // a NaN's bits may differ
    Comparison wide(plan::Kernel::cast_to_fp32, plan::DType::fp16, count(all.size()));
    wide.args(unwritten<float>(all.size()), all).run().expect_same<float>(0);
    Floats x;
    for (const float at :
         {0x1p-25f, 0x1p-24f, 0x3p-25f, 0x1p-14f, 0.1f, 1 + 0x1p-11f, 65504.0f, 65520.0f, 1e9f, INFINITY}) {
        for (const float one : {at, std::nextafter(at, 0.0f), std::nextafter(at, INFINITY)}) {
            x.push_back(one);
            x.push_back(-one);
        }
    }
    Comparison narrow(plan::Kernel::cast_from_fp32, plan::DType::fp16, count(x.size()));
    narrow.args(unwritten<Fp16>(x.size()), x).run().expect_same<Fp16>(0);
}

TEST_F(CudaCast, UnscalesAndFindsWhatIsNotFinite) {
    device::KernelContext context;
    context.loss_scale = 4096;
    for (const std::size_t n : kSizes) {
        for (const bool overflows : {false, true}) {
            Floats x = normals(n, "x");
            if (overflows) x.back() = INFINITY;
            Comparison unscale(plan::Kernel::unscale, plan::DType::fp32, count(n));
            unscale.args(x, Floats{0}).run(context);
            unscale.expect_same<float>(0);
            unscale.expect_same<float>(1);
            EXPECT_EQ(unscale.cuda<float>(1)[0], overflows ? 1 : 0);
        }
    }
}

TEST_F(CudaCast, KeepsANaN) {
    Comparison cast(plan::Kernel::cast_from_fp32, plan::DType::bf16, count(1));
    cast.args(unwritten<Bf16>(1), Floats{NAN}).run();
    EXPECT_TRUE(std::isnan(kernels::to_float(cast.cuda<Bf16>(0)[0])));
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::cuda
