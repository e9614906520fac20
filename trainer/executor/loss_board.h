// Collects the ranks' losses: a step is reported when all ranks have submitted theirs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "trainer/executor/step_metrics.h"

namespace shardscope::trainer::executor {

// The loss of a step over all ranks.
struct BoardLoss {
    std::int64_t step = 0;
    double loss = 0;           // for each piece rank by rank, summed in double, divided once by their number
    std::int32_t module = -1;  // first with a non-finite output, of the lowest rank that has one; -1: none
    std::int64_t pieces = 0;   // number summed, of all ranks
    StepMemory memory;         // the largest of all ranks
    std::optional<double> gradient_norm;  // over all ranks, each of which knows it; none: not reported
};

class LossBoard {
  public:
    // How many ranks there are, how many of them compute losses, and how many together compute one.
    struct Size {
        int ranks = 1, with_losses = 1, parts = 1;
    };
    // `on_step` is called in the order of steps, on the thread of the rank that submitted last, under a lock;
    // tell() rethrows the exceptions of on_step.
    LossBoard(const Size& size, std::function<void(const BoardLoss&)> on_step);

    // `losses`: of the rank's micro-batches (or batches), as many as on the others that compute losses; none
    // if it computes none. Steps increase; one that the rank has submitted before is ignored.
    void tell(int rank, std::int64_t step, std::span<const double> losses, std::int32_t module = -1,
              const StepMemory& memory = {}, std::optional<double> norm = {});

  private:
    struct Row {
        std::vector<std::vector<double>> losses;  // by rank
        std::vector<std::int32_t> modules;        // by rank
        StepMemory memory;                        // the largest so far
        std::optional<double> norm;
        std::size_t told = 0;
    };
    BoardLoss sum(std::int64_t step, const Row& row) const;

    std::size_t ranks_, with_losses_;
    int parts_;
    std::function<void(const BoardLoss&)> on_step_;
    std::mutex mutex_;
    std::map<std::int64_t, Row> rows_;  // steps that some rank has not submitted yet
    std::vector<std::int64_t> latest_;  // step submitted, by rank
};

}  // namespace shardscope::trainer::executor
