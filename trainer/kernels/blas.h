// OpenBLAS, opened at run time (no link-time dependency): the matmul that the kernels call. There is one
// instance per process, made on first use. sgemm may be called by many threads at the same time; with one
// BLAS thread (the default) each call runs in its caller. Sizes and leading dimensions are in elements.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

namespace shardscope::trainer::kernels {

// The library cannot be used; the text says what to install.
class BlasError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

class Blas {
  public:
    // The first call removes OPENBLAS_CORETYPE from the environment (an inherited value halves the speed and
    // changes results) and opens the library, so make it before other threads read the environment. Throws
    // BlasError.
    static Blas& get();

    // Opens a library of that name. Only for tests; all others use get().
    explicit Blas(const char* library);

    // c[m,n] = alpha * op(a)[m,k] * op(b)[k,n] + beta * c, all row-major; op transposes if requested: a is
    // then stored as [k,m], b as [n,k]. lda, ldb, ldc: elements from one stored row to the next.
    void sgemm(bool transpose_a, bool transpose_b, int m, int n, int k, float alpha, const float* a, int lda,
               const float* b, int ldb, float beta, float* c, int ldc) const;

    // Sets how many threads one call may use. Not to be called while a call runs. Results are comparable only
    // at the same thread count.
    void set_threads(int threads);
    int threads() const;

    const std::string& core() const { return core_; }      // the kernels in use, such as "SkylakeX"
    const std::string& config() const { return config_; }  // the library's own description of its build

    // What was changed to get these kernels, one sentence each; empty if nothing had to be changed.
    const std::vector<std::string>& notes() const { return notes_; }

  private:
    using Gemm = void (*)(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha,
                          const float* a, int lda, const float* b, int ldb, float beta, float* c, int ldc);

    Gemm gemm_ = nullptr;
    void (*set_threads_)(int) = nullptr;
    int (*get_threads_)() = nullptr;
    std::string core_;
    std::string config_;
    std::vector<std::string> notes_;
};

}  // namespace shardscope::trainer::kernels
