#include "traces/store/nccl/nccl_kernels.h"

#include <functional>
#include <set>
#include <unordered_map>

#include <fmt/core.h>

#include "traces/schema/enums.h"
#include "traces/schema/joined.h"
#include "traces/store/columns/device_streams.h"
#include "traces/store/columns/names.h"

namespace shardscope::traces::store {
namespace {

std::vector<NcclKernel> read_kernels(Database& database) {
    std::unordered_map<std::int64_t, schema::Operation> names;
    Statement strings(database, "SELECT id, value FROM StringIds WHERE value LIKE '%nccl%' AND " +
                                    schema::communication_kernel_sql("value"));
    while (strings.step()) {
        names.emplace(strings.integer(0), operation_of_kernel(strings.text(1)));
    }
    std::vector<NcclKernel> kernels;
    if (names.empty()) return kernels;
    std::vector<std::int64_t> ids;
    ids.reserve(names.size());
    for (const auto& [id, operation] : names) ids.push_back(id);
    Statement rows(database,
                   fmt::format("SELECT start, \"end\", deviceId, globalPid, correlationId, shortName FROM "
                               "CUPTI_ACTIVITY_KIND_KERNEL WHERE shortName IN ({}) ORDER BY start",
                               schema::joined(ids, ", ")));
    while (rows.step()) {
        kernels.push_back({.start = rows.integer(0),
                           .end = rows.integer(1),
                           .device = rows.integer(2),
                           .global_pid = rows.integer(3),
                           .correlation = rows.integer(4),
                           .operation = names.at(rows.integer(5))});
    }
    return kernels;
}

// In Nsight's exports correlation ids are unique only within a process.
void read_launches(Database& database, std::vector<NcclKernel>& kernels) {
    if (!database.has_table("CUPTI_ACTIVITY_KIND_RUNTIME")) return;
    struct Hash {
        std::size_t operator()(const std::pair<std::int64_t, std::int64_t>& key) const {
            return std::hash<std::int64_t>()(key.first * 0x9E3779B97F4A7C15 ^ key.second);
        }
    };
    std::unordered_multimap<std::pair<std::int64_t, std::int64_t>, std::size_t, Hash> wanted;
    for (std::size_t k = 0; k < kernels.size(); ++k) {
        if (kernels[k].correlation != 0)
            wanted.emplace(std::pair(kernels[k].correlation, kernels[k].global_pid), k);
    }
    Statement calls(database, "SELECT correlationId, globalTid, start FROM CUPTI_ACTIVITY_KIND_RUNTIME");
    while (calls.step()) {
        const auto [first, last] =
            wanted.equal_range({calls.integer(0), calls.integer(1) & schema::kPidMask});
        for (auto it = first; it != last; ++it) {
            NcclKernel& kernel = kernels[it->second];
            if (kernel.launch_tid != kUnknownNumber) continue;
            kernel.launch_tid = calls.integer(1);
            kernel.launched = calls.integer(2);
        }
    }
}

}  // namespace

std::vector<NcclKernel> read_nccl_kernels(Database& database) {
    std::vector<NcclKernel> kernels = read_kernels(database);
    if (!kernels.empty()) read_launches(database, kernels);
    return kernels;
}

DeviceRanks::DeviceRanks(Database& database) {
    if (database.has_table("SHARD_RANKS")) {
        Statement rows(database, "SELECT deviceId, globalPid, rank FROM SHARD_RANKS");
        while (rows.step()) {
            const int rank = static_cast<int>(rows.integer(2));
            ranks_[{rows.integer(0), rows.integer(1)}] = rank;
            const auto [known, added] = by_device_.emplace(rows.integer(0), rank);
            if (!added) known->second = -1;  // several: the device alone is ambiguous
        }
    }
    if (!ranks_.empty()) {
        count_processes();
        return;
    }
    std::set<DeviceOfProcess> pairs;
    for (const char* table :
         {"CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET"}) {
        if (!database.has_column(table, "globalPid")) continue;
        Statement distinct(database, fmt::format("SELECT DISTINCT deviceId, globalPid FROM {}", table));
        while (distinct.step()) pairs.emplace(distinct.integer(0), distinct.integer(1));
    }
    for (const DeviceOfProcess& pair : ranks_of_processes(pairs))
        ranks_.emplace(pair, static_cast<int>(ranks_.size()));
    count_processes();
}

void DeviceRanks::count_processes() {
    for (const auto& [place, rank] : ranks_) {
        if (place.second == 0) continue;
        const auto [known, added] = by_process_.emplace(place.second, rank);
        if (!added) known->second = -1;
    }
}

int DeviceRanks::of(std::int64_t device, std::int64_t global_pid) const {
    if (const auto it = ranks_.find({device, global_pid}); it != ranks_.end()) return it->second;
    if (const auto it = by_process_.find(global_pid); it != by_process_.end() && it->second >= 0)
        return it->second;
    const auto it = by_device_.find(device);
    return it != by_device_.end() ? it->second : -1;
}

}  // namespace shardscope::traces::store
