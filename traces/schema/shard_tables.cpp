// What Nsight Systems has no table for: the run, its ranks and steps, the module tree, collectives, memory by
// category, the memory account's prediction. An id of "none" is NULL.
#include <array>

#include "traces/schema/enums.h"
#include "traces/schema/schema.h"

namespace shardscope::traces {

namespace {

constexpr std::string_view kInt = "INTEGER";
constexpr std::string_view kIntNN = "INTEGER NOT NULL";
constexpr std::string_view kKey = "INTEGER NOT NULL PRIMARY KEY";
constexpr std::string_view kText = "TEXT";
constexpr std::string_view kTextNN = "TEXT NOT NULL";

constexpr SchemaColumn kRank = {"rank", kIntNN, "rank", "The rank. SHARD_RANKS.rank"};
constexpr SchemaColumn kUnit = {"unit", kInt, "id", "The FSDP unit. SHARD_UNITS.id"};
constexpr SchemaColumn kPhase = {"phase", kIntNN, "enum", "The part of the step. SHARD_ENUM_PHASE"};

constexpr std::array kState = {
    SchemaColumn{"ended", kIntNN, "0/1", "1 once the run has ended; 0: it was killed, or still runs."},
    SchemaColumn{"dropped", kIntNN, "count",
                 "Events that were lost: a buffer was full, or the device gave them no valid times."},
};

constexpr std::array kRun = {
    SchemaColumn{"key", "TEXT NOT NULL PRIMARY KEY", "",
                 "A key of the job file, or a fact: \"model.width\"."},
    SchemaColumn{"value", kTextNN, "", "Its value, as text."},
};

constexpr std::array kRanks = {
    SchemaColumn{"rank", kKey, "rank", "The rank."},
    SchemaColumn{"deviceId", kIntNN, "id", "Its device. TARGET_INFO_GPU.id"},
    SchemaColumn{"globalPid", kIntNN, "id", "Its process, serialized. PROCESSES.globalPid"},
    SchemaColumn{"globalTid", kIntNN, "id", "Its host thread, serialized. ThreadNames.globalTid"},
    SchemaColumn{"host", kTextNN, "", "The machine's name."},
    SchemaColumn{"data", kIntNN, "", "Place in the mesh: data parallel coordinate."},
    SchemaColumn{"shard", kIntNN, "", "Place in the mesh: shard coordinate."},
    SchemaColumn{"tensor", kIntNN, "", "Place in the mesh: tensor parallel coordinate."},
    SchemaColumn{"pipeline", kIntNN, "", "Place in the mesh: pipeline stage."},
    SchemaColumn{
        "localRank", kInt, "",
        "Its number among the job's ranks on its host, as the launcher says. Since schema version 5."},
    SchemaColumn{"cpus", kText, "",
                 "The processors that its process may run on: \"0-3,8\". Since schema version 5."},
};

constexpr std::array kClocks = {
    kRank,
    SchemaColumn{"time", kIntNN, "ns", "When it was measured, since the start of the capture."},
    SchemaColumn{"offset", kIntNN, "ns",
                 "What rank 0's CLOCK_MONOTONIC read then, less what that of the rank's host read. Of two "
                 "clocks as they ran: merged times are on one clock already."},
    SchemaColumn{"uncertainty", kIntNN, "ns",
                 "How far the offset may be off: half of the shortest round trip."},
};

constexpr std::array kStops = {
    SchemaColumn{"rank", kKey, "rank", "The rank that says it. SHARD_RANKS.rank"},
    SchemaColumn{"time", kIntNN, "ns", "When it was told, since the start of the capture."},
    SchemaColumn{"firstRank", kInt, "rank", "The rank whose failure ended the job; NULL: not known."},
    SchemaColumn{"lost", kIntNN, "0/1", "1: that rank is gone or silent; 0: it said itself what is wrong."},
    SchemaColumn{"reason", kTextNN, "", "What is wrong with it: \"(process 4711 on host b) has ended\"."},
    SchemaColumn{"waiting", kTextNN, "", "In what this rank waited then; empty: in nothing."},
};

constexpr std::array kThreads = {
    SchemaColumn{"globalTid", kKey, "id", "A host thread, serialized. ThreadNames.globalTid"},
    SchemaColumn{"rank", kIntNN, "rank", "The rank that it works for. SHARD_RANKS.rank"},
};

constexpr std::array kStreams = {
    kRank,
    SchemaColumn{"streamId", kIntNN, "id", "The stream, as in the device tables."},
    SchemaColumn{"name", kTextNN, "", "What it is for: \"compute\", \"unshard\"."},
};

constexpr std::array kSteps = {
    kRank,
    SchemaColumn{"step", kIntNN, "", "The step's number."},
    SchemaColumn{"start", kIntNN, "ns", "When the rank's host thread began it."},
    SchemaColumn{"end", kIntNN, "ns", "When the host thread was through with it."},
    SchemaColumn{"globalTid", kIntNN, "id", "That thread, serialized."},
};

constexpr std::array kLosses = {
    SchemaColumn{"step", kKey, "", "The step's number."},
    SchemaColumn{"loss", "REAL", "", "Mean over the global batch; NULL where it was not a number."},
};

constexpr std::array kModules = {
    SchemaColumn{"id", kKey, "id", "The module. NVTX_EVENTS.int64Value"},
    SchemaColumn{"parent", kInt, "id", "The module around it. SHARD_MODULES.id"},
    SchemaColumn{"name", kTextNN, "", "As ranges show it: \"Linear_0\"."},
    SchemaColumn{"className", kTextNN, "", "\"Linear\"."},
    SchemaColumn{"path", kTextNN, "", "PyTorch's full name: \"net.0\"."},
    kUnit,
    SchemaColumn{"parameters", kIntNN, "elements", "Of its own, without its children's."},
};

constexpr std::array kUnits = {
    SchemaColumn{"id", kKey, "id", "The FSDP unit: what is gathered together."},
    SchemaColumn{"module", kInt, "id", "The module that was wrapped. SHARD_MODULES.id"},
    SchemaColumn{"name", kTextNN, "", "The unit's name."},
    SchemaColumn{"elements", kIntNN, "elements", "Parameters in it."},
    SchemaColumn{"paddedElements", kIntNN, "elements", "The same with the padding that makes shards equal."},
    SchemaColumn{"shardBytes", kIntNN, "bytes", "What one rank keeps."},
    SchemaColumn{"bytes", kIntNN, "bytes", "What a gather yields."},
};

constexpr std::array kCollectives = {
    kRank,
    SchemaColumn{"correlationId", kIntNN, "id", "Of its kernel. CUPTI_ACTIVITY_KIND_KERNEL.correlationId"},
    SchemaColumn{"operation", kIntNN, "enum", "SHARD_ENUM_OPERATION"},
    SchemaColumn{"bytes", kIntNN, "bytes",
                 "Of the full buffer, the gathered size, padding included; 0: not known."},
    SchemaColumn{"padding", kIntNN, "bytes", "Of that: padding."},
    SchemaColumn{"groupId", kIntNN, "id", "The communicator."},
    SchemaColumn{"groupSize", kIntNN, "ranks", "Ranks in it."},
    SchemaColumn{
        "sequence", kIntNN, "",
        "Number in the communicator, equal on all its ranks: in the order of issue or, where NCCL told its "
        "own, among the operations of that kind; -1: not known."},
    kUnit,
    kPhase,
};

constexpr std::array kMemory = {
    SchemaColumn{"time", kIntNN, "ns", "When, in the host program's order, since the start of the capture."},
    kRank,
    SchemaColumn{"address", kIntNN, "address", "Of the block; ties a free to its allocation."},
    SchemaColumn{"bytes", kIntNN, "bytes",
                 "More than 0: allocated; less: freed. The sum so far is what is live."},
    SchemaColumn{"category", kIntNN, "enum", "What it holds. SHARD_ENUM_CATEGORY"},
    SchemaColumn{"space", kIntNN, "enum", "Where it lies. SHARD_ENUM_SPACE"},
    kPhase,
    kUnit,
    SchemaColumn{"module", kInt, "id", "The module that asked for it. SHARD_MODULES.id"},
    SchemaColumn{"streamId", kInt, "id", "The stream that it belongs to."},
    SchemaColumn{"nameId", kIntNN, "id", "The buffer's name. StringIds.id"},
    SchemaColumn{"globalTid", kInt, "id", "The thread that asked, serialized. Since schema version 4."},
    SchemaColumn{"total", kInt, "bytes",
                 "Live on the device right after it, as the allocator says. Since schema version 4."},
    SchemaColumn{"reserved", kInt, "bytes",
                 "Held by the caching allocator right after it. Since schema version 4."},
    SchemaColumn{"annotationId", kInt, "id",
                 "The annotation under which it was allocated. StringIds.id. Since schema version 4."},
    SchemaColumn{"stackId", kInt, "id",
                 "The frames, innermost first, one a line. StringIds.id. Since schema version 4."},
};

constexpr std::array kSegments = {
    SchemaColumn{"time", kIntNN, "ns", "When, since the start of the capture."},
    kRank,
    SchemaColumn{"address", kIntNN, "address", "Of the segment."},
    SchemaColumn{"bytes", kIntNN, "bytes", "More than 0: taken from the device; less: given back."},
    SchemaColumn{"streamId", kInt, "id", "The stream that it serves."},
};

constexpr std::array kLinks = {
    SchemaColumn{"kind", kIntNN, "enum", "0: from an operator to the operator of its backward."},
    SchemaColumn{"fromTid", kIntNN, "id", "The thread of the one, serialized."},
    SchemaColumn{"fromTime", kIntNN, "ns", "When the one starts."},
    SchemaColumn{"toTid", kIntNN, "id", "The thread of the other, serialized."},
    SchemaColumn{"toTime", kIntNN, "ns", "When the other starts."},
};

constexpr std::array kDeviceDetails = {
    SchemaColumn{"start", kIntNN, "ns", "Of the kernel, memcpy or memset."},
    SchemaColumn{"deviceId", kIntNN, "id", "Its device. TARGET_INFO_GPU.id"},
    SchemaColumn{"streamId", kIntNN, "id", "Its stream."},
    SchemaColumn{"correlationId", kIntNN, "id", "Its launch."},
    SchemaColumn{"externalId", kInt, "id",
                 "The operator that launched it, as the source says. NVTX_EVENTS.uint64Value"},
    SchemaColumn{"blocksPerSm", "REAL", "", "Blocks of its grid for each multiprocessor."},
    SchemaColumn{"occupancy", "REAL", "%", "Achieved occupancy, as the source estimates it."},
};

constexpr std::array kFlightRecords = {
    kRank,
    SchemaColumn{"id", kIntNN, "", "Number of the record, in the order of issue."},
    SchemaColumn{"groupNameId", kIntNN, "id", "The process group. StringIds.id"},
    SchemaColumn{"groupDescriptionId", kIntNN, "id", "What it is for. StringIds.id"},
    SchemaColumn{"groupSize", kIntNN, "ranks", "Ranks in it; 0 not known."},
    SchemaColumn{"sequence", kIntNN, "", "Number in the group; of sends and receives their own count."},
    SchemaColumn{"pointToPoint", kIntNN, "0/1", "1 for a send or receive."},
    SchemaColumn{"operation", kIntNN, "enum", "SHARD_ENUM_OPERATION"},
    SchemaColumn{"nameId", kIntNN, "id", "As PyTorch calls it: \"nccl:_all_gather_base\". StringIds.id"},
    SchemaColumn{"inputBytes", kInt, "bytes", "What the rank gives."},
    SchemaColumn{"outputBytes", kInt, "bytes", "What the rank gets."},
    SchemaColumn{"dataTypeId", kIntNN, "id", "Type of the elements. StringIds.id"},
    SchemaColumn{"sizesId", kIntNN, "id", "Shapes of what is given and got. StringIds.id"},
    SchemaColumn{"state", kIntNN, "enum", "0 scheduled, 1 started, 2 completed."},
    SchemaColumn{"created", kIntNN, "ns", "When the host issued it."},
    SchemaColumn{"started", kInt, "ns", "When the device was seen to begin."},
    SchemaColumn{"completed", kInt, "ns", "When the device was seen to be through."},
    SchemaColumn{"timeout", kInt, "ms", "After which the watchdog gives up."},
    SchemaColumn{"stackId", kIntNN, "id", "The frames, innermost first, one a line. StringIds.id"},
};

constexpr std::array kPrediction = {
    SchemaColumn{"rank", kKey, "rank", "The rank. SHARD_RANKS.rank"},
    SchemaColumn{"peakBytes", kIntNN, "bytes", "Predicted peak of allocated device memory."},
    SchemaColumn{"moment", kTextNN, "", "When it is reached, in words."},
    SchemaColumn{kMemoryCategoryNames[0], kIntNN, "bytes", "Of this category at the peak."},
    SchemaColumn{kMemoryCategoryNames[1], kIntNN, "bytes", "Of this category at the peak."},
    SchemaColumn{kMemoryCategoryNames[2], kIntNN, "bytes", "Of this category at the peak."},
    SchemaColumn{kMemoryCategoryNames[3], kIntNN, "bytes", "Of this category at the peak."},
    SchemaColumn{kMemoryCategoryNames[4], kIntNN, "bytes", "Of this category at the peak."},
    SchemaColumn{kMemoryCategoryNames[5], kIntNN, "bytes", "Of this category at the peak."},
    SchemaColumn{kMemoryCategoryNames[6], kIntNN, "bytes", "Of this category at the peak."},
    SchemaColumn{kMemoryCategoryNames[7], kIntNN, "bytes", "Of this category at the peak."},
};
static_assert(kMemoryCategories == 8, "SHARD_PREDICTION and SHARD_PLAN have one column for each category");

constexpr std::array kPartColumns = {
    kRank,
    SchemaColumn{"part", kIntNN, "enum", "What the bytes are of. SHARD_ENUM_PART"},
    SchemaColumn{"id", kInt, "id",
                 "SHARD_UNITS.id or SHARD_MODULES.id, NULL for what belongs to none; of a step its number, "
                 "which holds "
                 "until the next one that is stored."},
    SchemaColumn{"name", kTextNN, "", "Of the buffer; empty for other parts."},
    SchemaColumn{"bytes", kIntNN, "bytes",
                 "Of it at the predicted peak; of a step its own predicted peak. The units sum to "
                 "SHARD_PREDICTION.peakBytes, and so do the modules and the buffers."},
};

constexpr std::array kPlan = {
    SchemaColumn{"number", kKey, "", "Of the configuration, in the order in which a planner tries them."},
    SchemaColumn{
        "outcome", kTextNN, "",
        "\"fits\", \"too_large\", \"impossible\" (no such job can be) or \"not_run\" (the search was "
        "stopped before)."},
    SchemaColumn{"reason", kText, "", "Why it is impossible or, where its allocations would fit, too large."},
    SchemaColumn{"settings", kTextNN, "",
                 "What differs from the job's file, as JSON: {\"fsdp.wrap\":\"root\"}."},
    SchemaColumn{"job", kText, "", "The whole job file of the configuration."},
    SchemaColumn{"ranks", kInt, "count", "Ranks of it."},
    SchemaColumn{"nodes", kInt, "count", "Nodes of the cluster that the ranks fill."},
    SchemaColumn{"limitBytes", kInt, "bytes", "Device memory that a rank may reserve."},
    SchemaColumn{"peakBytes", kInt, "bytes", "Peak of allocated device memory; the categories sum to it."},
    SchemaColumn{"moment", kText, "", "When it is reached, in words."},
    SchemaColumn{kMemoryCategoryNames[0], kInt, "bytes", "Of this category at the peak."},
    SchemaColumn{kMemoryCategoryNames[1], kInt, "bytes", "Of this category at the peak."},
    SchemaColumn{kMemoryCategoryNames[2], kInt, "bytes", "Of this category at the peak."},
    SchemaColumn{kMemoryCategoryNames[3], kInt, "bytes", "Of this category at the peak."},
    SchemaColumn{kMemoryCategoryNames[4], kInt, "bytes", "Of this category at the peak."},
    SchemaColumn{kMemoryCategoryNames[5], kInt, "bytes", "Of this category at the peak."},
    SchemaColumn{kMemoryCategoryNames[6], kInt, "bytes", "Of this category at the peak."},
    SchemaColumn{kMemoryCategoryNames[7], kInt, "bytes", "Of this category at the peak."},
    SchemaColumn{"peakUnit", kText, "", "The FSDP unit with most of the peak."},
    SchemaColumn{"peakUnitBytes", kInt, "bytes", "Of that unit at the peak."},
    SchemaColumn{"peakModule", kText, "", "The module with most of the peak, by its path."},
    SchemaColumn{"peakModuleBytes", kInt, "bytes", "Of that module at the peak."},
    SchemaColumn{"reservedBytes", kInt, "bytes",
                 "Most that the allocator of a rank held; NULL, as are the times and rates below, where the "
                 "configuration was not simulated."},
    SchemaColumn{"step", "REAL", "us", "Mean step time."},
    SchemaColumn{"exposed", "REAL", "us",
                 "Communication outside kernels, of a mean step, mean over the ranks."},
    SchemaColumn{"lastStep", "REAL", "us", "The last step of rank 0, which is a steady one."},
    SchemaColumn{"lastKernel", "REAL", "us", "Of it: kernels."},
    SchemaColumn{"lastCopy", "REAL", "us", "Of it: copies."},
    SchemaColumn{"lastExposed", "REAL", "us", "Of it: communication outside kernels."},
    SchemaColumn{"samplesPerSecond", "REAL", "", "Of all ranks together."},
    SchemaColumn{"mfu", "REAL", "", "Model FLOPs utilisation, 0 to 1."},
    SchemaColumn{"tokensPerSecond", "REAL", "",
                 "Of all ranks together; NULL where the model counts no tokens."},
    SchemaColumn{"costPerMillion", "REAL", "USD",
                 "Of a million tokens, or samples where the model counts none; NULL: the cluster has no "
                 "price."},
    SchemaColumn{"exposedOperation", kText, "",
                 "The collective operation that leaves most time outside kernels; NULL: none."},
    SchemaColumn{"exposedPhase", kText, "", "In which part of the step."},
    SchemaColumn{"exposedTime", "REAL", "us", "How much, in the last step of rank 0."},
    SchemaColumn{"exposedUnit", kText, "", "The FSDP unit with most of that."},
    SchemaColumn{"front", kIntNN, "0/1",
                 "1: no configuration that fits allocates and reserves no more and is no slower."},
    SchemaColumn{"beatenBy", kInt, "",
                 "The fastest of the front that allocates and reserves no more. SHARD_PLAN.number"},
    SchemaColumn{"sameAs", kInt, "", "One with the same figures that stands for it. SHARD_PLAN.number"},
    SchemaColumn{"why", kText, "",
                 "Why it is beaten or too large, in words; of the front: what makes its peak."},
    SchemaColumn{"trace", kText, "", "Its simulated trace, where one was written: a path."},
};

constexpr std::array kPlanParts = {
    SchemaColumn{"number", kIntNN, "", "The configuration. SHARD_PLAN.number"},
    SchemaColumn{"part", kTextNN, "", "\"model\", \"gradients\", \"optimizer\" or \"activations\"."},
    SchemaColumn{"stage", kInt, "", "ZeRO stage of the configuration, 0 to 3."},
    SchemaColumn{"devices", kInt, "count", "Devices that shard among themselves."},
    SchemaColumn{"offloaded", kInt, "0/1",
                 "1: model, gradients and optimizer lie on the host, so that `formula` is 0 for them."},
    SchemaColumn{"parameters", kInt, "count", "Of the model."},
    SchemaColumn{"stage0", "REAL", "bytes",
                 "By formula, on one device, at stage 0; NULL, as are the next four, where there is none."},
    SchemaColumn{"stage1", "REAL", "bytes", "At stage 1."},
    SchemaColumn{"stage2", "REAL", "bytes", "At stage 2."},
    SchemaColumn{"stage3", "REAL", "bytes", "At stage 3."},
    SchemaColumn{"formula", "REAL", "bytes", "By formula, of this configuration."},
    SchemaColumn{"simulated", "REAL", "bytes", "Of `categories` at the peak of the memory account."},
    SchemaColumn{"categories", kText, "", "Which memory categories stand for this part."},
};

constexpr std::array kCounters = {
    SchemaColumn{"time", kIntNN, "ns", "When, since the start of the capture."},
    kRank,
    SchemaColumn{"nameId", kIntNN, "id",
                 "The counter's name, with its unit: \"reserved_bytes\". StringIds.id"},
    SchemaColumn{"value", "REAL", "", "Its value from then on; NULL where it was not a number."},
};

constexpr std::array kCommunicators = {
    SchemaColumn{"communicator", kIntNN, "id",
                 "NCCL's hash of the communicator, equal on all its ranks. SHARD_COLLECTIVES.groupId"},
    SchemaColumn{"globalPid", kIntNN, "id", "The process, serialized."},
    SchemaColumn{"rank", kIntNN, "", "The process's rank in the communicator."},
    SchemaColumn{"ranks", kIntNN, "ranks", "Ranks in it; 0 where NCCL is too old to tell (before 2.26)."},
    SchemaColumn{"nodes", kInt, "count", "Machines in it."},
    SchemaColumn{"name", kText, "", "Its name, where the program gave one."},
};

constexpr std::array kNcclOperations = {
    SchemaColumn{"communicator", kIntNN, "id", "SHARD_NCCL_COMMUNICATORS.communicator"},
    SchemaColumn{"globalPid", kIntNN, "id", "The process, serialized."},
    SchemaColumn{"globalTid", kInt, "id", "The thread that called NCCL, serialized."},
    SchemaColumn{"rank", kIntNN, "", "The process's rank in the communicator."},
    SchemaColumn{"operation", kIntNN, "enum", "SHARD_ENUM_OPERATION"},
    SchemaColumn{"sequence", kInt, "",
                 "Number of this operation in the communicator, counted for each kind of operation."},
    SchemaColumn{"start", kIntNN, "ns", "When NCCL began to enqueue it."},
    SchemaColumn{"end", kInt, "ns", "When it was enqueued; the work itself is a kernel."},
    SchemaColumn{"count", kInt, "elements", "Elements, as given to NCCL."},
    SchemaColumn{"dataType", kText, "", "NCCL's name of their type: \"ncclFloat32\"."},
    SchemaColumn{"root", kInt, "rank", "Root of a broadcast or reduce, peer of a send or receive."},
    SchemaColumn{"algorithm", kText, "", "\"RING\", \"TREE\", \"NVLS\" …"},
    SchemaColumn{"protocol", kText, "", "\"LL\", \"LL128\", \"SIMPLE\"."},
    SchemaColumn{"channels", kInt, "count", "Channels that carry it."},
    SchemaColumn{"warps", kInt, "count", "Warps of each channel."},
};

constexpr std::array kTotals = {
    SchemaColumn{"source", kTextNN, "", "The table that was summed: \"CUPTI_ACTIVITY_KIND_KERNEL\"."},
    SchemaColumn{"deviceId", kInt, "id", "The device; NULL for what host threads did."},
    SchemaColumn{"globalPid", kInt, "id", "The process, serialized."},
    SchemaColumn{"nameId", kIntNN, "id", "Kernel's short name, call or range. StringIds.id"},
    SchemaColumn{"count", kIntNN, "count", "Rows."},
    SchemaColumn{"total", kIntNN, "ns", "Sum of their durations."},
    SchemaColumn{"shortest", kIntNN, "ns", "Shortest of them."},
    SchemaColumn{"longest", kIntNN, "ns", "Longest of them."},
};

constexpr std::array kEnumColumns = {
    SchemaColumn{"id", kKey, "enum", "The value that other tables hold."},
    SchemaColumn{"name", kTextNN, "", "Its name in tables, JSON and views."},
    SchemaColumn{"label", kText, "", "Its name for people, or NCCL's."},
};

template <std::size_t N>
constexpr std::array<EnumRow, N> enum_rows(const std::array<std::string_view, N>& names,
                                           const std::array<std::string_view, N>& labels) {
    std::array<EnumRow, N> rows{};
    for (std::size_t i = 0; i < N; ++i) rows[i] = {static_cast<int>(i), names[i], labels[i]};
    return rows;
}

constexpr std::array<std::string_view, kMemoryCategories> kCategoryLabels = {
    "Parameters",      "Unsharded parameters", "Gradients",     "Unsharded gradients",
    "Optimizer state", "Activations",          "Communication", "Other"};
constexpr std::array<std::string_view, kMemorySpaces> kSpaceLabels = {"Device memory", "Pinned host memory",
                                                                      "Host memory"};
constexpr std::array<std::string_view, kPhases> kPhaseLabels = {
    "None", "Set-up", "Data", "Forward", "Backward", "Recompute", "Optimizer", "Validation", "Save"};
constexpr std::array<std::string_view, kPredictionParts> kPartLabels = {"FSDP unit", "Module", "Buffer",
                                                                        "Step"};

constexpr auto kCategoryRows = enum_rows(kMemoryCategoryNames, kCategoryLabels);
constexpr auto kSpaceRows = enum_rows(kMemorySpaceNames, kSpaceLabels);
constexpr auto kPhaseRows = enum_rows(kPhaseNames, kPhaseLabels);
constexpr auto kPartRows = enum_rows(kPredictionPartNames, kPartLabels);
constexpr auto kOperationRows = enum_rows(kOperationNames, kOperationNcclNames);

constexpr std::array<SchemaTable, 25> kTables = {{
    {"SHARD_STATE", "Whether the run ended and what was lost; one row.", kState},
    {"SHARD_RUN", "The run's configuration and facts.", kRun},
    {"SHARD_RANKS", "The ranks, their devices, and their place in the mesh.", kRanks},
    {"SHARD_THREADS", "Which host threads work for which rank.", kThreads},
    {"SHARD_STREAMS", "Names of the ranks' streams.", kStreams},
    {"SHARD_STEPS", "Training steps on the ranks' host threads.", kSteps},
    {"SHARD_LOSSES", "The loss of each step.", kLosses},
    {"SHARD_MODULES", "The module tree.", kModules},
    {"SHARD_UNITS", "The FSDP units.", kUnits},
    {"SHARD_COLLECTIVES", "Collectives, one row for each rank that takes part.", kCollectives},
    {"SHARD_MEMORY", "Allocations and frees by category, in all spaces.", kMemory},
    {"SHARD_PREDICTION", "The memory account's prediction.", kPrediction},
    {"SHARD_PREDICTION_PARTS",
     "The memory account's prediction by FSDP unit, module, buffer and step. Since schema version 2.",
     kPartColumns,
     {},
     2},
    {"SHARD_COUNTERS", "Values that change over time.", kCounters},
    {"SHARD_NCCL_COMMUNICATORS",
     "NCCL's communicators, one row for each process. Since schema version 3.",
     kCommunicators,
     {},
     3},
    {"SHARD_NCCL_OPERATIONS",
     "What NCCL says of each operation: its algorithm and protocol. Since schema version 3.",
     kNcclOperations,
     {},
     3},
    {"SHARD_TOTALS", "Sums by name, made when the run ends. Since schema version 3.", kTotals, {}, 3},
    {"SHARD_LINKS", "Which operator is whose backward. Since schema version 4.", kLinks, {}, 4},
    {"SHARD_DEVICE_DETAILS",
     "What a source knows of device work beyond Nsight's tables. Since schema version 4.",
     kDeviceDetails,
     {},
     4},
    {"SHARD_SEGMENTS", "Memory that the caching allocator holds. Since schema version 4.", kSegments, {}, 4},
    {"SHARD_FLIGHT_RECORDS",
     "What PyTorch's NCCL flight recorder dumped. Since schema version 4.",
     kFlightRecords,
     {},
     4},
    {"SHARD_CLOCKS",
     "How the clocks of the ranks' hosts stood to rank 0's. Since schema version 5.",
     kClocks,
     {},
     5},
    {"SHARD_STOPS",
     "Of a job that failed: which rank stopped first, as each rank that was left saw it. Since schema "
     "version "
     "5.",
     kStops,
     {},
     5},
    {"SHARD_PLAN",
     "What a planner found out about each configuration of a job. Since schema version 5.",
     kPlan,
     {},
     5},
    {"SHARD_PLAN_PARTS",
     "The memory of a planner's configurations by the formulas of docs/planning.md, beside the simulated "
     "peak. Since schema version 5.",
     kPlanParts,
     {},
     5},
}};

constexpr std::array<SchemaTable, 5> kEnums = {{
    {"SHARD_ENUM_CATEGORY", "What an allocation holds.", kEnumColumns, kCategoryRows},
    {"SHARD_ENUM_SPACE", "Where an allocation lies.", kEnumColumns, kSpaceRows},
    {"SHARD_ENUM_PHASE", "Parts of a step.", kEnumColumns, kPhaseRows},
    {"SHARD_ENUM_OPERATION", "Collective operations; the label is NCCL's spelling.", kEnumColumns,
     kOperationRows},
    {"SHARD_ENUM_PART", "What a part of a prediction is of. Since schema version 2.", kEnumColumns, kPartRows,
     2},
}};

}  // namespace

std::span<const SchemaTable> shard_tables() {
    return kTables;
}
std::span<const SchemaTable> shard_enums() {
    return kEnums;
}

}  // namespace shardscope::traces
