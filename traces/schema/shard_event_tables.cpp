// Tables that Nsight Systems does not have: collectives, memory by category, NCCL's own records, counters.
#include <array>

#include "traces/schema/enums.h"
#include "traces/schema/row_access.h"
#include "traces/schema/schema.h"
#include "traces/schema/shard_columns.h"
#include "traces/schema/stored_rows.h"

namespace shardscope::traces::schema {

namespace {

using namespace own;

constexpr std::array kCollectives = {
    with(own::kRank, from<&CollectiveRow::rank>),
    SchemaColumn{"correlationId", kIntNN, "id", "Of its kernel. CUPTI_ACTIVITY_KIND_KERNEL.correlationId",
                 from<&CollectiveRow::correlation>},
    SchemaColumn{"operation", kIntNN, "enum", "SHARD_ENUM_OPERATION", from<&CollectiveRow::operation>},
    SchemaColumn{"bytes", kIntNN, "bytes",
                 "Size of the full buffer after gathering, with padding; 0: unknown.",
                 from<&CollectiveRow::bytes>},
    SchemaColumn{"padding", kIntNN, "bytes", "Padding included in `bytes`.", from<&CollectiveRow::padding>},
    SchemaColumn{"groupId", kIntNN, "id", "The communicator.", from<&CollectiveRow::group>},
    SchemaColumn{"groupSize", kIntNN, "ranks", "Ranks in it.", from<&CollectiveRow::group_size>},
    SchemaColumn{"sequence", kIntNN, "",
                 "Number in the communicator, equal on all its ranks: in the order of issue or, if NCCL "
                 "reported its own, among the operations of that kind; -1: unknown.",
                 from<&CollectiveRow::sequence>},
    with(own::kUnit, unless_negative<&CollectiveRow::unit>),
    with(own::kPhase, from<&CollectiveRow::phase>),
};

constexpr std::array kMemory = {
    SchemaColumn{"time", kIntNN, "ns", "When, in the host program's order, since the start of the capture.",
                 from<&MemoryRow::time>},
    with(own::kRank, from<&MemoryRow::rank>),
    SchemaColumn{"address", kIntNN, "address", "Address of the block; ties a free to its allocation.",
                 from<&MemoryRow::address>},
    SchemaColumn{"bytes", kIntNN, "bytes",
                 "Positive: allocated; negative: freed. The running sum is the live memory.",
                 from<&MemoryRow::bytes>},
    SchemaColumn{"category", kIntNN, "enum", "What it contains. SHARD_ENUM_CATEGORY",
                 from<&MemoryRow::category>},
    SchemaColumn{"space", kIntNN, "enum", "Its memory space. SHARD_ENUM_SPACE", from<&MemoryRow::space>},
    with(own::kPhase, from<&MemoryRow::phase>),
    with(own::kUnit, unless_negative<&MemoryRow::unit>),
    SchemaColumn{"module", kInt, "id", "The module that allocated it. SHARD_MODULES.id",
                 unless_negative<&MemoryRow::module>},
    SchemaColumn{"streamId", kInt, "id", "The stream that it belongs to.",
                 unless_negative<&MemoryRow::stream>},
    SchemaColumn{"nameId", kIntNN, "id", "The buffer's name. StringIds.id", from<&MemoryRow::name>},
    SchemaColumn{"globalTid", kInt, "id", "The thread that allocated it, serialized. Since schema version 4.",
                 rarely(unless_zero<&MemoryRow::global_tid>)},
    SchemaColumn{"total", kInt, "bytes",
                 "Live on the device right after it, as the allocator reports. Since schema version 4.",
                 rarely(unless_negative<&MemoryRow::total>)},
    SchemaColumn{"reserved", kInt, "bytes",
                 "Reserved by the caching allocator right after it. Since schema version 4.",
                 rarely(unless_negative<&MemoryRow::reserved>)},
    SchemaColumn{"annotationId", kInt, "id",
                 "The annotation under which it was allocated. StringIds.id. Since schema version 4.",
                 rarely(unless_zero<&MemoryRow::annotation>)},
    SchemaColumn{"stackId", kInt, "id",
                 "The frames, innermost first, one a line. StringIds.id. Since schema version 4.",
                 rarely(unless_zero<&MemoryRow::stack>)},
};

constexpr std::array kSegments = {
    SchemaColumn{"time", kIntNN, "ns", "When, since the start of the capture.", from<&SegmentRow::time>},
    with(own::kRank, from<&SegmentRow::rank>),
    SchemaColumn{"address", kIntNN, "address", "Of the segment.", from<&SegmentRow::address>},
    SchemaColumn{"bytes", kIntNN, "bytes", "Positive: taken from the device; negative: given back.",
                 from<&SegmentRow::bytes>},
    SchemaColumn{"streamId", kInt, "id", "The stream that it serves.", unless_negative<&SegmentRow::stream>},
};

constexpr std::array kAllocatorEvents = {
    SchemaColumn{"time", kIntNN, "ns", "When, since the start of the capture.",
                 from<&AllocatorEventRow::time>},
    with(own::kRank, from<&AllocatorEventRow::rank>),
    SchemaColumn{"kind", kIntNN, "enum",
                 "0 a free that waits for a stream, 1 a request that failed, 2 a segment at the end.",
                 from<&AllocatorEventRow::kind>},
    SchemaColumn{"address", kIntNN, "address", "Of the block or segment; 0 of a request that failed.",
                 from<&AllocatorEventRow::address>},
    SchemaColumn{"bytes", kIntNN, "bytes", "Of the block, the request or the segment.",
                 from<&AllocatorEventRow::bytes>},
    SchemaColumn{"streamId", kIntNN, "id", "The stream that it serves.", from<&AllocatorEventRow::stream>},
    SchemaColumn{"pool", kIntNN, "", "Of a segment: its private pool; 0 the common one.",
                 from<&AllocatorEventRow::pool>},
    SchemaColumn{"small", kIntNN, "0/1", "Of a segment: 1 if it serves requests up to 1 MiB.",
                 from<&AllocatorEventRow::small>},
    SchemaColumn{"deviceFree", kInt, "bytes", "Of a request that failed: what the device had left.",
                 unless_negative<&AllocatorEventRow::device_free>},
};

constexpr std::array kLinks = {
    SchemaColumn{"kind", kIntNN, "enum", "0: from an operator to the operator of its backward.",
                 from<&LinkRow::kind>},
    SchemaColumn{"fromTid", kIntNN, "id", "Thread of the forward operator, serialized.",
                 from<&LinkRow::from_tid>},
    SchemaColumn{"fromTime", kIntNN, "ns", "Start of the forward operator.", from<&LinkRow::from_time>},
    SchemaColumn{"toTid", kIntNN, "id", "Thread of the backward operator, serialized.",
                 from<&LinkRow::to_tid>},
    SchemaColumn{"toTime", kIntNN, "ns", "Start of the backward operator.", from<&LinkRow::to_time>},
};

constexpr std::array kDeviceDetails = {
    SchemaColumn{"start", kIntNN, "ns", "Of the kernel, memcpy or memset.", from<&DeviceDetailRow::start>},
    SchemaColumn{"deviceId", kIntNN, "id", "Its device. TARGET_INFO_GPU.id", from<&DeviceDetailRow::device>},
    SchemaColumn{"streamId", kIntNN, "id", "Its stream.", from<&DeviceDetailRow::stream>},
    SchemaColumn{"correlationId", kIntNN, "id", "Its launch.", from<&DeviceDetailRow::correlation>},
    SchemaColumn{"externalId", kInt, "id",
                 "The operator that launched it, as the source reports. NVTX_EVENTS.uint64Value",
                 unless_zero<&DeviceDetailRow::external_id>},
    SchemaColumn{"blocksPerSm", "REAL", "", "Blocks of its grid for each multiprocessor.",
                 unless_negative<&DeviceDetailRow::blocks_per_sm>},
    SchemaColumn{"occupancy", "REAL", "%", "Achieved occupancy, as the source estimates it.",
                 unless_negative<&DeviceDetailRow::occupancy>},
};

constexpr std::array kFlightRecords = {
    with(own::kRank, from<&FlightRow::rank>),
    SchemaColumn{"id", kIntNN, "", "Number of the record, in the order of issue.", from<&FlightRow::id>},
    SchemaColumn{"groupNameId", kIntNN, "id", "The process group. StringIds.id", from<&FlightRow::group>},
    SchemaColumn{"groupDescriptionId", kIntNN, "id", "What it is for. StringIds.id",
                 from<&FlightRow::group_description>},
    SchemaColumn{"groupSize", kIntNN, "ranks", "Ranks in it; 0 not known.", from<&FlightRow::group_size>},
    SchemaColumn{"sequence", kIntNN, "", "Number in the group; of sends and receives their own count.",
                 from<&FlightRow::sequence>},
    SchemaColumn{"pointToPoint", kIntNN, "0/1", "1 for a send or receive.", from<&FlightRow::point_to_point>},
    SchemaColumn{"operation", kIntNN, "enum", "SHARD_ENUM_OPERATION", from<&FlightRow::operation>},
    SchemaColumn{"nameId", kIntNN, "id", "As PyTorch calls it: \"nccl:_all_gather_base\". StringIds.id",
                 from<&FlightRow::name>},
    SchemaColumn{"inputBytes", kInt, "bytes", "Input bytes of the rank.",
                 unless_negative<&FlightRow::input_bytes>},
    SchemaColumn{"outputBytes", kInt, "bytes", "Output bytes of the rank.",
                 unless_negative<&FlightRow::output_bytes>},
    SchemaColumn{"dataTypeId", kIntNN, "id", "Type of the elements. StringIds.id",
                 from<&FlightRow::data_type>},
    SchemaColumn{"sizesId", kIntNN, "id", "Shapes of inputs and outputs. StringIds.id",
                 from<&FlightRow::sizes>},
    SchemaColumn{"state", kIntNN, "enum", "0 scheduled, 1 started, 2 completed.", from<&FlightRow::state>},
    SchemaColumn{"created", kIntNN, "ns", "When the host issued it.", from<&FlightRow::created>},
    SchemaColumn{"started", kInt, "ns", "When the device was seen to begin.", from<&FlightRow::started>},
    SchemaColumn{"completed", kInt, "ns", "When the device was seen to have finished.",
                 from<&FlightRow::completed>},
    SchemaColumn{"timeout", kInt, "ms", "After which the watchdog gives up.",
                 unless_negative<&FlightRow::timeout_ms>},
    SchemaColumn{"stackId", kIntNN, "id", "The frames, innermost first, one a line. StringIds.id",
                 from<&FlightRow::stack>},
};

constexpr std::array kCounters = {
    SchemaColumn{"time", kIntNN, "ns", "When, since the start of the capture.", from<&CounterRow::time>},
    SchemaColumn{"rank", kIntNN, "rank", "The rank; -1: of no rank alone. SHARD_RANKS.rank",
                 from<&CounterRow::rank>},
    SchemaColumn{"nameId", kIntNN, "id",
                 "The counter's name, with its unit: \"reserved_bytes\". StringIds.id",
                 from<&CounterRow::name>},
    SchemaColumn{"value", "REAL", "", "Its value from then on; NULL where it was not a number.",
                 from<&CounterRow::value>},
    SchemaColumn{"hostId", kInt, "id",
                 "The host of a counter that is not one rank's alone: a GPU's, an adapter's or the host's. "
                 "StringIds.id. Since schema version 9.",
                 unless_zero<&CounterRow::host>},
    SchemaColumn{"device", kInt, "",
                 "Which device of the host: its number in SHARD_DEVICES; NULL: none. Since schema version 9.",
                 unless_negative<&CounterRow::device>},
};

constexpr std::array kSamples = {
    SchemaColumn{"time", kIntNN, "ns", "When, since the start of the capture.", from<&SampleRow::time>},
    SchemaColumn{"globalTid", kIntNN, "id", "The thread, serialized.", from<&SampleRow::global_tid>},
    SchemaColumn{"eventId", kIntNN, "id", "What the profiler counts: \"cpu-clock\", \"cycles\". StringIds.id",
                 from<&SampleRow::event>},
    SchemaColumn{
        "weight", kIntNN, "",
        "Of that event since the thread's last sample: ns of cpu-clock and task-clock, else a count.",
        from<&SampleRow::weight>},
    SchemaColumn{"cpu", kInt, "", "The processor that it ran on.", unless_negative<&SampleRow::cpu>},
    SchemaColumn{"stackId", kIntNN, "id",
                 "The frames, innermost first, one a line: \"function (module)\". StringIds.id",
                 from<&SampleRow::stack>},
};

constexpr std::array kCommunicators = {
    SchemaColumn{"communicator", kIntNN, "id",
                 "NCCL's hash of the communicator, equal on all its ranks. SHARD_COLLECTIVES.groupId",
                 from<&NcclCommunicatorRow::communicator>},
    SchemaColumn{"globalPid", kIntNN, "id", "The process, serialized.",
                 from<&NcclCommunicatorRow::global_pid>},
    SchemaColumn{"rank", kIntNN, "", "The process's rank in the communicator.",
                 from<&NcclCommunicatorRow::rank>},
    SchemaColumn{"ranks", kIntNN, "ranks", "Ranks in it; 0 where NCCL is too old to report it (before 2.26).",
                 from<&NcclCommunicatorRow::ranks>},
    SchemaColumn{"nodes", kInt, "count", "Machines in it.", unless_zero<&NcclCommunicatorRow::nodes>},
    SchemaColumn{"name", kText, "", "Its name, where the program gave one.",
                 unless_zero<&NcclCommunicatorRow::name>},
};

constexpr std::array kNcclOperations = {
    SchemaColumn{"communicator", kIntNN, "id", "SHARD_NCCL_COMMUNICATORS.communicator",
                 from<&NcclOperationRow::communicator>},
    SchemaColumn{"globalPid", kIntNN, "id", "The process, serialized.", from<&NcclOperationRow::global_pid>},
    SchemaColumn{"globalTid", kInt, "id", "The thread that called NCCL, serialized.",
                 unless_zero<&NcclOperationRow::global_tid>},
    SchemaColumn{"rank", kIntNN, "", "The process's rank in the communicator.",
                 from<&NcclOperationRow::rank>},
    SchemaColumn{"operation", kIntNN, "enum", "SHARD_ENUM_OPERATION", from<&NcclOperationRow::operation>},
    SchemaColumn{"sequence", kInt, "",
                 "Number of this operation in the communicator, counted for each kind of operation.",
                 unless_negative<&NcclOperationRow::sequence>},
    SchemaColumn{"start", kIntNN, "ns", "When NCCL began to enqueue it.", from<&NcclOperationRow::start>},
    SchemaColumn{"end", kInt, "ns", "When it was enqueued; the work itself is a kernel.",
                 from<&NcclOperationRow::end>},
    SchemaColumn{"count", kInt, "elements", "Elements, as given to NCCL.",
                 unless_negative<&NcclOperationRow::count>},
    SchemaColumn{"dataType", kText, "", "NCCL's name of their type: \"ncclFloat32\".",
                 unless_zero<&NcclOperationRow::data_type>},
    SchemaColumn{"root", kInt, "rank", "Root of a broadcast or reduce, peer of a send or receive.",
                 unless_negative<&NcclOperationRow::root>},
    SchemaColumn{"algorithm", kText, "", "\"RING\", \"TREE\", \"NVLS\" …",
                 unless_zero<&NcclOperationRow::algorithm>},
    SchemaColumn{"protocol", kText, "", "\"LL\", \"LL128\", \"SIMPLE\".",
                 unless_zero<&NcclOperationRow::protocol>},
    SchemaColumn{"channels", kInt, "count", "Channels that carry it.",
                 unless_negative<&NcclOperationRow::channels>},
    SchemaColumn{"warps", kInt, "count", "Warps of each channel.", unless_negative<&NcclOperationRow::warps>},
};

constexpr std::array kTotals = {
    SchemaColumn{"source", kTextNN, "", "The table that was summed: \"CUPTI_ACTIVITY_KIND_KERNEL\".",
                 from<&TotalRow::source>},
    SchemaColumn{"deviceId", kInt, "id", "The device; NULL for what host threads did.",
                 unless_negative<&TotalRow::device>},
    SchemaColumn{"globalPid", kInt, "id", "The process, serialized.", from<&TotalRow::global_pid>},
    SchemaColumn{"nameId", kIntNN, "id", "Kernel's short name, call or range. StringIds.id",
                 from<&TotalRow::name>},
    SchemaColumn{"count", kIntNN, "count", "Rows.", from<&TotalRow::count>},
    SchemaColumn{"total", kIntNN, "ns", "Sum of their durations.", from<&TotalRow::total>},
    SchemaColumn{"shortest", kIntNN, "ns", "Shortest of them.", from<&TotalRow::shortest>},
    SchemaColumn{"longest", kIntNN, "ns", "Longest of them.", from<&TotalRow::longest>},
};

constexpr std::array<SchemaTable, 12> kTables = {{
    {"SHARD_COLLECTIVES", "Collectives, one row for each rank that takes part.", kCollectives},
    {"SHARD_MEMORY", "Allocations and frees by category, in all spaces.", kMemory},
    {"SHARD_COUNTERS", "Values that change over time.", kCounters},
    {"SHARD_NCCL_COMMUNICATORS",
     "NCCL's communicators, one row for each process. Since schema version 3.",
     kCommunicators,
     {},
     3},
    {"SHARD_NCCL_OPERATIONS",
     "What NCCL reports about each operation: its algorithm and protocol. Since schema version 3.",
     kNcclOperations,
     {},
     3},
    {"SHARD_TOTALS", "Sums by name, made when the run ends. Since schema version 3.", kTotals, {}, 3},
    {"SHARD_LINKS", "Links from operators to their backward. Since schema version 4.", kLinks, {}, 4},
    {"SHARD_DEVICE_DETAILS",
     "What a source knows of device work beyond Nsight's tables. Since schema version 4.",
     kDeviceDetails,
     {},
     4},
    {"SHARD_SEGMENTS",
     "Memory that the caching allocator has reserved. Since schema version 4.",
     kSegments,
     {},
     4},
    {"SHARD_ALLOCATOR_EVENTS",
     "What PyTorch's caching allocator recorded beyond allocations and segments. Since schema version 6.",
     kAllocatorEvents,
     {},
     6},
    {"SHARD_FLIGHT_RECORDS",
     "What PyTorch's NCCL flight recorder dumped. Since schema version 4.",
     kFlightRecords,
     {},
     4},
    {"SHARD_SAMPLES",
     "Where threads were when a profiler of the processor looked at them. Since schema version 9.",
     kSamples,
     {},
     9},
}};

}  // namespace

std::span<const SchemaTable> shard_event_tables() {
    return kTables;
}

}  // namespace shardscope::traces::schema
