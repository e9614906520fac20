#include "trainer/executor/divergence.h"

#include <fmt/core.h>

namespace shardscope::trainer::executor {

void Divergence::add(const MetricPlace& place, double loss) {
    if (!first_) first_ = loss;
    last_ = loss;
    if (above_ <= 0 || loss <= above_ * *first_) {
        above_in_a_row_ = 0;
    } else if (++above_in_a_row_ == 1) {
        since_ = place;
    }
}

std::string Divergence::sentence() const {
    return fmt::format(
        "the run diverged: from step {} on (counted from 0) the loss stayed above {} times its first value; "
        "it was {:.4g} at first and {:.4g} at the end; lower optimizer.lr, lengthen optimizer.warmup_steps, "
        "or clip the gradients (train.clip_norm)",
        since_->step, above_, *first_, last_);
}

}  // namespace shardscope::trainer::executor
