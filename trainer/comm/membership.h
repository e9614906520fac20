// Which ranks take part in a communicator's collectives, and whether a call can be one of them.
#pragma once

#include <vector>

#include "trainer/device/device.h"
#include "trainer/plan/mesh.h"

namespace shardscope::trainer::comm {

// The ranks of a communicator, by place; empty if `rank` is not a member.
std::vector<int> members_of(const plan::Mesh& mesh, int rank, plan::CommunicatorId communicator);

// Throws std::logic_error if the rank is not the member at that place, or processes have no such collective.
void check_call(const plan::Mesh& mesh, int rank, const device::CollectiveLaunch& collective);

}  // namespace shardscope::trainer::comm
