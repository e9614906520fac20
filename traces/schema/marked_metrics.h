// Metrics in the text of a mark or range, as a program writes them in one line of its loop:
// torch.cuda.nvtx.mark("metric loss=2.31 step=4").
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardscope::traces::schema {

inline constexpr std::string_view kMetricMark = "metric ";  // how the text begins

// "metric NAME=VALUE ... [step=N] [sample=N]". Empty if the text is not of that form.
struct MarkedMetrics {
    std::int64_t step = -1, sample = -1;
    std::vector<std::pair<std::string, double>> values;
};
MarkedMetrics marked_metrics(std::string_view text);

}  // namespace shardscope::traces::schema
