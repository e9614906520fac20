// Why the best mesh is the best: the fastest rows that lack one of its axes, or have one that it lacks,
// beside it, and where their steps take longer.
#pragma once

#include <string>
#include <vector>

#include "trainer/planner/meshes.h"
#include "trainer/planner/row.h"

namespace shardscope::trainer::planner {

// The kinds of meshes that are compared with one: with an axis more or less, and with neither tensor groups
// nor a pipeline, or both.
struct OtherKind {
    std::string name;  // "without a pipeline"
    KindOfMesh kind;
};
std::vector<OtherKind> kinds_beside(const KindOfMesh& own);

struct Rival {
    std::string mesh;          // "without a pipeline"
    const Row* row = nullptr;  // the fastest that fits, or the one that comes nearest to it
    std::string loses;         // "12.3 % slower: 45.6 ms more exposed in shard 32 over 32 nodes at 47 GB/s"
};

// Of the same job the nearest row with an axis more or less, and with neither tensor groups nor a pipeline,
// or both. Empty if the rows are of one kind.
std::vector<Rival> rivals_of(const Row& best, const std::vector<Row>& rows);

// The parts of a step's time: "kernels 3,047.0 ms, exposed in tensor 4 in a node at 360 GB/s 522.7 ms,
// rest 6.4 ms".
std::string parts_text(const Row& row);

}  // namespace shardscope::trainer::planner
