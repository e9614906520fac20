// Attention on a CUDA device; the fused form is causal only. Everything is asynchronous on the given stream,
// and the results of every run are the same, bit for bit (no atomics: each sum has one owner and one order).
// Shapes as in trainer/kernels/attention.h and attention_fused.h.
#pragma once

#include <cstddef>
#include <vector>

#include <cuda_runtime.h>

#include "trainer/plan/plan.h"

namespace shardscope::trainer::cuda {

// Carries out attention_forward, attention_backward, fused_attention_forward or fused_attention_backward of
// op.dtype: like run_kernel of trainer/executor/cpu_kernels.h, except for the order of sums (and, fused in
// bf16 or fp16, that probabilities are rounded to it before they enter a matmul). The caller handles
// op.checks_output. Throws std::logic_error for any other kernel, CudaError if the launch fails.
void launch_attention(const plan::Op& op, const std::vector<std::byte*>& data, cudaStream_t stream);

}  // namespace shardscope::trainer::cuda
