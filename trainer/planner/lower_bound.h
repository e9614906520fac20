// What a configuration cannot stay below, from a few operations and the schedule alone, so that a search need
// not plan and simulate what cannot win.
//
// Unknown (0) are those of an mlp, of context groups, and of a pipeline whose schedule is a file or whose
// stages differ in layers (parallel.stages). Of a model with experts only the bytes are known.
//
// A pipeline of two layers is planned on two places; it gives the kernels, the collectives between them, the
// parameters and the saved activations of a layer, and of what comes before the first and after the last.
//
//   bytes    of the place that needs the most: parameters and optimizer state, and with them its gradients or
//            what the micro-batches in flight save
//   seconds  of a step: the longest path through the actions of the schedule, each as long as its kernels and
//            their collectives. Left out: gathers, reductions, messages, the optimizer and the host
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

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
    LowerBounds();
    ~LowerBounds();
    // `row` has its settings and its job.
    LowerBound of(const Row& row, const sim::Cluster& cluster);

    struct Parts;

  private:
    const Parts& parts_of(const Row& row, const sim::Cluster& cluster, bool splits);

    std::mutex mutex_;
    std::map<std::string, std::unique_ptr<Parts>> parts_;  // by the settings that decide them
};

}  // namespace shardscope::trainer::planner
