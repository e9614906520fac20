// The `local` process group: collectives between ranks that are threads of one process. Each rank names its
// buffers and gets the meeting of that collective; when all have arrived at it, each rank's part pulls its
// data straight from the others' buffers. Sums are in rank order, element by element, scaled once at the end,
// so that the bits depend on the number of ranks alone.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "trainer/executor/scheduler.h"
#include "trainer/plan/plan.h"

namespace shardscope::trainer {

struct CollectiveCall {
    Operation operation = Operation::barrier;
    float* output = nullptr;
    const float* input = nullptr;
    std::int64_t full_elements = 0;  // all_gather: of the output; reduce_scatter: of the input; else of both
    bool average = false;            // sums are divided by the number of ranks
};

class LocalGroup {
  public:
    explicit LocalGroup(int ranks) : ranks_(ranks) {}
    int ranks() const { return ranks_; }

    // Rank `rank`'s `sequence`-th collective. Thread safe. Throws std::logic_error if the ranks disagree on
    // the operation or its size.
    std::shared_ptr<Meeting> join(int rank, std::int64_t sequence, const CollectiveCall& call);

  private:
    struct Open {
        std::shared_ptr<Meeting> meeting;
        std::shared_ptr<std::vector<CollectiveCall>> calls;
        CollectiveCall first;  // what the others must agree with
        int joined = 0;
    };
    int ranks_;
    std::mutex mutex_;
    std::map<std::int64_t, Open> open_;  // by sequence; a meeting leaves when all ranks have joined
};

}  // namespace shardscope::trainer
