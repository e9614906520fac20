// Finds rows by correlation id. Ids are unique in our files, but only within a process in Nsight's. They are
// usually consecutive, so that a table over their range is small; if they are not (an artificial file), they
// are sorted instead. Internal to the store.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace shardscope::traces::store {

class CorrelationIndex {
  public:
    // Row i has the id `correlation[i]` (0: none) in the process with the number `owner_process[owner[i]]`.
    CorrelationIndex(std::span<const std::int64_t> correlation, std::span<const std::uint32_t> owner,
                     std::span<const std::int64_t> owner_process);

    // A process to search. Process 0 is unknown: its rows match every other process, and a search in it
    // covers all processes (find() only). Places and `correlation` must outlive all searches.
    struct Place {
        int own = -1, unknown = -1;
        bool everywhere = false;
    };
    Place place(std::int64_t process) const;

    // The first row of the id, -1 none.
    std::int32_t find(std::int64_t correlation, const Place& place) const;
    // The same, and removes that row, so that the next call returns the next row of the id.
    std::int32_t take(std::int64_t correlation, const Place& place);

  private:
    struct Table {
        std::int64_t first_id = 0, last_id = 0;
        std::size_t rows = 0;
        std::vector<std::int32_t> dense;                            // by id - first_id: the first row, -1
        std::vector<std::pair<std::int64_t, std::int32_t>> sparse;  // (id, its first row), sorted

        const std::int32_t* at(std::int64_t id) const;
    };
    template <typename Visit>
    void each_table(const Place& place, Visit visit) const;

    std::span<const std::int64_t> correlation_;
    mutable std::once_flag all_once_;
    mutable std::unique_ptr<CorrelationIndex> all_;  // all rows as if of one process; made when needed
    std::unordered_map<std::int64_t, int> processes_;
    std::vector<Table> tables_;
    std::vector<std::int32_t> next_;  // the next row of the same id and process, -1 none
};

}  // namespace shardscope::traces::store
