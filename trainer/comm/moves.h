// Collectives that only move data.
#pragma once

#include <memory>

#include "trainer/comm/transfer.h"

namespace shardscope::trainer::comm {

// An all_gather or all_to_all: every member sends a piece to each other one, its only one or that for it.
// Each piece crosses the wire as often as on a ring, without the ring's latency.
std::unique_ptr<Transfer> make_exchange(const TransferContext& context);

// From place 0: little data goes directly to all; much goes along a chain of the members, block by block, so
// that no member sends the data more than once.
std::unique_ptr<Transfer> make_broadcast(const TransferContext& context);

// From place 0 to place 1.
std::unique_ptr<Transfer> make_message(const TransferContext& context);

}  // namespace shardscope::trainer::comm
