#include "traces/schema/marked_metrics.h"

#include <algorithm>

#include "traces/schema/text.h"

namespace shardscope::traces::schema {

MarkedMetrics marked_metrics(std::string_view text) {
    MarkedMetrics metrics;
    if (!text.starts_with(kMetricMark)) return metrics;
    text.remove_prefix(kMetricMark.size());
    while (!text.empty()) {
        const std::string_view word = text.substr(0, text.find(' '));
        text.remove_prefix(std::min(word.size() + 1, text.size()));
        const std::size_t equals = word.find('=');
        if (equals == std::string_view::npos || equals == 0) continue;
        const std::string_view key = word.substr(0, equals), value = word.substr(equals + 1);
        if (key == "step" || key == "sample") {
            const auto number = number_of<std::int64_t>(value);
            if (number && *number >= 0) (key == "step" ? metrics.step : metrics.sample) = *number;
        } else if (const auto number = number_of<double>(value)) {
            metrics.values.emplace_back(key, *number);
        }
    }
    return metrics;
}

}  // namespace shardscope::traces::schema
