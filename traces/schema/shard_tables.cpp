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

constexpr Column kRank = {"rank", kIntNN, "rank", "The rank. SHARD_RANKS.rank"};
constexpr Column kUnit = {"unit", kInt, "id", "The FSDP unit. SHARD_UNITS.id"};
constexpr Column kPhase = {"phase", kIntNN, "enum", "The part of the step. SHARD_ENUM_PHASE"};

constexpr std::array kState = {
    Column{"ended", kIntNN, "0/1", "1 once the run has ended; 0: it was killed, or still runs."},
    Column{"dropped", kIntNN, "count", "Events that were lost because a buffer was full."},
};

constexpr std::array kRun = {
    Column{"key", "TEXT NOT NULL PRIMARY KEY", "", "A key of the job file, or a fact: \"model.width\"."},
    Column{"value", kTextNN, "", "Its value, as text."},
};

constexpr std::array kRanks = {
    Column{"rank", kKey, "rank", "The rank."},
    Column{"deviceId", kIntNN, "id", "Its device. TARGET_INFO_GPU.id"},
    Column{"globalPid", kIntNN, "id", "Its process, serialized. PROCESSES.globalPid"},
    Column{"globalTid", kIntNN, "id", "Its host thread, serialized. ThreadNames.globalTid"},
    Column{"host", kTextNN, "", "The machine's name."},
    Column{"data", kIntNN, "", "Place in the mesh: data parallel coordinate."},
    Column{"shard", kIntNN, "", "Place in the mesh: shard coordinate."},
    Column{"tensor", kIntNN, "", "Place in the mesh: tensor parallel coordinate."},
    Column{"pipeline", kIntNN, "", "Place in the mesh: pipeline stage."},
};

constexpr std::array kThreads = {
    Column{"globalTid", kKey, "id", "A host thread, serialized. ThreadNames.globalTid"},
    Column{"rank", kIntNN, "rank", "The rank that it works for. SHARD_RANKS.rank"},
};

constexpr std::array kStreams = {
    kRank,
    Column{"streamId", kIntNN, "id", "The stream, as in the device tables."},
    Column{"name", kTextNN, "", "What it is for: \"compute\", \"unshard\"."},
};

constexpr std::array kSteps = {
    kRank,
    Column{"step", kIntNN, "", "The step's number."},
    Column{"start", kIntNN, "ns", "When the rank's host thread began it."},
    Column{"end", kIntNN, "ns", "When the host thread was through with it."},
    Column{"globalTid", kIntNN, "id", "That thread, serialized."},
};

constexpr std::array kLosses = {
    Column{"step", kKey, "", "The step's number."},
    Column{"loss", "REAL", "", "Mean over the global batch; NULL where it was not a number."},
};

constexpr std::array kModules = {
    Column{"id", kKey, "id", "The module. NVTX_EVENTS.int64Value"},
    Column{"parent", kInt, "id", "The module around it. SHARD_MODULES.id"},
    Column{"name", kTextNN, "", "As ranges show it: \"Linear_0\"."},
    Column{"className", kTextNN, "", "\"Linear\"."},
    Column{"path", kTextNN, "", "PyTorch's full name: \"net.0\"."},
    kUnit,
    Column{"parameters", kIntNN, "elements", "Of its own, without its children's."},
};

constexpr std::array kUnits = {
    Column{"id", kKey, "id", "The FSDP unit: what is gathered together."},
    Column{"module", kInt, "id", "The module that was wrapped. SHARD_MODULES.id"},
    Column{"name", kTextNN, "", "The unit's name."},
    Column{"elements", kIntNN, "elements", "Parameters in it."},
    Column{"paddedElements", kIntNN, "elements", "The same with the padding that makes shards equal."},
    Column{"shardBytes", kIntNN, "bytes", "What one rank keeps."},
    Column{"bytes", kIntNN, "bytes", "What a gather yields."},
};

constexpr std::array kCollectives = {
    kRank,
    Column{"correlationId", kIntNN, "id", "Of its kernel. CUPTI_ACTIVITY_KIND_KERNEL.correlationId"},
    Column{"operation", kIntNN, "enum", "SHARD_ENUM_OPERATION"},
    Column{"bytes", kIntNN, "bytes", "Of the full buffer, the gathered size, padding included."},
    Column{"padding", kIntNN, "bytes", "Of that: padding."},
    Column{"groupId", kIntNN, "id", "The communicator."},
    Column{"groupSize", kIntNN, "ranks", "Ranks in it."},
    Column{"sequence", kIntNN, "",
           "Number in the communicator, in the order of issue; equal on all its ranks."},
    kUnit,
    kPhase,
};

constexpr std::array kMemory = {
    Column{"time", kIntNN, "ns", "When, in the host program's order, since the start of the capture."},
    kRank,
    Column{"address", kIntNN, "address", "Of the block; ties a free to its allocation."},
    Column{"bytes", kIntNN, "bytes", "More than 0: allocated; less: freed. The sum so far is what is live."},
    Column{"category", kIntNN, "enum", "What it holds. SHARD_ENUM_CATEGORY"},
    Column{"space", kIntNN, "enum", "Where it lies. SHARD_ENUM_SPACE"},
    kPhase,
    kUnit,
    Column{"module", kInt, "id", "The module that asked for it. SHARD_MODULES.id"},
    Column{"streamId", kInt, "id", "The stream that it belongs to."},
    Column{"nameId", kIntNN, "id", "The buffer's name. StringIds.id"},
};

constexpr std::array kPrediction = {
    Column{"rank", kKey, "rank", "The rank. SHARD_RANKS.rank"},
    Column{"peakBytes", kIntNN, "bytes", "Predicted peak of allocated device memory."},
    Column{"moment", kTextNN, "", "When it is reached, in words."},
    Column{kMemoryCategoryNames[0], kIntNN, "bytes", "Of this category at the peak."},
    Column{kMemoryCategoryNames[1], kIntNN, "bytes", "Of this category at the peak."},
    Column{kMemoryCategoryNames[2], kIntNN, "bytes", "Of this category at the peak."},
    Column{kMemoryCategoryNames[3], kIntNN, "bytes", "Of this category at the peak."},
    Column{kMemoryCategoryNames[4], kIntNN, "bytes", "Of this category at the peak."},
    Column{kMemoryCategoryNames[5], kIntNN, "bytes", "Of this category at the peak."},
    Column{kMemoryCategoryNames[6], kIntNN, "bytes", "Of this category at the peak."},
    Column{kMemoryCategoryNames[7], kIntNN, "bytes", "Of this category at the peak."},
};
static_assert(kMemoryCategories == 8, "SHARD_PREDICTION has one column for each category");

constexpr std::array kCounters = {
    Column{"time", kIntNN, "ns", "When, since the start of the capture."},
    kRank,
    Column{"nameId", kIntNN, "id", "The counter's name, with its unit: \"reserved_bytes\". StringIds.id"},
    Column{"value", "REAL", "", "Its value from then on; NULL where it was not a number."},
};

constexpr std::array kEnumColumns = {
    Column{"id", kKey, "enum", "The value that other tables hold."},
    Column{"name", kTextNN, "", "Its name in tables, JSON and views."},
    Column{"label", kText, "", "Its name for people, or NCCL's."},
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

constexpr auto kCategoryRows = enum_rows(kMemoryCategoryNames, kCategoryLabels);
constexpr auto kSpaceRows = enum_rows(kMemorySpaceNames, kSpaceLabels);
constexpr auto kPhaseRows = enum_rows(kPhaseNames, kPhaseLabels);
constexpr auto kOperationRows = enum_rows(kOperationNames, kOperationNcclNames);

constexpr std::array<Table, 13> kTables = {{
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
    {"SHARD_COUNTERS", "Values that change over time.", kCounters},
}};

constexpr std::array<Table, 4> kEnums = {{
    {"SHARD_ENUM_CATEGORY", "What an allocation holds.", kEnumColumns, kCategoryRows},
    {"SHARD_ENUM_SPACE", "Where an allocation lies.", kEnumColumns, kSpaceRows},
    {"SHARD_ENUM_PHASE", "Parts of a step.", kEnumColumns, kPhaseRows},
    {"SHARD_ENUM_OPERATION", "Collective operations; the label is NCCL's spelling.", kEnumColumns,
     kOperationRows},
}};

}  // namespace

std::span<const Table> shard_tables() {
    return kTables;
}
std::span<const Table> shard_enums() {
    return kEnums;
}

}  // namespace shardscope::traces
