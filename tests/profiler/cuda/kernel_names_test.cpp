// Kernels' names as Nsight Systems shows them.
#include "profiler/recorder/kernel_names.h"

#include <gtest/gtest.h>

namespace shardscope::profiler {
namespace TEST_FILE {

TEST(KernelNames, are_demangled_if_they_are_cpp) {
    EXPECT_EQ(demangle("_ZN2at6native4fillILi4EfEEvif"), "void at::native::fill<4, float>(int, float)");
    EXPECT_EQ(demangle("plain_kernel"), "plain_kernel");
    EXPECT_EQ(demangle("_Znot a name"), "_Znot a name");
    EXPECT_EQ(demangle(""), "");
}

TEST(KernelNames, have_a_short_form) {
    const std::pair<const char*, const char*> cases[] = {
        {"void at::native::fill<4, float>(int, float)", "fill"},
        {"plain_kernel", "plain_kernel"},
        {"ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
         "ncclDevKernel_AllGather_RING_LL"},
        {"(anonymous namespace)::softmax_warp(float*, int)", "softmax_warp"},
        {"void (anonymous namespace)::k<(anonymous namespace)::T>((anonymous namespace)::T)", "k"},
        {"std::enable_if<(4>(2)), void>::type cub::Device<int>::Sort<true, (bool)0>(int const*)", "Sort"},
        {"Functor::operator()(int) const", "operator()"},
        {"void Functor::operator()<float>(float)", "operator()"},
        {"main::{lambda(int)#1}::operator()(int) const", "operator()"},
        {"ns::kernel(void (*)(int), unsigned long) [clone .constprop.0]", "kernel"},
        {"bool operator< <int>(int)", "operator< "},
        {"cutlass::Kernel<cutlass::Shape<1, 2>, (cutlass::Mode)3>", "Kernel"},
        {"sm90_xmma_gemm_bf16bf16_bf16f32", "sm90_xmma_gemm_bf16bf16_bf16f32"},
        {"", ""},
        {")(", ")("},
        {"<<<", "<<<"},
        {">>>", ">>>"},
    };
    for (const auto& [full, base] : cases) EXPECT_EQ(base_name(full), base) << full;
}

}  // namespace TEST_FILE
}  // namespace shardscope::profiler
