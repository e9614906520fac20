// Sums of durations by name, for SHARD_TOTALS: one pass over the rows with a hash table; SQLite's GROUP BY
// (a sort) would take twenty times as long. Internal to the store.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "traces/store/sqlite/sqlite.h"

namespace shardscope::traces::store {

class Totals {
  public:
    // A table whose rows are summed; source() returns null for other tables.
    struct Source {
        std::string_view table;
        std::string_view device, process, name;  // its columns; device may be empty
        std::string_view where = {};             // which rows count
    };
    static const Source* source(std::string_view table);

    // `device` is -1 for events of host threads; `duration` is not negative.
    void add(const Source& source, std::int64_t device, std::int64_t pid, std::int64_t name,
             std::int64_t duration);

    // Replaces the content of SHARD_TOTALS: by source, longest total first.
    void write(Database& database) const;

  private:
    struct Key {
        const Source* source = nullptr;
        std::int64_t device = -1, pid = 0, name = 0;
        bool operator==(const Key&) const = default;
    };
    struct Hash {
        std::size_t operator()(const Key& key) const;
    };
    struct Sum {
        std::int64_t count = 0, total = 0, shortest = 0, longest = 0;
    };
    std::unordered_map<Key, Sum, Hash> sums_;
    Key last_key_;
    Sum* last_ = nullptr;  // rows of one name often follow each other
};

}  // namespace shardscope::traces::store
