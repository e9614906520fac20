// Whether a run's losses diverge: from some step on, to the last, three or more are above a multiple of the
// first that this run has, whether it resumes or not. A loss that comes down again does not count. A loss
// that is not finite ends the run (run_training) and counts, too.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "trainer/executor/step_metrics.h"

namespace shardscope::trainer::executor {

class Divergence {
  public:
    // `above`: times the first loss; 0: no loss is too large.
    explicit Divergence(double above) : above_(above) {}

    // Losses in the order of steps, each finite.
    void add(const MetricPlace& place, double loss);
    // Where the losses rose for good, as known so far.
    std::optional<MetricPlace> since() const { return above_in_a_row_ < kLeastSteps ? std::nullopt : since_; }
    // One sentence, while there is a `since`.
    std::string sentence() const;

  private:
    static constexpr int kLeastSteps = 3;  // one bad batch at the end is no divergence

    double above_, last_ = 0;
    std::int64_t above_in_a_row_ = 0;
    std::optional<double> first_;
    std::optional<MetricPlace> since_;
};

}  // namespace shardscope::trainer::executor
