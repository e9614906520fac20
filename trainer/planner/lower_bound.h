// What a configuration cannot stay below, from a few operations and the schedule alone, so that a search need
// not plan and simulate what cannot win.
//
// Unknown (0) are those of an mlp and of a pipeline whose schedule is a file or whose stages differ in layers
// (parallel.stages). The others follow from what a layer, and what comes before the first and after the last,
// do and keep (pieces.h).
//
//   bytes    of the place that needs the most: parameters and optimizer state, and with them its gradients or
//            what the micro-batches in flight save, the gathered parameters of the stages, and the gradients
//            that wait for the last micro-batch
//   seconds  of a step: the longest path through the actions of the schedule and the messages between places,
//            each action as long as its kernels and their collectives (of tensor, context and expert groups),
//            or as the ring of its context group. Left out: gathers, reductions, the optimizer and the host
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "trainer/planner/pieces.h"
#include "trainer/planner/row.h"
#include "trainer/sim/cluster.h"

namespace shardscope::trainer::planner {

struct LowerBound {
    std::int64_t bytes = 0;  // allocated on some rank
    double seconds = 0;      // per step
};

// For the rows of one search. Safe to call from several threads.
class LowerBounds {
  public:
    // `row` has its settings and its job.
    LowerBound of(const Row& row, const sim::Cluster& cluster);

  private:
    const Pieces& pieces_of_row(const Row& row, const sim::Cluster& cluster, bool splits);

    std::mutex mutex_;
    std::map<std::string, std::unique_ptr<Pieces>> pieces_;  // by the settings that decide them
};

}  // namespace shardscope::trainer::planner
