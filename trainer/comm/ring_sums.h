// Sums along a ring of the members: each sends to the next place and receives from the one before only, which
// suits wires between many hosts.
#pragma once

#include <memory>

#include "trainer/comm/transfer.h"

namespace shardscope::trainer::collectives {

// reduce_scatter, and all_reduce. The sum of piece j begins at place j + 1 and ends at its owner: another
// order for each piece, the same on every run. What travels has the collective's type: sums of bf16 are
// rounded at each hop, as NCCL's are, where ordered sums are rounded once.
std::unique_ptr<Transfer> make_ring_sums(const TransferContext& context);

}  // namespace shardscope::trainer::collectives
