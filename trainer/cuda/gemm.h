// The matrix products of a Linear on a CUDA device, by cuBLASLt. That library is opened at run time; nothing
// here needs its headers. There is one Gemm per rank (it belongs to the device that is current when it is
// made), used only by that rank's thread. Everything is asynchronous on the given stream. Sizes are in
// elements unless they say bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <cuda_runtime.h>

#include "trainer/kernels/activation_kinds.h"
#include "trainer/plan/plan.h"

namespace shardscope::trainer::cuda {

// A row-major matmul of the Plan in cuBLAS's terms, whose matrices are column-major: a row-major [r,c]
// is a column-major [c,r] with leading dimension c. C[m,n] = op(A)[m,k] op(B)[k,n], where op transposes if
// requested; A, B, C are the args `a`, `b`, `c` of the Op. `bias`, 0 for none, is the arg with m elements
// that are added to each column of C. With an activation, C is the activation of that result; `sum`, 0 for
// none, is then the arg, laid out as C, that receives the activation's input.
struct Matmul {
    std::int64_t m = 0, n = 0, k = 0;
    bool transpose_a = false, transpose_b = false;
    std::int64_t lda = 0, ldb = 0, ldc = 0;
    std::size_t a = 0, b = 0, c = 0, bias = 0, sum = 0;
    kernels::ActivationKind activation = kernels::ActivationKind::none;
};

// The matmul of linear_forward, linear_relu_forward, linear_gelu_forward, linear_backward_input or
// linear_backward_weight, or of a convolution whose window is one pixel: a Linear of the channels of each
// pixel. Throws std::logic_error for any other kernel.
Matmul describe(const plan::Op& op);

class MatmulLibrary;

class Gemm {
  public:
    // tf32: matmuls of fp32 may round their operands to 10 bits of fraction (precision.tf32). Throws
    // CudaError if cuBLASLt cannot be opened or started.
    explicit Gemm(bool tf32);
    ~Gemm();
    Gemm(const Gemm&) = delete;
    Gemm& operator=(const Gemm&) = delete;

    // Sets the device memory for split sums, aligned to 256: `bytes` for the matmuls of the forward, followed
    // by as many for those of the backward (memory.gemm_workspace_bytes). It must live as long as matmuls
    // run. Without this call, or with 0 bytes, only algorithms that need no workspace are used.
    void use_workspaces(std::byte* both, std::int64_t bytes);

    // Carries out the matmul of describe(op), a forward with its bias and its activation, of op.dtype: the
    // same as run_kernel of trainer/executor/cpu_kernels.h, except for the order of sums and that an
    // activation may be computed from the sum before it is rounded. The caller handles op.checks_output. Sums
    // are fp32. Throws CudaError.
    void launch(const plan::Op& op, const std::vector<std::byte*>& data, cudaStream_t stream);

  private:
    std::unique_ptr<MatmulLibrary> library_;
    std::byte* workspaces_ = nullptr;
    std::int64_t workspace_bytes_ = 0;  // of each of the two
};

}  // namespace shardscope::trainer::cuda
