// The CUDA kernel of Linears with weights in int8 compared with the CPU's.
#include "tests/trainer/cuda_testing.h"
#include "trainer/kernels/int8_linear.h"

namespace shardscope::trainer::cuda {
namespace TEST_FILE {

using namespace cuda_testing;

// {rows, in, out}: rows that a warp shares and more, inputs that fill packs and lanes or do not, a part of a
// block's columns.
constexpr std::array<std::int64_t, 6> kShapes[] = {{1, 128, 8}, {8, 7, 1}, {3, 132, 19}, {17, 40, 9}};

class CudaInt8Linear : public CudaTest {};

TEST_F(CudaInt8Linear, MultipliesAsTheCpuDoes) {
    const auto text = [](const auto& s) {
        return std::to_string(s[0]) + " x " + std::to_string(s[1]) + " x " + std::to_string(s[2]);
    };
    check_cases(kShapes, text, [](const auto& s) {
        const auto rows = static_cast<std::size_t>(s[0]), in = static_cast<std::size_t>(s[1]);
        const auto out = static_cast<std::size_t>(s[2]);
        const Floats w = normals(out * in, "w"), x = normals(rows * in, "x"), b = normals(out, "b");
        std::vector<std::int8_t> q(w.size());
        Floats scales(out);
        EXPECT_TRUE(kernels::quantize_rows(w.data(), q.data(), scales.data(), out, in));
        const auto y = unwritten<float>(rows * out);
        const Comparison of(plan::Kernel::int8_linear_forward, plan::DType::fp32, s);
        return std::vector<KernelCase<float>>{
            {"with a bias", Comparison(of).args(y, x, q, scales, b).checked(-1), testing::kFloatTolerance},
            {"without", Comparison(of).args(y, x, q, scales), testing::kFloatTolerance}};
    });
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::cuda
