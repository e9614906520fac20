// See peak_index.h.
#include "traces/analysis/memory/peak_index.h"

#include <algorithm>

#include "traces/analysis/memory/peak_search.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces {

PeakIndex::PeakIndex(const Trace& trace, RankPlace rank, MemorySpace space) {
    const MemoryEvents& memory = trace.memory;
    const std::vector<bool> counts = rows_of_fullest_devices(trace);
    std::vector<std::int64_t> totals;
    std::int64_t total = 0;
    for (std::size_t i = 0; i < memory.size(); ++i) {
        if (memory.rank[i] != rank.value || memory.space[i] != space || (!counts.empty() && !counts[i]))
            continue;
        total += memory.bytes[i];
        times_.push_back(memory.time[i]);
        totals.push_back(total);
    }
    tree_.resize(2 * totals.size());
    std::copy(totals.begin(), totals.end(), tree_.begin() + static_cast<std::ptrdiff_t>(totals.size()));
    for (std::size_t i = totals.size(); i-- > 1;) tree_[i] = std::max(tree_[2 * i], tree_[2 * i + 1]);
}

std::int64_t PeakIndex::most(std::int64_t start, std::int64_t end) const {
    const auto after_start = std::upper_bound(times_.begin(), times_.end(), start);
    const auto at_end = std::lower_bound(after_start, times_.end(), end);
    auto low = static_cast<std::size_t>(after_start - times_.begin());
    auto high = static_cast<std::size_t>(at_end - times_.begin());
    const std::size_t n = times_.size();
    std::int64_t most = low > 0 ? tree_[n + low - 1] : 0;  // the total at `start`
    for (low += n, high += n; low < high; low /= 2, high /= 2) {
        if (low % 2 == 1) most = std::max(most, tree_[low++]);
        if (high % 2 == 1) most = std::max(most, tree_[--high]);
    }
    return most;
}

}  // namespace shardscope::traces
