// The library that multiplies for Gemm: cuBLASLt (cublaslt.cpp), or, in tests without a device, a
// column-major matmul on the CPU. Internal to trainer/cuda.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "trainer/cuda/gemm.h"
#include "trainer/plan/dtype.h"

namespace shardscope::trainer::cuda {

// One matmul with everything that it needs: device addresses; `bias` and `sum` are null for none.
struct MatmulCall {
    Matmul matmul;
    plan::DType dtype = plan::DType::fp32;  // of all operands; sums are fp32
    const std::byte *a = nullptr, *b = nullptr, *bias = nullptr;
    std::byte *c = nullptr, *sum = nullptr;
    std::byte* workspace = nullptr;
    std::int64_t workspace_bytes = 0;
};

// One per device and thread.
class MatmulLibrary {
  public:
    // Throws CudaError if there is no usable library.
    explicit MatmulLibrary(bool tf32);
    ~MatmulLibrary();
    MatmulLibrary(const MatmulLibrary&) = delete;
    MatmulLibrary& operator=(const MatmulLibrary&) = delete;

    void multiply(const MatmulCall& call, cudaStream_t stream);

  private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace shardscope::trainer::cuda
