// Finds rows by correlation id. Ids are unique in our files, but only within a process in Nsight's. Internal
// to the store.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <vector>

namespace shardscope::traces {

class CorrelationIndex {
  public:
    void add(std::int64_t correlation, std::int64_t pid, std::size_t index) {
        if (correlation != 0) entries_.push_back({correlation, pid, static_cast<std::int32_t>(index)});
    }
    void sort() {
        std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
            return std::tie(a.correlation, a.index) < std::tie(b.correlation, b.index);
        });
    }
    // The first row of `correlation` in that process (0: of any) for which `accept` holds, else -1.
    template <typename Accept>
    std::int32_t find(std::int64_t correlation, std::int64_t pid, Accept accept) const {
        if (correlation == 0) return -1;
        auto it = std::lower_bound(entries_.begin(), entries_.end(), correlation,
                                   [](const Entry& e, std::int64_t c) { return e.correlation < c; });
        for (; it != entries_.end() && it->correlation == correlation; ++it) {
            if ((pid == 0 || it->pid == 0 || it->pid == pid) && accept(it->index)) return it->index;
        }
        return -1;
    }
    std::int32_t find(std::int64_t correlation, std::int64_t pid) const {
        return find(correlation, pid, [](std::int32_t) { return true; });
    }

  private:
    struct Entry {
        std::int64_t correlation, pid;
        std::int32_t index;
    };
    std::vector<Entry> entries_;
};

}  // namespace shardscope::traces
