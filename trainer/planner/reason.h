// Why the best mesh is the best: the fastest rows that lack one of its axes, or have one that it lacks,
// beside it, and where their steps take longer.
#pragma once

#include <string>
#include <vector>

#include "trainer/planner/row.h"

namespace shardscope::trainer::planner {

struct Rival {
    std::string mesh;          // "without a pipeline"
    const Row* row = nullptr;  // the fastest that fits, or the one that comes nearest to it
    std::string loses;         // "12.3 % slower: 45.6 ms more exposed in shard 32 over 32 nodes at 47 GB/s"
};

// Rows of the same job with and without tensor groups, with and without a pipeline, and with neither. Empty
// if the rows have one size.
std::vector<Rival> rivals_of(const Row& best, const std::vector<Row>& rows);

// The parts of a step's time: "kernels 3,047.0 ms, exposed in tensor 4 in a node at 360 GB/s 522.7 ms,
// rest 6.4 ms".
std::string parts_text(const Row& row);

}  // namespace shardscope::trainer::planner
