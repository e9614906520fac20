#include "traces/store/columns/memory_usage.h"

#include <fmt/core.h>

#include "traces/schema/enums.h"
#include "traces/store/sqlite/sqlite.h"

namespace shardscope::traces::store {

void add_memory_usage(Database& database) {
    // A rank without a description has the device of its own number, as in the loader. Nsight's table does
    // not contain host memory, nor files.
    database.execute(fmt::format(
        R"(CREATE TEMP TABLE devices_with_usage AS SELECT DISTINCT deviceId FROM CUDA_GPU_MEMORY_USAGE_EVENTS;
INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS
       (start, globalPid, deviceId, contextId, address, bytes, memKind, memoryOperationType, name, streamId)
SELECT m.time, ifnull(r.globalPid, 0), ifnull(r.deviceId, m.rank), 1, m.address, abs(m.bytes),
       CASE m.space WHEN {device} THEN {kind_device} ELSE {kind_pinned} END, m.bytes < 0, s.value, m.streamId
FROM SHARD_MEMORY m
LEFT JOIN SHARD_RANKS r ON r.rank = m.rank
LEFT JOIN StringIds s ON s.id = m.nameId
WHERE m.space NOT IN ({host}, {disk}) AND ifnull(r.deviceId, m.rank) NOT IN (SELECT deviceId FROM devices_with_usage)
ORDER BY m.rowid;
DROP TABLE temp.devices_with_usage;)",
        fmt::arg("device", static_cast<int>(schema::MemorySpace::device)),
        fmt::arg("host", static_cast<int>(schema::MemorySpace::host)),
        fmt::arg("disk", static_cast<int>(schema::MemorySpace::disk)),
        fmt::arg("kind_device", schema::kMemKindDevice), fmt::arg("kind_pinned", schema::kMemKindPinned)));
}

}  // namespace shardscope::traces::store
