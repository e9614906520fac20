// Percentiles, medians and means of sets of values.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace shardscope::traces::analysis {

// The value below which the share `p` (0..1) of the values lies, by linear interpolation between the two
// nearest ranks (the default of NumPy and of SQL's percentile_cont); 0 for no values. Reorders the values;
// linear time.
template <typename Value>
double percentile(std::span<Value> values, double p) {
    if (values.empty()) return 0;
    const double place = p * static_cast<double>(values.size() - 1);
    const auto below = static_cast<std::size_t>(place);
    const auto at = values.begin() + static_cast<std::ptrdiff_t>(below);
    std::nth_element(values.begin(), at, values.end());
    const auto low = static_cast<double>(*at);
    const double part = place - static_cast<double>(below);
    if (part <= 0) return low;
    return low + part * (static_cast<double>(*std::min_element(at + 1, values.end())) - low);
}

// The middle value, the lower or the upper of two; 0 for no values. Reorders the values; linear time.
template <typename Value>
Value lower_median(std::vector<Value>& values) {
    if (values.empty()) return 0;
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}
template <typename Value>
Value upper_median(std::vector<Value>& values) {
    if (values.empty()) return 0;
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

// The mean of `value` over the rows; 0 without rows.
template <class Rows, class Value>
double mean_over(const Rows& rows, Value value) {
    double sum = 0;
    for (const auto& row : rows) sum += value(row);
    return rows.empty() ? 0 : sum / static_cast<double>(rows.size());
}

}  // namespace shardscope::traces::analysis
