// How OpenBLAS is opened in an environment that sets its variables.
#include <cstdlib>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/kernel_testing.h"
#include "trainer/kernels/blas.h"

namespace shardscope::trainer::kernels {
namespace TEST_FILE {

using ::testing::Contains;
using ::testing::HasSubstr;

// Set before anything opens the library; no other program uses these variables.
const int kInherited = setenv("OPENBLAS_CORETYPE", "Prescott", 1) + setenv("OPENBLAS_NUM_THREADS", "2", 1);

TEST(Blas, OverridesAnInheritedCoreTypeAndNotesIt) {
    ASSERT_EQ(kInherited, 0);
    const Blas& blas = Blas::get();
    EXPECT_THAT(blas.notes(), Contains("OPENBLAS_CORETYPE=Prescott was set and is overridden"));
    EXPECT_EQ(std::getenv("OPENBLAS_CORETYPE"), nullptr);
}

TEST(Blas, UsesKernelsAsWideAsTheProcessor) {
    const std::string core = Blas::get().core();
    EXPECT_FALSE(core.empty());
    EXPECT_THAT(Blas::get().config(), HasSubstr("OpenBLAS"));
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        EXPECT_NE(core, "Prescott");
    }
    if (__builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw")) {
        EXPECT_NE(core, "Haswell");
    }
#endif
}

TEST(Blas, RunsOneThreadByDefaultAndDoesNotChangeTheEnvironment) {
    Blas& blas = Blas::get();
    EXPECT_EQ(blas.threads(), 1);
    EXPECT_STREQ(std::getenv("OPENBLAS_NUM_THREADS"), "2");
    blas.set_threads(2);
    EXPECT_EQ(blas.threads(), 2);
    blas.set_threads(1);
    EXPECT_EQ(blas.threads(), 1);
}

TEST(Blas, MissingLibraryNamesThePackage) {
    try {
        const Blas blas("libopenblas-that-is-not-there.so.0");
        FAIL() << "opened a library that does not exist";
    } catch (const BlasError& error) {
        EXPECT_THAT(error.what(), HasSubstr("cannot open libopenblas-that-is-not-there.so.0"));
        EXPECT_THAT(error.what(), HasSubstr("apt-get install libopenblas0"));
    }
}

TEST(Blas, AnotherLibraryIsRefused) {
    try {
        const Blas blas("libc.so.6");
        FAIL() << "took the C library for OpenBLAS";
    } catch (const BlasError& error) {
        EXPECT_THAT(error.what(), HasSubstr("not OpenBLAS"));
    }
}

// c = alpha op(a) op(b) + beta c for the four cases, 3x4 times 4x2 inside larger matrices (leading dimensions
// 5, 6, 7).
TEST(Blas, SgemmIsRowMajorWithStridesAlphaAndBeta) {
    constexpr int kM = 3, kN = 2, kK = 4;
    constexpr int kA = 5, kB = 6, kC = 7;
    const auto a = testing::normals(5 * 5, "a"), b = testing::normals(6 * 6, "b"),
               c = testing::normals(3 * 7, "c");
    for (const bool transpose_a : {false, true}) {
        for (const bool transpose_b : {false, true}) {
            auto result = c;
            Blas::get().sgemm(transpose_a, transpose_b, kM, kN, kK, 2.0f, a.data(), kA, b.data(), kB, 0.5f,
                              result.data(), kC);
            for (int i = 0; i < kM; ++i) {
                for (int j = 0; j < kC; ++j) {
                    if (j >= kN) {
                        EXPECT_EQ(result[i * kC + j], c[i * kC + j]) << "wrote beyond the row";
                        continue;
                    }
                    double expected = 0.5 * c[i * kC + j];
                    for (int k = 0; k < kK; ++k) {
                        expected += 2.0 * (transpose_a ? a[k * kA + i] : a[i * kA + k]) *
                                    (transpose_b ? b[j * kB + k] : b[k * kB + j]);
                    }
                    EXPECT_NEAR(result[i * kC + j], expected, 1e-5);
                }
            }
        }
    }
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::kernels
