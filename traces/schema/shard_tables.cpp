// Tables that Nsight Systems does not have: the run, its ranks and steps, the module tree, the memory
// account's prediction. An absent id is NULL. Events and the planner's rows have their own files.
#include <array>
#include <vector>

#include "traces/schema/enums.h"
#include "traces/schema/row_access.h"
#include "traces/schema/schema.h"
#include "traces/schema/shard_columns.h"

namespace shardscope::traces::schema {

namespace {

using namespace own;

constexpr std::array kState = {
    SchemaColumn{"ended", kIntNN, "0/1", "1 once the run has ended; 0: it was killed, or still runs."},
    SchemaColumn{"dropped", kIntNN, "count",
                 "Events that were lost: a buffer was full, or the device reported invalid timestamps."},
};

constexpr std::array kRun = {
    SchemaColumn{"key", "TEXT NOT NULL PRIMARY KEY", "", "A key of the job file, or a fact: \"model.width\".",
                 from<&RunInfoRow::key>},
    SchemaColumn{"value", kTextNN, "", "Its value, as text.", from<&RunInfoRow::value>},
};

constexpr std::array kRanks = {
    SchemaColumn{"rank", own::kKey, "rank", "The rank.", from<&RankRow::rank>},
    SchemaColumn{"deviceId", kIntNN, "id", "Its device. TARGET_INFO_GPU.id", from<&RankRow::device>},
    SchemaColumn{"globalPid", kIntNN, "id", "Its process, serialized. PROCESSES.globalPid",
                 from<&RankRow::global_pid>},
    SchemaColumn{"globalTid", kIntNN, "id", "Its host thread, serialized. ThreadNames.globalTid",
                 from<&RankRow::global_tid>},
    SchemaColumn{"host", kTextNN, "", "The machine's name.", from<&RankRow::host>},
    SchemaColumn{"data", kIntNN, "", "Place in the mesh: which copy of the parameters.",
                 from<&RankRow::data>},
    SchemaColumn{"shard", kIntNN, "", "Place in the mesh: which shard of a copy.", from<&RankRow::shard>},
    SchemaColumn{"tensor", kIntNN, "", "Place in the mesh: which part of every layer.",
                 from<&RankRow::tensor>},
    SchemaColumn{"pipeline", kIntNN, "", "Place in the mesh: which part of the pipeline.",
                 from<&RankRow::pipeline>},
    SchemaColumn{
        "localRank", kInt, "",
        "Its number among the job's ranks on its host, as the launcher reports. Since schema version 5.",
        unless_negative<&RankRow::local_rank>},
    SchemaColumn{"cpus", kText, "",
                 "The processors that its process may run on: \"0-3,8\". Since schema version 5.",
                 unless_zero<&RankRow::cpus>},
    SchemaColumn{"context", kInt, "",
                 "Place in the mesh: which tokens of each sequence; NULL for 0. Since schema version 7.",
                 unless_zero<&RankRow::context>},
};

constexpr std::array kGroups = {
    SchemaColumn{"groupId", own::kKey, "id", "The communicator. SHARD_COLLECTIVES.groupId",
                 from<&GroupRow::group>},
    SchemaColumn{
        "axis", kText, "",
        "Axes of the mesh along which its ranks lie, columns of SHARD_RANKS: \"tensor\", \"data+shard\"; or "
        "another name: \"expert\" of ours, \"world\" of an imported group's description; NULL where unknown.",
        unless_zero<&GroupRow::axis>},
    SchemaColumn{"ranks", kText, "", "Its ranks, as the source writes them: \"0-3,8\".",
                 unless_zero<&GroupRow::ranks>},
    SchemaColumn{"name", kText, "", "Its name, where the program gave one.", unless_zero<&GroupRow::name>},
    SchemaColumn{"description", kText, "", "What the program says it is for: \"mesh_tp\".",
                 unless_zero<&GroupRow::description>},
};

constexpr std::array kSchedule = {
    with(own::kRank, from<&ScheduleRow::rank>),
    SchemaColumn{"position", kIntNN, "", "Place in the rank's order, from 0.", from<&ScheduleRow::position>},
    SchemaColumn{"stage", kIntNN, "", "The stage, numbered over the whole model.", from<&ScheduleRow::stage>},
    SchemaColumn{
        "kind", kTextNN, "",
        "In PyTorch's letters: \"F\" forward, \"B\" backward, \"I\" and \"W\" its two parts for input and "
        "weights, \"SEND_F\", \"RECV_B\", \"UNSHARD\", \"REDUCE_GRAD\".",
        from<&ScheduleRow::kind>},
    SchemaColumn{"microBatch", kInt, "", "The micro-batch; NULL if the action has none.",
                 unless_negative<&ScheduleRow::micro_batch>},
    SchemaColumn{"withNext", kIntNN, "0/1", "1: it runs together with the next action.",
                 from<&ScheduleRow::with_next>},
};

constexpr std::array kDevices = {
    SchemaColumn{"host", kTextNN, "", "The machine's name.", from<&DeviceRow::host>},
    SchemaColumn{"kind", kTextNN, "", "\"gpu\", \"infiniband\", \"ethernet\" or \"numa\" (a NUMA node).",
                 from<&DeviceRow::kind>},
    SchemaColumn{"number", kIntNN, "", "Its number among those of its kind on its host, from 0.",
                 from<&DeviceRow::number>},
    SchemaColumn{"name", kText, "", "\"NVIDIA H100 80GB HBM3\", \"mlx5_0\", \"eth0\".",
                 unless_zero<&DeviceRow::name>},
    SchemaColumn{"bus", kText, "", "Its PCI address: \"0000:17:00.0\".", unless_zero<&DeviceRow::bus>},
    SchemaColumn{"numa", kInt, "", "The NUMA node that it is next to.", unless_negative<&DeviceRow::numa>},
    SchemaColumn{"memory", kInt, "bytes", "Its memory.", unless_negative<&DeviceRow::memory_bytes>},
    SchemaColumn{"bandwidth", "REAL", "bytes/s", "Of an adapter: its speed in one direction.",
                 unless_negative<&DeviceRow::bytes_per_second>},
    SchemaColumn{"powerLimit", "REAL", "W", "Of a GPU: the power that it may draw.",
                 unless_negative<&DeviceRow::power_limit_watts>},
    SchemaColumn{"cpus", kText, "", "The processors of a NUMA node, or those nearest to a device: \"0-3,8\".",
                 unless_zero<&DeviceRow::cpus>},
    SchemaColumn{"visible", kIntNN, "0/1", "1: the job may use it.", from<&DeviceRow::visible>},
};

constexpr std::array kTopology = {
    SchemaColumn{"host", kTextNN, "", "The machine of `fromDevice`.", from<&TopologyRow::host>},
    SchemaColumn{"fromDevice", kTextNN, "",
                 "\"GPU\" or \"NIC\" with the device's number in SHARD_DEVICES: \"GPU0\".",
                 from<&TopologyRow::from>},
    SchemaColumn{"toHost", kTextNN, "", "The machine of `toDevice`.", from<&TopologyRow::to_host>},
    SchemaColumn{"toDevice", kTextNN, "", "The other device.", from<&TopologyRow::to>},
    SchemaColumn{
        "link", kText, "",
        "As in `nvidia-smi topo -m`: \"NV12\" twelve NVLinks, \"PIX\" one PCIe bridge, \"PXB\" several, "
        "\"PHB\" the host bridge, \"NODE\" host bridges of one NUMA node, \"SYS\" across NUMA nodes.",
        unless_zero<&TopologyRow::link>},
    SchemaColumn{"lanes", kInt, "count", "NVLinks, or lanes of PCIe.", unless_negative<&TopologyRow::lanes>},
    SchemaColumn{"bandwidth", "REAL", "bytes/s", "Of the link in one direction, as it is specified.",
                 unless_negative<&TopologyRow::bytes_per_second>},
    SchemaColumn{
        "p2pRead", kText, "",
        "Whether the first may read the other's memory, as in `nvidia-smi topo -p2p r`: \"OK\", \"CNS\" "
        "chipset not supported, \"GNS\" GPU not supported, \"TNS\" topology not supported, \"DR\" "
        "disabled, \"NS\" not supported, \"U\" unknown.",
        unless_zero<&TopologyRow::read>},
    SchemaColumn{"p2pWrite", kText, "", "The same for writing.", unless_zero<&TopologyRow::write>},
    SchemaColumn{"p2pNvlink", kText, "", "The same over NVLink.", unless_zero<&TopologyRow::nvlink>},
    SchemaColumn{"p2pAtomics", kText, "", "The same for atomics.", unless_zero<&TopologyRow::atomics>},
    SchemaColumn{"source", kTextNN, "",
                 "Who says so: \"nvml\", \"sys\", \"nccl\", \"nvidia-smi\" or \"cluster\".",
                 from<&TopologyRow::source>},
};

constexpr std::array kClocks = {
    with(own::kRank, from<&ClockRow::rank>),
    SchemaColumn{"time", kIntNN, "ns", "When it was measured, since the start of the capture.",
                 from<&ClockRow::at_ns>},
    SchemaColumn{"offset", kIntNN, "ns",
                 "Rank 0's CLOCK_MONOTONIC minus that of the rank's host at that time. Both are raw clocks: "
                 "merged times are already on one clock.",
                 from<&ClockRow::offset_ns>},
    SchemaColumn{"uncertainty", kIntNN, "ns",
                 "How far the offset may be off: half of the shortest round trip.",
                 from<&ClockRow::uncertainty_ns>},
};

constexpr std::array kStops = {
    SchemaColumn{"rank", own::kKey, "rank", "The rank that reports it. SHARD_RANKS.rank",
                 from<&StopRow::rank>},
    SchemaColumn{"time", kIntNN, "ns", "When it was reported, since the start of the capture.",
                 from<&StopRow::at_ns>},
    SchemaColumn{"firstRank", kInt, "rank", "The rank whose failure ended the job; NULL: not known.",
                 unless_negative<&StopRow::first_rank>},
    SchemaColumn{"lost", kIntNN, "0/1", "1: that rank is gone or silent; 0: it reported the failure itself.",
                 from<&StopRow::lost>},
    SchemaColumn{"reason", kTextNN, "", "What is wrong with it: \"(process 4711 on host b) has ended\".",
                 from<&StopRow::reason>},
    SchemaColumn{"waiting", kTextNN, "", "What this rank was waiting in; empty: nothing.",
                 from<&StopRow::waiting>},
};

constexpr std::array kThreads = {
    SchemaColumn{"globalTid", own::kKey, "id", "A host thread, serialized. ThreadNames.globalTid",
                 from<&RankThreadRow::global_tid>},
    SchemaColumn{"rank", kIntNN, "rank", "The rank that it works for. SHARD_RANKS.rank",
                 from<&RankThreadRow::rank>},
};

constexpr std::array kStreams = {
    with(own::kRank, from<&StreamRow::rank>),
    SchemaColumn{"streamId", kIntNN, "id", "The stream, as in the device tables.", from<&StreamRow::stream>},
    SchemaColumn{"name", kTextNN, "", "What it is for: \"compute\", \"unshard\".", from<&StreamRow::name>},
};

constexpr std::array kSteps = {
    with(own::kRank, from<&StepRow::rank>),
    SchemaColumn{"step", kIntNN, "", "The step's number.", from<&StepRow::step>},
    SchemaColumn{"start", kIntNN, "ns", "When the rank's host thread began it.", from<&StepRow::start>},
    SchemaColumn{"end", kIntNN, "ns", "When the host thread finished it.", from<&StepRow::end>},
    SchemaColumn{"globalTid", kIntNN, "id", "That thread, serialized.", from<&StepRow::global_tid>},
};

constexpr std::array kLosses = {
    SchemaColumn{"step", own::kKey, "", "The step's number.", from<&LossRow::step>},
    SchemaColumn{"loss", "REAL", "", "Mean over the global batch; NULL where it was not a number.",
                 from<&LossRow::loss>},
};

constexpr std::array kMetrics = {
    SchemaColumn{"step", kInt, "", "The step's number; NULL: it belongs to no step.",
                 unless_negative<&MetricRow::step>},
    SchemaColumn{"sample", kInt, "samples",
                 "Samples that training has used by the end of the step; NULL: unknown.",
                 unless_negative<&MetricRow::sample>},
    SchemaColumn{"time", kIntNN, "ns",
                 "When it was known, since the start of the capture. A loss is read one step late.",
                 from<&MetricRow::time>},
    SchemaColumn{"rank", kInt, "rank", "The rank that reports it; NULL: it is the whole job's.",
                 unless_negative<&MetricRow::rank>},
    SchemaColumn{
        "nameId", kIntNN, "id",
        "The metric, with its unit where it has one: \"learning_rate\", \"peak_bytes\". StringIds.id",
        from<&MetricRow::name>},
    SchemaColumn{"value", "REAL", "", "Its value; NULL where it was not a number.", from<&MetricRow::value>},
};

constexpr std::array kModules = {
    SchemaColumn{"id", own::kKey, "id", "The module. NVTX_EVENTS.int64Value", from<&ModuleRow::id>},
    SchemaColumn{"parent", kInt, "id", "The module around it. SHARD_MODULES.id",
                 unless_negative<&ModuleRow::parent>},
    SchemaColumn{"name", kTextNN, "", "As ranges show it: \"Linear_0\".", from<&ModuleRow::name>},
    SchemaColumn{"className", kTextNN, "", "\"Linear\".", from<&ModuleRow::class_name>},
    SchemaColumn{"path", kTextNN, "", "PyTorch's full name: \"net.0\".", from<&ModuleRow::path>},
    with(own::kUnit, unless_negative<&ModuleRow::unit>),
    SchemaColumn{"parameters", kIntNN, "elements", "Of its own, without its children's.",
                 from<&ModuleRow::parameters>},
};

constexpr std::array kUnits = {
    SchemaColumn{"id", own::kKey, "id", "The FSDP unit: what is gathered together.", from<&UnitRow::id>},
    SchemaColumn{"module", kInt, "id", "The module that was wrapped. SHARD_MODULES.id",
                 unless_negative<&UnitRow::module>},
    SchemaColumn{"name", kTextNN, "", "The unit's name.", from<&UnitRow::name>},
    SchemaColumn{"elements", kIntNN, "elements", "Parameters in it.", from<&UnitRow::elements>},
    SchemaColumn{"paddedElements", kIntNN, "elements", "The same with the padding that makes shards equal.",
                 from<&UnitRow::padded_elements>},
    SchemaColumn{"shardBytes", kIntNN, "bytes", "What one rank keeps.", from<&UnitRow::shard_bytes>},
    SchemaColumn{"bytes", kIntNN, "bytes", "What a gather yields.", from<&UnitRow::bytes>},
};

constexpr std::array kPrediction = {
    SchemaColumn{"rank", own::kKey, "rank", "The rank. SHARD_RANKS.rank", from<&PredictionRow::rank>},
    SchemaColumn{"peakBytes", kIntNN, "bytes", "Predicted peak of allocated device memory.",
                 from<&PredictionRow::peak_bytes>},
    SchemaColumn{"moment", kTextNN, "", "When it is reached, in words.", from<&PredictionRow::where>},
    SchemaColumn{kMemoryCategoryNames[0], kIntNN, "bytes", "Bytes of this category at the peak.",
                 element<&PredictionRow::at_peak, 0>},
    SchemaColumn{kMemoryCategoryNames[1], kIntNN, "bytes", "Bytes of this category at the peak.",
                 element<&PredictionRow::at_peak, 1>},
    SchemaColumn{kMemoryCategoryNames[2], kIntNN, "bytes", "Bytes of this category at the peak.",
                 element<&PredictionRow::at_peak, 2>},
    SchemaColumn{kMemoryCategoryNames[3], kIntNN, "bytes", "Bytes of this category at the peak.",
                 element<&PredictionRow::at_peak, 3>},
    SchemaColumn{kMemoryCategoryNames[4], kIntNN, "bytes", "Bytes of this category at the peak.",
                 element<&PredictionRow::at_peak, 4>},
    SchemaColumn{kMemoryCategoryNames[5], kIntNN, "bytes", "Bytes of this category at the peak.",
                 element<&PredictionRow::at_peak, 5>},
    SchemaColumn{kMemoryCategoryNames[6], kIntNN, "bytes", "Bytes of this category at the peak.",
                 element<&PredictionRow::at_peak, 6>},
    SchemaColumn{kMemoryCategoryNames[7], kIntNN, "bytes", "Bytes of this category at the peak.",
                 element<&PredictionRow::at_peak, 7>},
};
static_assert(kMemoryCategories == 8, "SHARD_PREDICTION and SHARD_PLAN have one column for each category");

constexpr std::array kPartColumns = {
    with(own::kRank, from<&PredictionPartRow::rank>),
    SchemaColumn{"part", kIntNN, "enum", "What the bytes are of. SHARD_ENUM_PART",
                 from<&PredictionPartRow::kind>},
    SchemaColumn{"id", kInt, "id",
                 "SHARD_UNITS.id or SHARD_MODULES.id, NULL if it belongs to none; for a step its number, "
                 "which applies until the next stored step."
                 "",
                 unless_negative<&PredictionPartRow::id>},
    SchemaColumn{"name", kTextNN, "", "Name of the buffer; empty for other parts.",
                 from<&PredictionPartRow::name>},
    SchemaColumn{"bytes", kIntNN, "bytes",
                 "Bytes of the part at the predicted peak; for a step, the step's own predicted peak. The "
                 "units sum to "
                 "SHARD_PREDICTION.peakBytes, and so do the modules and the buffers.",
                 from<&PredictionPartRow::bytes>},
};

constexpr std::array kEnumColumns = {
    SchemaColumn{"id", own::kKey, "enum", "The value that other tables hold."},
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
                                                                      "Host memory", "Bytes of files"};
constexpr std::array<std::string_view, kPhases> kPhaseLabels = {
    "None",      "Set-up",     "Data", "Forward", "Backward", "Recompute",
    "Optimizer", "Validation", "Save", "Prefill", "Decode"};
constexpr std::array<std::string_view, kPredictionParts> kPartLabels = {"FSDP unit", "Module", "Buffer",
                                                                        "Step"};

constexpr auto kCategoryRows = enum_rows(kMemoryCategoryNames, kCategoryLabels);
constexpr auto kSpaceRows = enum_rows(kMemorySpaceNames, kSpaceLabels);
constexpr auto kPhaseRows = enum_rows(kPhaseNames, kPhaseLabels);
constexpr auto kPartRows = enum_rows(kPredictionPartNames, kPartLabels);
constexpr auto kOperationRows = enum_rows(kOperationNames, kOperationNcclNames);

constexpr std::array<SchemaTable, 18> kTables = {{
    {"SHARD_STATE", "Whether the run ended and what was lost; one row.", kState},
    {"SHARD_RUN", "The run's configuration and facts.", kRun},
    {"SHARD_RANKS", "The ranks, their devices, and their place in the mesh.", kRanks},
    {"SHARD_GROUPS",
     "The communicators, and their axes in the mesh. Since schema version 7.",
     kGroups,
     {},
     7},
    {"SHARD_THREADS", "Which host threads work for which rank.", kThreads},
    {"SHARD_STREAMS", "Names of the ranks' streams.", kStreams},
    {"SHARD_STEPS", "Training steps on the ranks' host threads.", kSteps},
    {"SHARD_SCHEDULE",
     "The actions of a pipeline schedule, as planned for every step. Since schema version 7.",
     kSchedule,
     {},
     7},
    {"SHARD_LOSSES", "The loss of each step.", kLosses},
    {"SHARD_METRICS",
     "Values that training reports beside its loss: validation loss, learning rate, throughput, memory. "
     "Since "
     "schema version 8.",
     kMetrics,
     {},
     8},
    {"SHARD_MODULES", "The module tree.", kModules},
    {"SHARD_UNITS", "The FSDP units.", kUnits},
    {"SHARD_PREDICTION", "The memory account's prediction.", kPrediction},
    {"SHARD_PREDICTION_PARTS",
     "The memory account's prediction by FSDP unit, module, buffer and step. Since schema version 2.",
     kPartColumns,
     {},
     2},
    {"SHARD_CLOCKS",
     "Offsets of the clocks of the ranks' hosts from rank 0's. Since schema version 5.",
     kClocks,
     {},
     5},
    {"SHARD_STOPS",
     "In a job that failed: which rank stopped first, as each remaining rank reported it. Since schema "
     "version "
     "5.",
     kStops,
     {},
     5},
    {"SHARD_DEVICES",
     "The devices and adapters of the job's hosts. Since schema version 9.",
     kDevices,
     {},
     9},
    {"SHARD_TOPOLOGY",
     "How these devices reach each other: a pair once, or once for each direction where these differ. Since "
     "schema "
     "version 9.",
     kTopology,
     {},
     9},
}};

constexpr std::array<SchemaTable, 5> kEnums = {{
    {"SHARD_ENUM_CATEGORY", "What an allocation contains.", kEnumColumns, kCategoryRows},
    {"SHARD_ENUM_SPACE", "Memory spaces.", kEnumColumns, kSpaceRows},
    {"SHARD_ENUM_PHASE", "Parts of a step.", kEnumColumns, kPhaseRows},
    {"SHARD_ENUM_OPERATION", "Collective operations; the label is NCCL's spelling.", kEnumColumns,
     kOperationRows},
    {"SHARD_ENUM_PART", "What a part of a prediction is of. Since schema version 2.", kEnumColumns, kPartRows,
     2},
}};

std::vector<SchemaTable> all_tables() {
    std::vector<SchemaTable> all(kTables.begin(), kTables.end());
    for (const auto part : {shard_event_tables(), shard_plan_tables()})
        all.insert(all.end(), part.begin(), part.end());
    return all;
}

}  // namespace

std::span<const SchemaTable> shard_tables() {
    static const std::vector<SchemaTable> kAll = all_tables();
    return kAll;
}
std::span<const SchemaTable> shard_enums() {
    return kEnums;
}

}  // namespace shardscope::traces::schema
