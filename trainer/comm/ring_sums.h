// Sums along a ring of the members: each sends only to the next place and receives only from the previous
// one, which suits wires between many hosts.
#pragma once

#include <memory>

#include "trainer/comm/transfer.h"

namespace shardscope::trainer::comm {

// reduce_scatter and all_reduce. The sum of piece j begins at place j + 1 and ends at its owner: each piece
// has another order, the same in every run. Partial sums travel in the collective's type: sums of bf16 are
// rounded at each hop, as in NCCL, whereas ordered sums are rounded once.
std::unique_ptr<Transfer> make_ring_sums(const TransferContext& context);

}  // namespace shardscope::trainer::comm
