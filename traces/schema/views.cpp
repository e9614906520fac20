// Views with readable names: ids resolved to names, the rank on every row, times in ns.
#include <array>
#include <string>

#include <fmt/core.h>

#include "traces/schema/communication_kernels.h"
#include "traces/schema/enums.h"
#include "traces/schema/schema.h"

namespace shardscope::traces::schema {

namespace {

constexpr SchemaColumn kRank = {"rank", "", "rank",
                                "The rank; NULL where the device or thread belongs to none."};
constexpr SchemaColumn kDevice = {"device", "", "id", "The rank's device."};
constexpr SchemaColumn kStream = {"stream", "", "id", "The stream within the rank."};
constexpr SchemaColumn kStreamName = {"stream_name", "", "", "What the stream is for."};
constexpr SchemaColumn kThread = {"thread", "", "", "The host thread's name."};
constexpr SchemaColumn kStart = {"start_ns", "", "ns", "When it began, since the start of the capture."};
constexpr SchemaColumn kEnd = {"end_ns", "", "ns", "When it ended."};
constexpr SchemaColumn kDuration = {"duration_ns", "", "ns", "How long it took."};
constexpr SchemaColumn kCorrelation = {"correlation", "", "id", "Ties work to the call that launched it."};
constexpr SchemaColumn kUnit = {"unit", "", "", "The FSDP unit's name."};
constexpr SchemaColumn kModule = {"module", "", "", "The module's name."};
constexpr SchemaColumn kPhase = {"phase", "", "", "The part of the step."};

constexpr std::array kKernels = {
    kRank,
    kDevice,
    kStream,
    kStreamName,
    SchemaColumn{"name", "", "", "Short name of the kernel."},
    SchemaColumn{"full_name", "", "", "Name with its signature."},
    SchemaColumn{"communication", "", "0/1", "1: the kernel of a collective."},
    kStart,
    kEnd,
    kDuration,
    kCorrelation,
};
// {0}: communication_kernel_sql() of both names; {1}: collective_kernels_sql(), evaluated only if a kernel
// has a collective's correlation id but not such a name. An additional device of a process belongs to the
// process's rank (device_streams.h).
constexpr std::string_view kKernelsSql =
    R"(SELECT coalesce(r.rank, (SELECT max(p.rank) FROM SHARD_RANKS p WHERE p.globalPid = k.globalPid GROUP BY p.globalPid HAVING count(*) = 1)) AS rank,
       k.deviceId AS device, k.streamId AS stream,
       t.name AS stream_name, s.value AS name, d.value AS full_name,
       ({0} OR (coalesce(k.correlationId, 0) <> 0
                AND k.correlationId IN (SELECT correlationId FROM SHARD_COLLECTIVES)
                AND k.rowid IN (SELECT kernel FROM ({1}) WHERE kernel IS NOT NULL))) AS communication,
       k.start AS start_ns, k."end" AS end_ns, k."end" - k.start AS duration_ns, k.correlationId AS correlation
FROM CUPTI_ACTIVITY_KIND_KERNEL k
LEFT JOIN StringIds s ON s.id = k.shortName
LEFT JOIN StringIds d ON d.id = k.demangledName
LEFT JOIN SHARD_RANKS r ON r.deviceId = k.deviceId
LEFT JOIN SHARD_STREAMS t ON t.rank = r.rank AND t.streamId = k.streamId)";

constexpr std::array kMemcpys = {
    kRank,
    kDevice,
    kStream,
    kStreamName,
    SchemaColumn{"kind", "", "", "From where to where: \"Host-to-Device\"."},
    SchemaColumn{"bytes", "", "bytes", "Bytes copied."},
    SchemaColumn{"source", "", "", "Memory that was read."},
    SchemaColumn{"destination", "", "", "Memory that was written."},
    kStart,
    kEnd,
    kDuration,
    kCorrelation,
};
constexpr std::string_view kMemcpysSql =
    R"(SELECT coalesce(r.rank, (SELECT max(p.rank) FROM SHARD_RANKS p WHERE p.globalPid = c.globalPid GROUP BY p.globalPid HAVING count(*) = 1)) AS rank,
       c.deviceId AS device, c.streamId AS stream,
       t.name AS stream_name, o.label AS kind, c.bytes AS bytes, a.label AS source, b.label AS destination,
       c.start AS start_ns, c."end" AS end_ns, c."end" - c.start AS duration_ns, c.correlationId AS correlation
FROM CUPTI_ACTIVITY_KIND_MEMCPY c
LEFT JOIN ENUM_CUDA_MEMCPY_OPER o ON o.id = c.copyKind
LEFT JOIN ENUM_CUDA_MEM_KIND a ON a.id = c.srcKind
LEFT JOIN ENUM_CUDA_MEM_KIND b ON b.id = c.dstKind
LEFT JOIN SHARD_RANKS r ON r.deviceId = c.deviceId
LEFT JOIN SHARD_STREAMS t ON t.rank = r.rank AND t.streamId = c.streamId)";

constexpr std::array kCollectives = {
    kRank,
    SchemaColumn{"operation", "", "", "all_gather, reduce_scatter, all_reduce ..."},
    SchemaColumn{"bytes", "", "bytes", "Size of the full buffer after gathering; NULL if unknown."},
    SchemaColumn{"padding", "", "bytes", "Padding included in `bytes`."},
    SchemaColumn{"group_id", "", "id", "The communicator."},
    SchemaColumn{"group_size", "", "ranks", "Ranks in it."},
    SchemaColumn{"sequence", "", "", "Number in the communicator, equal on all its ranks."},
    kUnit,
    kPhase,
    kStream,
    kStart,
    kEnd,
    kDuration,
    kCorrelation,
    SchemaColumn{"axis", "", "",
                 "The axis of the mesh that the communicator belongs to. Since schema version 7."},
};
// {0}: collective_kernels_sql(); {1}: the number of a barrier, which has no bytes.
constexpr std::string_view kCollectivesSql =
    R"(SELECT c.rank AS rank, o.name AS operation, CASE WHEN c.operation = {1} THEN c.bytes ELSE nullif(c.bytes, 0) END AS bytes, c.padding AS padding,
       c.groupId AS group_id, c.groupSize AS group_size, c.sequence AS sequence, u.name AS unit, p.name AS phase,
       k.streamId AS stream, k.start AS start_ns, k."end" AS end_ns, k."end" - k.start AS duration_ns,
       c.correlationId AS correlation, g.axis AS axis
FROM ({0}) w
CROSS JOIN SHARD_COLLECTIVES c ON c.rowid = w.collective
LEFT JOIN CUPTI_ACTIVITY_KIND_KERNEL k ON k.rowid = w.kernel
LEFT JOIN SHARD_ENUM_OPERATION o ON o.id = c.operation
LEFT JOIN SHARD_ENUM_PHASE p ON p.id = c.phase
LEFT JOIN SHARD_UNITS u ON u.id = c.unit
LEFT JOIN SHARD_GROUPS g ON g.groupId = c.groupId)";

constexpr std::array kUnits = {
    kRank,
    SchemaColumn{"id", "", "id", "The unit. SHARD_UNITS.id"},
    SchemaColumn{"name", "", "", "The unit's name."},
    kModule,
    SchemaColumn{"elements", "", "elements", "Parameters in it."},
    SchemaColumn{"padded_elements", "", "elements", "The same with padding."},
    SchemaColumn{"shard_bytes", "", "bytes", "What the rank keeps."},
    SchemaColumn{"bytes", "", "bytes", "What a gather yields."},
    SchemaColumn{"gathers", "", "count", "all_gathers of it in the whole run."},
    SchemaColumn{"gathered_bytes", "", "bytes", "Their bytes; NULL where they are unknown."},
    SchemaColumn{"gather_ns", "", "ns", "Their time on the device."},
    SchemaColumn{"reductions", "", "count",
                 "reduce_scatters and all_reduces of its gradients in the whole run."},
    SchemaColumn{"reduced_bytes", "", "bytes", "Their bytes; NULL where they are unknown."},
    SchemaColumn{"reduce_ns", "", "ns", "Their time on the device."},
};
// {}: collective_kernels_sql().
constexpr std::string_view kUnitsSql =
    R"(SELECT r.rank AS rank, u.id AS id, u.name AS name, m.name AS module, u.elements AS elements,
       u.paddedElements AS padded_elements, u.shardBytes AS shard_bytes, u.bytes AS bytes,
       coalesce(w.gathers, 0) AS gathers,
       CASE WHEN w.gathers > 0 THEN nullif(w.gathered_bytes, 0) ELSE 0 END AS gathered_bytes,
       coalesce(w.gather_ns, 0) AS gather_ns, coalesce(w.reductions, 0) AS reductions,
       CASE WHEN w.reductions > 0 THEN nullif(w.reduced_bytes, 0) ELSE 0 END AS reduced_bytes,
       coalesce(w.reduce_ns, 0) AS reduce_ns
FROM SHARD_RANKS r
CROSS JOIN SHARD_UNITS u
LEFT JOIN SHARD_MODULES m ON m.id = u.module
LEFT JOIN (SELECT c.rank AS rank, c.unit AS unit,
                  sum(c.operation = 0) AS gathers,
                  sum(CASE WHEN c.operation = 0 THEN c.bytes ELSE 0 END) AS gathered_bytes,
                  sum(CASE WHEN c.operation = 0 THEN k."end" - k.start ELSE 0 END) AS gather_ns,
                  sum(c.operation IN (1, 2)) AS reductions,
                  sum(CASE WHEN c.operation IN (1, 2) THEN c.bytes ELSE 0 END) AS reduced_bytes,
                  sum(CASE WHEN c.operation IN (1, 2) THEN k."end" - k.start ELSE 0 END) AS reduce_ns
           FROM ({}) t
           CROSS JOIN SHARD_COLLECTIVES c ON c.rowid = t.collective
           LEFT JOIN CUPTI_ACTIVITY_KIND_KERNEL k ON k.rowid = t.kernel
           GROUP BY c.rank, c.unit) w ON w.rank = r.rank AND w.unit = u.id)";

constexpr std::array kModules = {
    kRank,
    SchemaColumn{"id", "", "id", "The module. SHARD_MODULES.id"},
    SchemaColumn{"parent", "", "id", "The module around it."},
    SchemaColumn{"name", "", "", "As ranges show it: \"Linear_0\"."},
    SchemaColumn{"class", "", "", "\"Linear\"."},
    SchemaColumn{"path", "", "", "PyTorch's full name: \"net.0\"."},
    kUnit,
    SchemaColumn{"parameters", "", "elements", "Of its own, without its children's."},
    SchemaColumn{"calls", "", "count", "Forward calls in the whole run, recomputed ones included."},
    SchemaColumn{"host_ns", "", "ns", "Time of these calls on the host, children included."},
};
constexpr std::string_view kModulesSql =
    R"(SELECT r.rank AS rank, m.id AS id, m.parent AS parent, m.name AS name, m.className AS class, m.path AS path,
       u.name AS unit, m.parameters AS parameters, coalesce(w.calls, 0) AS calls, coalesce(w.host_ns, 0) AS host_ns
FROM SHARD_RANKS r
CROSS JOIN SHARD_MODULES m
LEFT JOIN SHARD_UNITS u ON u.id = m.unit
LEFT JOIN (SELECT t.rank AS rank, n.int64Value AS module, count(*) AS calls, sum(n."end" - n.start) AS host_ns
           FROM NVTX_EVENTS n
           JOIN SHARD_THREADS t ON t.globalTid = n.globalTid
           WHERE n.int64Value IS NOT NULL AND n.text LIKE 'nn.Module: %'
           GROUP BY t.rank, n.int64Value) w ON w.rank = r.rank AND w.module = m.id)";

constexpr std::array kSteps = {
    kRank,
    SchemaColumn{"step", "", "", "The step's number."},
    kStart,
    kEnd,
    SchemaColumn{"duration_ns", "", "ns",
                 "Duration of the host step: the range on the rank's thread. `shardscope-trace steps` also "
                 "prints its window, which ends with the device's work."},
    SchemaColumn{"loss", "", "", "Mean over the global batch."},
};
constexpr std::string_view kStepsSql =
    R"(SELECT s.rank AS rank, s.step AS step, s.start AS start_ns, s."end" AS end_ns, s."end" - s.start AS duration_ns,
       l.loss AS loss
FROM SHARD_STEPS s
LEFT JOIN SHARD_LOSSES l ON l.step = s.step)";

constexpr std::array kMetrics = {
    SchemaColumn{"rank", "", "rank", "The rank that reports it; NULL: it is the whole job's."},
    SchemaColumn{"step", "", "", "The step's number; NULL: it belongs to no step."},
    SchemaColumn{"sample", "", "samples", "Samples that training has used by the end of the step."},
    SchemaColumn{"time_ns", "", "ns", "When it was known."},
    SchemaColumn{"name", "", "",
                 "\"loss\", \"validation_loss\", \"learning_rate\", \"tokens_per_second\", \"peak_bytes\" …"},
    SchemaColumn{"value", "", "", "Its value; NULL where it was not a number."},
};
// A loss takes its sample and time from another metric of its step or, in older files, the step's end.
constexpr std::string_view kMetricsSql =
    R"(SELECT m.rank AS rank, m.step AS step, m.sample AS sample, m.time AS time_ns, s.value AS name, m.value AS value
FROM SHARD_METRICS m
LEFT JOIN StringIds s ON s.id = m.nameId
UNION ALL
SELECT NULL, l.step, k.sample, coalesce(k.time, e."end"), 'loss', l.loss
FROM SHARD_LOSSES l
LEFT JOIN (SELECT step, min(sample) AS sample, min(time) AS time FROM SHARD_METRICS WHERE rank IS NULL GROUP BY step) k
       ON k.step = l.step
LEFT JOIN (SELECT step, max("end") AS "end" FROM SHARD_STEPS GROUP BY step) e ON e.step = l.step)";

constexpr std::array kCounters = {
    SchemaColumn{"rank", "", "rank", "The rank; NULL where it belongs to none."},
    SchemaColumn{"host", "", "", "The machine's name; NULL where unknown."},
    SchemaColumn{"device", "", "", "Which device of the host: its number in SHARD_DEVICES; NULL: none."},
    SchemaColumn{"time_ns", "", "ns", "When it was read."},
    SchemaColumn{"name", "", "", "\"gpu_power_watts\", \"process_cpu_cores\", \"reserved_bytes\" …"},
    SchemaColumn{"value", "", "", "Its value from then on; NULL where it was not a number."},
};
constexpr std::string_view kCountersSql =
    R"(SELECT nullif(c.rank, -1) AS rank, coalesce(h.value, nullif(r.host, '')) AS host, c.device AS device, c.time AS time_ns,
       s.value AS name, c.value AS value
FROM SHARD_COUNTERS c
LEFT JOIN StringIds s ON s.id = c.nameId
LEFT JOIN StringIds h ON h.id = c.hostId
LEFT JOIN SHARD_RANKS r ON r.rank = c.rank)";

constexpr std::array kSamples = {
    kRank,
    kThread,
    SchemaColumn{"time_ns", "", "ns", "When the thread was looked at."},
    SchemaColumn{"event", "", "", "What the profiler counts: \"cpu-clock\", \"cycles\"."},
    SchemaColumn{"weight", "", "",
                 "Of that event since the thread's last sample: ns of cpu-clock, else a count."},
    SchemaColumn{"function", "", "", "The innermost frame."},
    SchemaColumn{"stack", "", "", "The frames, innermost first, one a line."},
};
constexpr std::string_view kSamplesSql =
    R"(SELECT t.rank AS rank, h.value AS thread, p.time AS time_ns, e.value AS event, p.weight AS weight,
       CASE instr(s.value, char(10)) WHEN 0 THEN s.value ELSE substr(s.value, 1, instr(s.value, char(10)) - 1) END AS function,
       s.value AS stack
FROM SHARD_SAMPLES p
LEFT JOIN StringIds e ON e.id = p.eventId
LEFT JOIN StringIds s ON s.id = p.stackId
LEFT JOIN SHARD_THREADS t ON t.globalTid = p.globalTid
LEFT JOIN (SELECT globalTid, min(nameId) AS nameId FROM ThreadNames GROUP BY globalTid) w ON w.globalTid = p.globalTid
LEFT JOIN StringIds h ON h.id = w.nameId)";

constexpr std::array kMemory = {
    kRank,
    SchemaColumn{"time_ns", "", "ns", "When, in the host program's order."},
    SchemaColumn{"bytes", "", "bytes", "Positive: allocated; negative: freed."},
    SchemaColumn{"category", "", "", "Category of the memory's content."},
    SchemaColumn{"space", "", "", "device, pinned, host or disk."},
    kPhase,
    kUnit,
    kModule,
    SchemaColumn{"name", "", "", "The buffer's name."},
    SchemaColumn{"address", "", "address", "Address of the block; ties a free to its allocation."},
    kStream,
};
constexpr std::string_view kMemorySql =
    R"(SELECT e.rank AS rank, e.time AS time_ns, e.bytes AS bytes, c.name AS category, a.name AS space, p.name AS phase,
       u.name AS unit, m.name AS module, s.value AS name, e.address AS address, e.streamId AS stream
FROM SHARD_MEMORY e
LEFT JOIN SHARD_ENUM_CATEGORY c ON c.id = e.category
LEFT JOIN SHARD_ENUM_SPACE a ON a.id = e.space
LEFT JOIN SHARD_ENUM_PHASE p ON p.id = e.phase
LEFT JOIN SHARD_UNITS u ON u.id = e.unit
LEFT JOIN SHARD_MODULES m ON m.id = e.module
LEFT JOIN StringIds s ON s.id = e.nameId)";

constexpr std::array kPredictions = {
    kRank,
    SchemaColumn{"part", "", "", "unit, module, buffer or step."},
    SchemaColumn{"name", "", "",
                 "Name of the unit, module or buffer, or the step's number; NULL for what belongs to none."},
    SchemaColumn{"bytes", "", "bytes",
                 "Bytes of the part at the predicted peak; for a step, the step's own predicted peak."},
};
constexpr std::string_view kPredictionsSql =
    R"(SELECT p.rank AS rank, e.name AS part,
       CASE e.name WHEN 'unit' THEN u.name WHEN 'module' THEN m.name WHEN 'step' THEN p.id ELSE p.name END AS name,
       p.bytes AS bytes
FROM SHARD_PREDICTION_PARTS p
LEFT JOIN SHARD_ENUM_PART e ON e.id = p.part
LEFT JOIN SHARD_UNITS u ON u.id = p.id AND e.name = 'unit'
LEFT JOIN SHARD_MODULES m ON m.id = p.id AND e.name = 'module')";

constexpr std::array kRanges = {
    kRank,
    kThread,
    SchemaColumn{"name", "", "", "The range's name."},
    SchemaColumn{"domain", "", "", "NULL for the default domain, else its name: \"NCCL\"."},
    kModule,
    kStart,
    kEnd,
    kDuration,
    SchemaColumn{"id", "", "id",
                 "The row of NVTX_EVENTS. Of ranges with equal times on a thread, the one with the lowest id "
                 "encloses the others."},
};
constexpr std::string_view kRangesSql =
    R"(SELECT t.rank AS rank, h.value AS thread, coalesce(n.text, s.value) AS name, d.text AS domain, m.name AS module,
       n.start AS start_ns, n."end" AS end_ns, n."end" - n.start AS duration_ns, n.rowid AS id
FROM NVTX_EVENTS n
LEFT JOIN StringIds s ON s.id = n.textId
LEFT JOIN SHARD_THREADS t ON t.globalTid = n.globalTid
LEFT JOIN (SELECT globalTid, min(nameId) AS nameId FROM ThreadNames GROUP BY globalTid) w ON w.globalTid = n.globalTid
LEFT JOIN StringIds h ON h.id = w.nameId
LEFT JOIN (SELECT domainId, min(text) AS text FROM NVTX_EVENTS WHERE eventType = 75 GROUP BY domainId) d
       ON d.domainId = n.domainId
LEFT JOIN SHARD_MODULES m ON m.id = n.int64Value
WHERE n.eventType IN (59, 60))";

constexpr std::array kCalls = {
    kRank,        kThread, SchemaColumn{"name", "", "", "The call's name, with CUDA's version suffix."},
    kStart,       kEnd,    kDuration,
    kCorrelation,
};
constexpr std::string_view kCallsSql =
    R"(SELECT t.rank AS rank, h.value AS thread, s.value AS name, c.start AS start_ns, c."end" AS end_ns,
       c."end" - c.start AS duration_ns, c.correlationId AS correlation
FROM CUPTI_ACTIVITY_KIND_RUNTIME c
LEFT JOIN StringIds s ON s.id = c.nameId
LEFT JOIN SHARD_THREADS t ON t.globalTid = c.globalTid
LEFT JOIN (SELECT globalTid, min(nameId) AS nameId FROM ThreadNames GROUP BY globalTid) w ON w.globalTid = c.globalTid
LEFT JOIN StringIds h ON h.id = w.nameId)";

constexpr std::array kTotals = {
    kRank,
    SchemaColumn{"device", "", "id", "The device; NULL for what host threads did."},
    SchemaColumn{"kind", "", "", "\"kernel\", \"memcpy\", \"memset\", \"call\" or \"range\"."},
    SchemaColumn{"name", "", "", "Of the kernel (its short name), call or range."},
    SchemaColumn{"count", "", "count", "How many."},
    SchemaColumn{"total_ns", "", "ns", "Sum of their durations."},
    SchemaColumn{"mean_ns", "", "ns", "Mean duration."},
    SchemaColumn{"shortest_ns", "", "ns", "Shortest duration."},
    SchemaColumn{"longest_ns", "", "ns", "Longest duration."},
};
constexpr std::string_view kTotalsSql = R"(SELECT r.rank AS rank, t.deviceId AS device,
       CASE t.source WHEN 'CUPTI_ACTIVITY_KIND_KERNEL' THEN 'kernel' WHEN 'CUPTI_ACTIVITY_KIND_MEMCPY' THEN 'memcpy'
            WHEN 'CUPTI_ACTIVITY_KIND_MEMSET' THEN 'memset' WHEN 'CUPTI_ACTIVITY_KIND_RUNTIME' THEN 'call'
            ELSE 'range' END AS kind,
       s.value AS name, t.count AS count, t.total AS total_ns, t.total / t.count AS mean_ns,
       t.shortest AS shortest_ns, t.longest AS longest_ns
FROM SHARD_TOTALS t
LEFT JOIN StringIds s ON s.id = t.nameId
LEFT JOIN SHARD_RANKS r ON r.deviceId = t.deviceId)";

constexpr std::array kNccl = {
    kRank,
    SchemaColumn{"communicator", "", "id", "NCCL's hash of the communicator."},
    SchemaColumn{"communicator_rank", "", "", "The rank's number in the communicator."},
    SchemaColumn{"ranks", "", "ranks", "Ranks in it."},
    SchemaColumn{"operation", "", "", "\"all_gather\"."},
    SchemaColumn{"sequence", "", "", "Number of this operation in the communicator."},
    SchemaColumn{"count", "", "elements", "Elements, as given to NCCL."},
    SchemaColumn{"data_type", "", "", "NCCL's name of their type."},
    SchemaColumn{"algorithm", "", "", "\"RING\", \"TREE\" …"},
    SchemaColumn{"protocol", "", "", "\"LL\", \"LL128\", \"SIMPLE\"."},
    SchemaColumn{"channels", "", "count", "Channels that carry it."},
    kStart,
    kEnd,
};
constexpr std::string_view kNcclSql =
    R"(SELECT t.rank AS rank, o.communicator AS communicator, o.rank AS communicator_rank, c.ranks AS ranks,
       e.name AS operation, o.sequence AS sequence, o.count AS count, o.dataType AS data_type,
       o.algorithm AS algorithm, o.protocol AS protocol, o.channels AS channels, o.start AS start_ns,
       o."end" AS end_ns
FROM SHARD_NCCL_OPERATIONS o
LEFT JOIN SHARD_ENUM_OPERATION e ON e.id = o.operation
LEFT JOIN SHARD_NCCL_COMMUNICATORS c ON c.communicator = o.communicator AND c.globalPid = o.globalPid
       AND c.rank = o.rank
LEFT JOIN SHARD_THREADS t ON t.globalTid = o.globalTid)";

// The text lives as long as the program.
std::array<SchemaView, 15> make_views() {
    static const std::string kernels = fmt::format(
        fmt::runtime(kKernelsSql), communication_kernel_sql("s.value", "d.value"), collective_kernels_sql());
    static const std::string collectives = fmt::format(
        fmt::runtime(kCollectivesSql), collective_kernels_sql(), static_cast<int>(Operation::barrier));
    static const std::string units = fmt::format(fmt::runtime(kUnitsSql), collective_kernels_sql());
    return {{
        {"kernels", "Kernels on devices.", kKernels, kernels},
        {"memcpys", "Copies between memories.", kMemcpys, kMemcpysSql},
        {"collectives", "Collectives with their times on the device.", kCollectives, collectives, 7},
        {"units", "FSDP units, for each rank, and what gathering and reducing them took.", kUnits, units},
        {"modules", "The module tree, for each rank, and its forward calls.", kModules, kModulesSql},
        {"steps", "Training steps as the ranks' host threads ran them.", kSteps, kStepsSql},
        {"metrics", "The loss and the other metrics of training. Since schema version 8.", kMetrics,
         kMetricsSql, 8},
        {"counters", "Values that change over time: processors, GPUs, adapters. Since schema version 9.",
         kCounters, kCountersSql, 9},
        {"samples", "Where threads were when a profiler looked at them. Since schema version 9.", kSamples,
         kSamplesSql, 9},
        {"memory", "Allocations and frees.", kMemory, kMemorySql},
        {"predictions", "The memory account's prediction in parts. Since schema version 2.", kPredictions,
         kPredictionsSql, 2},
        {"ranges", "Ranges on host threads.", kRanges, kRangesSql},
        {"calls", "Calls of the runtime and driver API.", kCalls, kCallsSql},
        {"totals", "Sums by name, made when the run ends. Since schema version 3.", kTotals, kTotalsSql, 3},
        {"nccl_operations", "What NCCL reports about each operation. Since schema version 3.", kNccl,
         kNcclSql, 3},
    }};
}

}  // namespace

std::span<const SchemaView> views() {
    static const std::array<SchemaView, 15> all = make_views();
    return all;
}

}  // namespace shardscope::traces::schema
