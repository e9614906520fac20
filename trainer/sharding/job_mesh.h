// The mesh of a job's ranks.
#pragma once

#include "trainer/plan/mesh.h"

namespace shardscope::trainer::job {
struct Job;
}

namespace shardscope::trainer::sharding {

plan::Mesh mesh_of(const job::Job& job);

}  // namespace shardscope::trainer::sharding
