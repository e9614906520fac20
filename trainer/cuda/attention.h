// Attention on a CUDA device; the fused form is causal only. Everything is asynchronous on the given stream,
// and the results are the same, bit for bit, each time (no atomics: every sum has one owner and one order).
// Shapes as in trainer/kernels/attention.h and attention_fused.h.
#pragma once

#include <cstddef>
#include <vector>

#include <cuda_runtime.h>

#include "trainer/plan/plan.h"

namespace shardscope::trainer::cuda {

// Carries out attention_forward, attention_backward, fused_attention_forward or fused_attention_backward of
// op.dtype: the same as run_kernel of trainer/executor/cpu_kernels.h except for the order of sums (and, fused
// in bf16, probabilities that are rounded to bf16 before they enter a matmul). op.checks_output is left to
// the caller. Throws std::logic_error for any other kernel, CudaError where the launch fails.
void launch_attention(const Op& op, const std::vector<std::byte*>& data, cudaStream_t stream);

}  // namespace shardscope::trainer::cuda
