// The meshes that a planner tries: how the ranks of a job are divided into tensor groups, context groups,
// shard groups, copies of the parameters, expert groups and places of a pipeline, with what a mesh decides
// (the samples and micro-batches of a rank, and whether blocks are checkpointed). Every mesh takes the job's
// samples per step.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "trainer/plan/mesh.h"
#include "trainer/planner/row.h"
#include "trainer/planner/space.h"

namespace shardscope::trainer::planner {

// Which axes a mesh has several ranks on, of those that divide the arithmetic: tensor, context, expert,
// pipeline.
inline constexpr std::size_t kKindAxes = 4;
using KindOfMesh = std::array<bool, kKindAxes>;
inline KindOfMesh kind_of(const job::Job& job) {
    return {job.parallel.tensor > 1, job.parallel.context > 1, job.parallel.expert > 1,
            job.parallel.pipeline > 1};
}

// Throws JobError as candidates() does.
std::vector<Candidate> mesh_candidates(const std::vector<Given>& given, const JobMaker& make_job);

// The axes with several ranks, the innermost first, and how their groups lie on the nodes.
std::vector<MeshAxis> mesh_axes(const plan::Mesh& mesh, const sim::Cluster& cluster,
                                const std::vector<job::SlowLink>& slow_links = {});
// "tensor 8 in a node, shard 4 over 4 nodes, data 2 over 2 nodes". Empty if there is one rank.
std::string placement_text(const std::vector<MeshAxis>& axes);

}  // namespace shardscope::trainer::planner
