// The CUDA kernels of a key/value cache compared with the CPU's.
#include "tests/trainer/cuda_testing.h"

namespace shardscope::trainer::cuda {
namespace TEST_FILE {

using namespace cuda_testing;

// {batch, rows, heads, width, kv heads, context}: keys for every query head, for two, and for all; a head
// that a warp's lanes do not fill, and one of several features a lane.
constexpr std::array<std::int64_t, 6> kShapes[] = {
    {2, 1, 2, 16, 2, 9}, {1, 3, 4, 32, 2, 40}, {2, 2, 3, 120, 1, 20}, {1, 1, 1, 256, 1, 17}};

template <class T>
class CudaCachedAttention : public TypedCudaTest<T> {};
TYPED_TEST_SUITE(CudaCachedAttention, Elements, ElementNames);

TYPED_TEST(CudaCachedAttention, StoresAndAttendsAsTheCpuDoes) {
    for (const auto& s : kShapes) {
        const std::int64_t kv_row = 2 * s[4] * (s[3] / s[2]), rows = s[0] * s[1];
        const auto qkv = as<TypeParam>(normals(static_cast<std::size_t>(rows * (s[3] + kv_row)), "qkv"));
        const auto cache = as<TypeParam>(normals(static_cast<std::size_t>(s[0] * s[5] * kv_row), "cache"));
        std::vector<std::int32_t> positions;
        for (std::int64_t i = 0; i < rows; ++i)
            positions.push_back(static_cast<std::int32_t>((5 + 3 * i) % s[5]));
        Comparison store(plan::Kernel::store_keys, kDType<TypeParam>, s);
        store.args(cache, qkv, positions).run();
        store.template expect_same<TypeParam>(0);
        Comparison attend(plan::Kernel::cached_attention_forward, kDType<TypeParam>, s);
        attend.args(unwritten<TypeParam>(static_cast<std::size_t>(rows * s[3])), qkv, cache, positions).run();
        attend.template expect_near<TypeParam>(0);
    }
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::cuda
