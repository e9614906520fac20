// Which mesh is the best and why, of each job if the command line gives keys outside the mesh several values.
#pragma once

#include <string>
#include <vector>

#include "trainer/planner/row.h"

namespace shardscope::trainer::cli {

// Empty unless meshes of several sizes were simulated.
std::string mesh_reasons(const std::vector<planner::Row>& rows);

}  // namespace shardscope::trainer::cli
