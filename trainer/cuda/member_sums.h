// Sums over the buffers of a group's members, in rank order, scaled once: trainer/kernels/elementwise.h's
// sum_ranks on a device, bit for bit.
#pragma once

#include <cstddef>

#include "trainer/cuda/runtime.h"
#include "trainer/cuda/types.h"

namespace shardscope::trainer::cuda {

inline constexpr int kMostMembers = 64;

// Passed to the kernel by value.
struct MemberBuffers {
    const void* in[kMostMembers];
    void* out[kMostMembers];
    int members = 0;
    int outputs = 0;  // that receive the sum: 1 (out[0]) or all
};

// out[o][i] = (in[0][i] + in[1][i] + ...) * factor for `first` <= i < `first` + n of the inputs; outputs
// begin at element `first` too where there are several, else at 0. T: float, Bf16 (summed in fp32, rounded
// once) or double. Every element is read from all inputs before it is written to any output. Moves
// (members + outputs) * n elements.
template <class T>
void sum_members(const MemberBuffers& buffers, std::size_t first, std::size_t n, double factor,
                 cudaStream_t stream);

}  // namespace shardscope::trainer::cuda
