// Who takes part in a communicator's collectives, and whether a call can be one of them.
#pragma once

#include <vector>

#include "trainer/device/device.h"
#include "trainer/plan/mesh.h"

namespace shardscope::trainer::collectives {

// The ranks of a communicator that the rank is a member of, by place; empty: it is none.
std::vector<int> members_of(const Mesh& mesh, int rank, int communicator);

// Throws std::logic_error: the rank is no member at that place, or no such collective goes between processes.
void check_call(const Mesh& mesh, int rank, const CollectiveLaunch& collective);

}  // namespace shardscope::trainer::collectives
