// Kernels of a Plan that work on parts of a slot's sequence (initialisation, optimizers) or move pieces
// between buffers (cat, split and their forms by rank), applied to the part that the rank holds. Runs on a
// worker.
#pragma once

#include <cstddef>
#include <vector>

#include "trainer/executor/cpu_kernels.h"
#include "trainer/plan/plan.h"

namespace shardscope::trainer::executor {

// init_normal, init_uniform, init_constant. The rank holds elements [place * per rank, …) of the sequence, or
// all. A weight depends on (seed, path, element) alone.
void initialize(const plan::Op& op, const std::vector<std::byte*>& data,
                const device::KernelContext& context);

// The squared norm of the part that the rank holds of each of the operation's segments.
void segment_squares(const plan::Op& op, const std::vector<std::byte*>& data,
                     const device::KernelContext& context);

// sgd, adam, adamw, lars, lamb_update, lamb and novograd on the trained segments; elements of no segment
// (padding) stay as they are. lars_norms and lamb_update write the squared norms of the part that the rank
// holds, for every segment of the slot: 0 where it holds nothing and where the segment is frozen.
void step_segments(const plan::Op& op, const std::vector<std::byte*>& data,
                   const device::KernelContext& context);

// The second moments of NovoGrad, one for each segment of the slot.
void novograd_moments(const plan::Op& op, const std::vector<std::byte*>& data,
                      const device::KernelContext& context);

// cat (`gather`) and split: args[0] is whole, the others are its pieces in order, as bytes.
void cat(const plan::Op& op, const std::vector<std::byte*>& data, bool gather);

// chunk_cat (`gather`) and chunk_split. args[0] is `ranks` parts of equal size; KernelOp::segments says, for
// each of the other args in order, where its pieces are in a part (`first`) and how long one is (`elements`
// of KernelOp::dtype). Where an arg is shorter than its pieces, chunk_cat fills the rest with zeros.
void chunk_cat(const plan::Op& op, const std::vector<std::byte*>& data, const device::KernelContext& context,
               bool gather);

}  // namespace shardscope::trainer::executor
