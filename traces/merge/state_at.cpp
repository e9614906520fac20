#include "traces/merge/state_at.h"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/core.h>

#include "traces/merge/part.h"

namespace shardscope::traces::merge {

namespace {

// Reads the rows in order of time and returns those that still hold when their owner's first window begins;
// `state` gives the key of a row's state and whether the row ends that state.
template <typename Key, typename Owner, typename State>
std::vector<std::int64_t> fold(Part& part, const std::string& sql, Owner owner, State state) {
    std::map<Key, std::int64_t> live;  // state -> rowid
    store::Statement row(part.database, sql);
    while (row.step()) {
        const SliceWindows::Windows& windows = owner(row);
        if (windows.empty() || row.integer(1) >= beginning(windows)) continue;
        const auto [key, ends] = state(row);
        if (ends) {
            live.erase(key);
        } else {
            live[key] = row.integer(0);
        }
    }
    std::vector<std::int64_t> rows;
    rows.reserve(live.size());
    for (const auto& [key, rowid] : live) rows.push_back(rowid);
    std::sort(rows.begin(), rows.end());
    return rows;
}

// False if the slice begins with the trace, so that there is nothing before it.
bool begins_later(const SliceWindows& windows) {
    return windows.hull().from != INT64_MIN;
}

}  // namespace

std::int64_t beginning(const SliceWindows::Windows& windows) {
    return windows.empty() ? INT64_MIN : windows.front().from;
}

Window whole(const SliceWindows::Windows& windows) {
    if (windows.empty()) return {INT64_MAX, INT64_MIN};
    return {windows.front().from, windows.back().to};
}

std::vector<std::int64_t> live_allocations(Part& part, const SliceWindows& windows) {
    if (!begins_later(windows) || !part.has_table("SHARD_MEMORY")) return {};
    using Block = std::tuple<std::int64_t, std::int64_t, std::int64_t>;  // rank, space, address
    return fold<Block>(
        part,
        fmt::format("SELECT rowid, time, rank, space, address, bytes FROM SHARD_MEMORY WHERE +time < {} "
                    "ORDER BY time, rowid",
                    windows.hull().to),
        [&](const store::Statement& row) -> const auto& { return windows.of_rank(row.integer(2)); },
        [](const store::Statement& row) {
            return std::pair(Block(row.integer(2), row.integer(3), row.integer(4)), row.integer(5) <= 0);
        });
}

std::vector<std::int64_t> live_segments(Part& part, const SliceWindows& windows) {
    if (!begins_later(windows) || !part.has_table("SHARD_SEGMENTS")) return {};
    using Segment = std::tuple<std::int64_t, std::int64_t>;  // rank, address
    return fold<Segment>(
        part,
        fmt::format("SELECT rowid, time, rank, address, bytes FROM SHARD_SEGMENTS WHERE +time < {} ORDER BY "
                    "time, rowid",
                    windows.hull().to),
        [&](const store::Statement& row) -> const auto& { return windows.of_rank(row.integer(2)); },
        [](const store::Statement& row) {
            return std::pair(Segment(row.integer(2), row.integer(3)), row.integer(4) <= 0);
        });
}

std::vector<std::int64_t> live_cuda_allocations(Part& part, const SliceWindows& windows) {
    if (!begins_later(windows) || !part.has_table("CUDA_GPU_MEMORY_USAGE_EVENTS")) return {};
    // process, device, kind of memory, address
    using Block = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>;
    return fold<Block>(
        part,
        fmt::format("SELECT rowid, start, globalPid, deviceId, memKind, address, memoryOperationType FROM "
                    "CUDA_GPU_MEMORY_USAGE_EVENTS WHERE +start < {} ORDER BY start, rowid",
                    windows.hull().to),
        [&](const store::Statement& row) -> const auto& {
            return windows.of_device(row.integer(3), row.integer(2));
        },
        [](const store::Statement& row) {
            return std::pair(Block(row.integer(2), row.integer(3), row.integer(4), row.integer(5)),
                             row.integer(6) == 1);
        });
}

std::vector<std::int64_t> last_values(Part& part, const SliceWindows& windows) {
    if (!begins_later(windows) || !part.has_table("SHARD_COUNTERS")) return {};
    using Counter =
        std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>;  // rank, name, host, device
    const bool has_host = part.database.has_column("SHARD_COUNTERS", "hostId");
    return fold<Counter>(
        part,
        fmt::format(
            "SELECT rowid, time, rank, nameId, {} FROM SHARD_COUNTERS WHERE +time < {} ORDER BY time, rowid",
            has_host ? "hostId, device" : "NULL, NULL", windows.hull().to),
        [&](const store::Statement& row) -> const auto& { return windows.of_rank(row.integer(2)); },
        [](const store::Statement& row) {
            return std::pair(
                Counter(row.integer(2), row.integer(3), row.integer_or(4, 0), row.integer_or(5, -1)), false);
        });
}

}  // namespace shardscope::traces::merge
