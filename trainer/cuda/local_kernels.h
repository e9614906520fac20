// The work of the `local` process group's collectives on a device: each member's part reads from the others'
// buffers, which are on the same device or accessible from it. The kernels have NCCL's names with `local` in
// place of the engine, so that their traces read like NCCL's.
#pragma once

#include <cstddef>

#include "trainer/cuda/runtime.h"
#include "trainer/cuda/types.h"

namespace shardscope::trainer::cuda {

inline constexpr int kMostMembers = 64;

// By place; passed to the kernels by value.
struct MemberBuffers {
    const void* in[kMostMembers];
    void* out[kMostMembers];
    int members = 0;
};

// out[b] = in[m][b - m * piece] for the piece m that byte b of `bytes` falls into: all pieces except the last
// ones have `piece` bytes. A piece that is already in place is left alone. Moves 2 * bytes.
void gather_members(const MemberBuffers& buffers, void* out, std::size_t piece, std::size_t bytes,
                    cudaStream_t stream);

// `bytes` from the first member's input.
void broadcast_first(const MemberBuffers& buffers, void* out, std::size_t bytes, cudaStream_t stream);

// (in[0][i] + in[1][i] + ...) * factor for `first` <= i < `first` + n, in rank order, scaled once: sum_ranks
// of trainer/kernels/elementwise.h, bit for bit. T: float, Bf16 (summed in fp32, rounded once) or double.
// reduce_members: to out[i - first]; moves (members + 1) * n elements. all_reduce_members: to element i of
// every member's output; each is read from all inputs before it is written; moves 2 * members * n.
template <class T>
void reduce_members(const MemberBuffers& buffers, T* out, std::size_t first, std::size_t n, double factor,
                    cudaStream_t stream);
template <class T>
void all_reduce_members(const MemberBuffers& buffers, std::size_t first, std::size_t n, double factor,
                        cudaStream_t stream);

// The same with the largest of the members' elements.
void max_members(const MemberBuffers& buffers, std::size_t first, std::size_t n, cudaStream_t stream);

// A kernel that does nothing, so that a trace shows the barrier.
void barrier_members(cudaStream_t stream);

// x[i] *= factor. T as above.
template <class T>
void scale_sum(T* x, std::size_t n, double factor, cudaStream_t stream);

}  // namespace shardscope::trainer::cuda
