// Sums in the order of the ranks, the same bits as the local process group's.
#pragma once

#include <memory>

#include "trainer/comm/transfer.h"

namespace shardscope::trainer::comm {

// reduce_scatter and all_reduce. Every member sends piece j of its input to the member at place j, its owner,
// which sums each block once it has arrived from all. In an all_reduce, the owner sends each block to all as
// soon as it is summed. A member sends and receives as much as on a ring.
std::unique_ptr<Transfer> make_ordered_sums(const TransferContext& context);

}  // namespace shardscope::trainer::comm
