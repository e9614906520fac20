// What oneDNN takes from an environment that sets its variables, by its own account of what it runs.
#include <cstdlib>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/kernel_testing.h"
#include "trainer/kernels/convolution.h"
#include "trainer/kernels/onednn.h"

namespace shardscope::trainer::kernels {
namespace TEST_FILE {

using ::testing::HasSubstr;
using ::testing::Not;
using namespace testing;

// Set before anything opens the library; no other program uses these variables.
const int kInherited = setenv("ONEDNN_VERBOSE", "1", 1) + setenv("ONEDNN_MAX_CPU_ISA", "AVX2", 1) +
                       setenv("ONEDNN_DEFAULT_FPMATH_MODE", "BF16", 1);

TEST(OneDnn, TakesTheLimitOfItsInstructionsButNotALesserPrecision) {
#if defined(__x86_64__)
    ASSERT_EQ(kInherited, 0);
    if (!OneDnn::get().usable() || !__builtin_cpu_supports("avx2"))
        GTEST_SKIP() << OneDnn::get().description();
    const ConvolutionShape shape{{2, 14, 14, 32}, 32, {3, 1, 1}};
    const Floats x = normals(shape.image.elements(), "x");
    const Floats w = normals(static_cast<std::size_t>(shape.out) * shape.depth(), "w");
    Floats y(shape.result().elements(), NAN);
    ::testing::internal::CaptureStdout();
    const bool convolved = OneDnn::get().convolve(x.data(), w.data(), nullptr, y.data(), shape);
    const std::string account = ::testing::internal::GetCapturedStdout();
    EXPECT_TRUE(convolved);
    EXPECT_FALSE(OneDnn::get().has_bf16());
    EXPECT_THAT(account, HasSubstr("exec,cpu,convolution"));
    EXPECT_THAT(account, HasSubstr("avx2"));
    EXPECT_THAT(account, Not(HasSubstr("avx512")));
    EXPECT_THAT(account, Not(HasSubstr("fpmath")));
#else
    GTEST_SKIP() << "oneDNN's code is for x86";
#endif
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::kernels
