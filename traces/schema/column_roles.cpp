// Roles by column name, with exceptions for single tables. A name means the same in every other table.
#include "traces/schema/column_roles.h"

#include <algorithm>
#include <array>

namespace shardscope::traces::schema {

namespace {

struct NamedRole {
    std::string_view column;
    ColumnRole role;
};

constexpr std::array kByName = std::to_array<NamedRole>({
    {"start", ColumnRole::time},
    {"end", ColumnRole::time},
    {"time", ColumnRole::time},
    {"timestamp", ColumnRole::time},
    {"qmdBulkReleaseDone", ColumnRole::time},
    {"qmdPreexitDone", ColumnRole::time},
    {"qmdLastCtaDone", ColumnRole::time},
    {"nameId", ColumnRole::string},
    {"demangledName", ColumnRole::string},
    {"shortName", ColumnRole::string},
    {"mangledName", ColumnRole::string},
    {"textId", ColumnRole::string},
    {"jsonTextId", ColumnRole::string},
    {"correlationId", ColumnRole::correlation},
    {"deviceId", ColumnRole::device},
    {"srcDeviceId", ColumnRole::device},
    {"dstDeviceId", ColumnRole::device},
    {"gpuId", ColumnRole::device},
    {"globalPid", ColumnRole::process},
    {"pid", ColumnRole::pid},
    {"processId", ColumnRole::pid},
    {"globalTid", ColumnRole::thread},
    {"endGlobalTid", ColumnRole::thread},
    {"fromTid", ColumnRole::thread},
    {"toTid", ColumnRole::thread},
    {"fromTime", ColumnRole::time},
    {"toTime", ColumnRole::time},
    {"created", ColumnRole::time},
    {"started", ColumnRole::time},
    {"completed", ColumnRole::time},
    {"hostId", ColumnRole::string},
    {"annotationId", ColumnRole::string},
    {"stackId", ColumnRole::string},
    {"groupNameId", ColumnRole::string},
    {"groupDescriptionId", ColumnRole::string},
    {"dataTypeId", ColumnRole::string},
    {"sizesId", ColumnRole::string},
    {"externalId", ColumnRole::kept},
    {"globalVid", ColumnRole::machine},
    {"hwId", ColumnRole::hardware},
    {"vmId", ColumnRole::virtual_machine},
    {"domainId", ColumnRole::domain},
    {"rangeId", ColumnRole::range},
    {"rank", ColumnRole::rank},
    {"firstRank", ColumnRole::rank},
    {"module", ColumnRole::module},
    {"unit", ColumnRole::unit},
    {"groupId", ColumnRole::group},
    {"communicator", ColumnRole::group},
    {"schemaId", ColumnRole::payload_schema},
    {"binaryData", ColumnRole::payload},
    // Numbers within a process, a context, a stream, a domain or a communicator, or without an owner.
    {"contextId", ColumnRole::kept},
    {"greenContextId", ColumnRole::kept},
    {"parentContextId", ColumnRole::kept},
    {"srcContextId", ColumnRole::kept},
    {"dstContextId", ColumnRole::kept},
    {"streamId", ColumnRole::kept},
    {"nullStreamId", ColumnRole::kept},
    {"gridId", ColumnRole::kept},
    {"graphNodeId", ColumnRole::kept},
    {"originalGraphNodeId", ColumnRole::kept},
    {"graphId", ColumnRole::kept},
    {"originalGraphId", ColumnRole::kept},
    {"graphExecId", ColumnRole::kept},
    {"eventId", ColumnRole::kept},
    {"eventSyncId", ColumnRole::kept},
    {"callchainId", ColumnRole::kept},
    {"deprecatedSrcId", ColumnRole::kept},
    {"importedMemoryPoolProcessId", ColumnRole::kept},
    {"category", ColumnRole::kept},
    {"scopeId", ColumnRole::kept},
    {"parentScopeId", ColumnRole::kept},
    {"cudaId", ColumnRole::kept},
    {"cuDevice", ColumnRole::kept},
    {"pwGpuId", ColumnRole::kept},
    {"luid", ColumnRole::kept},
    {"numaNodeId", ColumnRole::kept},
    {"root", ColumnRole::kept},
});

struct TableColumnRole {
    std::string_view table, column;
    ColumnRole role;
};

constexpr std::array kExceptions = std::to_array<TableColumnRole>({
    {"TARGET_INFO_GPU", "id", ColumnRole::device},
    {"TARGET_INFO_GPU", "vmId", ColumnRole::machine},
    {"CUPTI_ACTIVITY_KIND_CUDA_EVENT", "timestamp", ColumnRole::time_or_zero},
    {"CUDA_GPU_MEMORY_USAGE_EVENTS", "name", ColumnRole::text_or_string},
    {"NVTX_EVENTS", "int64Value", ColumnRole::module_payload},
    {"NVTX_PAYLOAD_SCHEMA_ENTRIES", "type", ColumnRole::payload_type},
    {"SHARD_MODULES", "id", ColumnRole::module},
    {"SHARD_MODULES", "parent", ColumnRole::module},
    {"SHARD_UNITS", "id", ColumnRole::unit},
    {"SHARD_PREDICTION_PARTS", "id", ColumnRole::prediction_part},
    {"SHARD_MEMORY", "category", ColumnRole::kept},
    {"SHARD_SAMPLES", "eventId", ColumnRole::string},
    // The difference of two clocks does not depend on time 0.
    {"SHARD_CLOCKS", "offset", ColumnRole::kept},
    {"SHARD_CLOCKS", "uncertainty", ColumnRole::kept},
    // The rank within the communicator does not change.
    {"SHARD_NCCL_COMMUNICATORS", "rank", ColumnRole::kept},
    {"SHARD_NCCL_OPERATIONS", "rank", ColumnRole::kept},
});

constexpr std::array<std::string_view, 8> kMade = {"StringIds",         "TARGET_INFO_SESSION_START_TIME",
                                                   "ANALYSIS_DETAILS",  "META_DATA_EXPORT",
                                                   "META_DATA_CAPTURE", "SHARD_STATE",
                                                   "SHARD_RUN",         "SHARD_TOTALS"};

}  // namespace

ColumnRole column_role(std::string_view table, const SchemaColumn& column) {
    for (const TableColumnRole& exception : kExceptions) {
        if (exception.table == table && exception.column == column.name) return exception.role;
    }
    const auto named = std::find_if(kByName.begin(), kByName.end(),
                                    [&](const NamedRole& n) { return n.column == column.name; });
    return named != kByName.end() ? named->role : ColumnRole::undecided;
}

bool is_decided(std::string_view table, const SchemaColumn& column) {
    if (column_role(table, column) != ColumnRole::undecided) return true;
    return column.unit != "id" && column.unit != "ns" && column.unit != "rank" &&
           !column.unit.starts_with("ISO");
}

TableRole table_role(const SchemaTable& table) {
    if (!table.rows.empty() || table.name.starts_with("ENUM_") || table.name.starts_with("SHARD_ENUM_") ||
        std::find(kMade.begin(), kMade.end(), table.name) != kMade.end()) {
        return TableRole::made;
    }
    // Equal rows of these are merged. The first three describe the recording, not the recorded run, and a
    // slice has them all; of metrics that no rank reports, slices of several ranks have equal rows.
    if (table.name == "DIAGNOSTIC_EVENT" || table.name == "SHARD_CLOCKS" || table.name == "SHARD_STOPS" ||
        table.name == "SHARD_METRICS")
        return TableRole::facts;
    for (const SchemaColumn& column : table.columns) {
        const ColumnRole role = column_role(table.name, column);
        if (role == ColumnRole::time || role == ColumnRole::time_or_zero) return TableRole::events;
        // An event whose time is that of the work with its correlation id.
        if (table.name == "SHARD_COLLECTIVES" && role == ColumnRole::correlation) return TableRole::events;
    }
    return TableRole::facts;
}

}  // namespace shardscope::traces::schema
