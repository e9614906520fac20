#include "traces/schema/metric_kinds.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace shardscope::traces::schema {

namespace {

constexpr std::array kKinds = {
    MetricKind{"loss", "Training loss of the step's batch: SHARD_LOSSES has it.", Reduction::mean},
    MetricKind{"validation_loss", "Loss of the data that is held out to validate on.", Reduction::mean},
    MetricKind{"accuracy", "Share of that data whose class was found.", Reduction::mean},
    MetricKind{"test_loss", "Loss of the data that is held out to test on, at the end.", Reduction::mean},
    MetricKind{"test_accuracy", "Share of that data whose class was found.", Reduction::mean},
    MetricKind{"epoch", "Epochs of the data by the end of the step: 1.5 in the middle of the second.",
               Reduction::same},
    MetricKind{"learning_rate", "The rate with which the step updated.", Reduction::same},
    MetricKind{"gradient_norm", "Norm of all gradients together, before they are clipped.", Reduction::same},
    MetricKind{"loss_scale", "In fp16, the factor of the loss whose gradients were computed.",
               Reduction::same},
    MetricKind{"skipped_steps", "Steps so far that updated nothing, because a gradient overflowed.",
               Reduction::same},
    MetricKind{"tokens_per_second", "Tokens of the step over its time.", Reduction::sum},
    MetricKind{"images_per_second", "The same for images.", Reduction::sum},
    MetricKind{"samples_per_second", "The same for other samples.", Reduction::sum},
    MetricKind{"allocated_bytes", "Allocated device memory when the loss was read.", Reduction::largest},
    MetricKind{"peak_bytes", "Its peak since the set-up.", Reduction::largest},
    MetricKind{"diverged", "1, at the step from which the run diverged.", Reduction::same},
};

}  // namespace

std::string_view words_of(Reduction reduction) {
    constexpr std::array<std::string_view, 4> kWords = {"", "mean over ranks", "sum over ranks",
                                                        "largest of the ranks"};
    return kWords[static_cast<std::size_t>(reduction)];
}

std::span<const MetricKind> metric_kinds() {
    return kKinds;
}

Reduction reduction_of(std::string_view metric) {
    const auto* kind = std::find_if(kKinds.begin(), kKinds.end(),
                                    [&](const MetricKind& known) { return known.name == metric; });
    if (kind != kKinds.end()) return kind->over_ranks;
    return metric.ends_with("_per_second") ? Reduction::sum
           : metric.ends_with("_bytes")    ? Reduction::largest
                                           : Reduction::mean;
}

double reduced(Reduction reduction, std::span<const double> values) {
    const double sum = std::accumulate(values.begin(), values.end(), 0.0);
    switch (reduction) {
        case Reduction::same:
            break;
        case Reduction::mean:
            return sum / static_cast<double>(values.size());
        case Reduction::sum:
            return sum;
        case Reduction::largest:
            return *std::max_element(values.begin(), values.end());
    }
    return values.front();
}

}  // namespace shardscope::traces::schema
