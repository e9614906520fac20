// The mesh of a job's ranks.
#pragma once

#include "trainer/job/job.h"
#include "trainer/plan/mesh.h"

namespace shardscope::trainer::sharding {

plan::Mesh mesh_of(const job::Job& job);

// The same model on one tensor group, with no other axis.
job::Job on_one_tensor_group(job::Job job);

}  // namespace shardscope::trainer::sharding
