#include "traces/store/write/event_inserts.h"

#include <array>
#include <bit>

namespace shardscope::traces {

namespace {

constexpr std::int64_t kNoneOfNsight = 4294967295;  // Nsight's "no stream", "no event"

// A name is NULL where there is none.
template <auto Member>
constexpr auto name_id = [](const auto& row) {
    return std::invoke(Member, row) == StringId::empty ? -1
                                                       : static_cast<std::int64_t>(std::invoke(Member, row));
};
template <auto Member>
constexpr auto or_not_applicable = [](const auto& row) -> std::int64_t {
    const std::int64_t value = std::invoke(Member, row);
    return value < 0 ? kNoneOfNsight : value;
};
// An address is NULL where it is 0.
template <auto Member>
constexpr auto address = [](SqlValue cell, const auto& row) {
    const std::uint64_t value = std::invoke(Member, row);
    if (value != 0) cell.integer(static_cast<std::int64_t>(value));
};

using Kernel = ColumnOf<KernelRow>;
constexpr std::array kKernel = {
    Kernel::integer<&KernelRow::start>("start"),
    Kernel::integer<&KernelRow::end>("end"),
    Kernel::integer<&KernelRow::device>("deviceId"),
    Kernel::integer<&KernelRow::context>("contextId"),
    Kernel::integer<&KernelRow::stream>("streamId"),
    Kernel::integer<&KernelRow::correlation>("correlationId"),
    Kernel::integer<&KernelRow::global_pid>("globalPid"),
    Kernel::integer<[](const KernelRow& r) {
        return r.demangled_name != StringId::empty ? r.demangled_name : r.short_name;
    }>("demangledName"),
    Kernel::integer<&KernelRow::short_name>("shortName"),
    Kernel::id<name_id<&KernelRow::mangled_name>>("mangledName"),
    Kernel::integer<&KernelRow::launch_type>("launchType"),
    Kernel::id<&KernelRow::cache_config>("cacheConfig"),
    Kernel::integer<&KernelRow::registers>("registersPerThread"),
    Kernel::integer<[](const KernelRow& r) { return r.grid[0]; }>("gridX"),
    Kernel::integer<[](const KernelRow& r) { return r.grid[1]; }>("gridY"),
    Kernel::integer<[](const KernelRow& r) { return r.grid[2]; }>("gridZ"),
    Kernel::integer<[](const KernelRow& r) { return r.block[0]; }>("blockX"),
    Kernel::integer<[](const KernelRow& r) { return r.block[1]; }>("blockY"),
    Kernel::integer<[](const KernelRow& r) { return r.block[2]; }>("blockZ"),
    Kernel::integer<&KernelRow::static_shared_memory>("staticSharedMemory"),
    Kernel::integer<&KernelRow::dynamic_shared_memory>("dynamicSharedMemory"),
    Kernel::integer<&KernelRow::local_memory_per_thread>("localMemoryPerThread"),
    Kernel::integer<&KernelRow::local_memory_total>("localMemoryTotal"),
    Kernel::integer<&KernelRow::grid_id>("gridId"),
    Kernel::id<&KernelRow::shared_memory_executed>("sharedMemoryExecuted"),
    rare(Kernel::id<&KernelRow::graph_node>("graphNodeId")),
    Kernel::id<&KernelRow::shared_memory_limit_config>("sharedMemoryLimitConfig"),
    rare(Kernel::id<&KernelRow::graph>("graphId")),
    rare(Kernel::id<[](const KernelRow& r) { return r.cluster[0]; }>("clusterX")),
    rare(Kernel::id<[](const KernelRow& r) { return r.cluster[1]; }>("clusterY")),
    rare(Kernel::id<[](const KernelRow& r) { return r.cluster[2]; }>("clusterZ")),
    rare(Kernel::id<&KernelRow::cluster_policy>("clusterSchedulingPolicy")),
    rare(Kernel::id<&KernelRow::max_potential_cluster>("maxPotentialClusterSize")),
    rare(Kernel::id<&KernelRow::max_active_clusters>("maxActiveClusters")),
    Kernel::constant("tensorSizeMinusOneElements", "'[]'"),
};

bool has_rare(const KernelRow& r) {
    return r.graph_node >= 0 || r.graph >= 0 || r.cluster[0] >= 0 || r.cluster[1] >= 0 || r.cluster[2] >= 0 ||
           r.cluster_policy >= 0 || r.max_potential_cluster >= 0 || r.max_active_clusters >= 0;
}

using Memcpy = ColumnOf<MemcpyRow>;
constexpr std::array kMemcpy = {
    Memcpy::integer<&MemcpyRow::start>("start"),
    Memcpy::integer<&MemcpyRow::end>("end"),
    Memcpy::integer<&MemcpyRow::device>("deviceId"),
    Memcpy::integer<&MemcpyRow::context>("contextId"),
    Memcpy::integer<&MemcpyRow::stream>("streamId"),
    Memcpy::integer<&MemcpyRow::correlation>("correlationId"),
    Memcpy::integer<&MemcpyRow::global_pid>("globalPid"),
    Memcpy::integer<&MemcpyRow::bytes>("bytes"),
    Memcpy::integer<&MemcpyRow::copy_kind>("copyKind"),
    Memcpy::integer<&MemcpyRow::src_kind>("srcKind"),
    Memcpy::integer<&MemcpyRow::dst_kind>("dstKind"),
    Memcpy::id<&MemcpyRow::src_device>("srcDeviceId"),
    Memcpy::id<&MemcpyRow::src_context>("srcContextId"),
    Memcpy::id<&MemcpyRow::dst_device>("dstDeviceId"),
    Memcpy::id<&MemcpyRow::dst_context>("dstContextId"),
    Memcpy::id<&MemcpyRow::graph_node>("graphNodeId"),
    Memcpy::id<&MemcpyRow::copies>("copyCount"),
};

using Memset = ColumnOf<MemsetRow>;
constexpr std::array kMemset = {
    Memset::integer<&MemsetRow::start>("start"),
    Memset::integer<&MemsetRow::end>("end"),
    Memset::integer<&MemsetRow::device>("deviceId"),
    Memset::integer<&MemsetRow::context>("contextId"),
    Memset::integer<&MemsetRow::stream>("streamId"),
    Memset::integer<&MemsetRow::correlation>("correlationId"),
    Memset::integer<&MemsetRow::global_pid>("globalPid"),
    Memset::integer<&MemsetRow::value>("value"),
    Memset::integer<&MemsetRow::bytes>("bytes"),
    Memset::id<&MemsetRow::graph_node>("graphNodeId"),
    Memset::integer<&MemsetRow::mem_kind>("memKind"),
};

using Runtime = ColumnOf<RuntimeRow>;
constexpr std::array kRuntime = {
    Runtime::integer<&RuntimeRow::start>("start"),
    Runtime::integer<&RuntimeRow::end>("end"),
    Runtime::integer<&RuntimeRow::driver>("eventClass"),
    Runtime::integer<&RuntimeRow::global_tid>("globalTid"),
    Runtime::integer<&RuntimeRow::correlation>("correlationId"),
    Runtime::integer<&RuntimeRow::name>("nameId"),
    Runtime::integer<&RuntimeRow::return_value>("returnValue"),
};

using Synchronization = ColumnOf<SynchronizationRow>;
constexpr std::array kSynchronization = {
    Synchronization::integer<&SynchronizationRow::start>("start"),
    Synchronization::integer<&SynchronizationRow::end>("end"),
    Synchronization::integer<&SynchronizationRow::device>("deviceId"),
    Synchronization::integer<&SynchronizationRow::context>("contextId"),
    Synchronization::integer<or_not_applicable<&SynchronizationRow::stream>>("streamId"),
    Synchronization::integer<&SynchronizationRow::correlation>("correlationId"),
    Synchronization::integer<&SynchronizationRow::global_pid>("globalPid"),
    Synchronization::integer<&SynchronizationRow::sync_type>("syncType"),
    Synchronization::integer<or_not_applicable<&SynchronizationRow::event_id>>("eventId"),
    Synchronization::id<&SynchronizationRow::event_sync_id>("eventSyncId"),
};

using CudaEvent = ColumnOf<CudaEventRow>;
constexpr std::array kCudaEvent = {
    CudaEvent::integer<&CudaEventRow::time>("timestamp"),
    CudaEvent::integer<&CudaEventRow::device>("deviceId"),
    CudaEvent::integer<&CudaEventRow::context>("contextId"),
    CudaEvent::integer<&CudaEventRow::stream>("streamId"),
    CudaEvent::integer<&CudaEventRow::correlation>("correlationId"),
    CudaEvent::integer<&CudaEventRow::global_pid>("globalPid"),
    CudaEvent::integer<&CudaEventRow::event_id>("eventId"),
    CudaEvent::id<&CudaEventRow::event_sync_id>("eventSyncId"),
};

using Overhead = ColumnOf<OverheadRow>;
constexpr std::array kOverhead = {
    Overhead::integer<&OverheadRow::start>("start"),
    Overhead::integer<&OverheadRow::end>("end"),
    Overhead::constant("eventClass", "0"),
    Overhead::integer<&OverheadRow::global_tid>("globalTid"),
    Overhead::integer<&OverheadRow::correlation>("correlationId"),
    Overhead::id<name_id<&OverheadRow::name>>("nameId"),
    Overhead::integer<&OverheadRow::overhead_type>("overheadType"),
};

using GraphTrace = ColumnOf<GraphTraceRow>;
constexpr std::array kGraphTrace = {
    GraphTrace::integer<&GraphTraceRow::start>("start"),
    GraphTrace::integer<&GraphTraceRow::end>("end"),
    GraphTrace::integer<&GraphTraceRow::device>("deviceId"),
    GraphTrace::integer<&GraphTraceRow::graph>("graphId"),
    GraphTrace::id<&GraphTraceRow::graph_exec>("graphExecId"),
    GraphTrace::integer<&GraphTraceRow::context>("contextId"),
    GraphTrace::integer<&GraphTraceRow::stream>("streamId"),
    GraphTrace::integer<&GraphTraceRow::correlation>("correlationId"),
    GraphTrace::integer<&GraphTraceRow::global_pid>("globalPid"),
};

using Usage = ColumnOf<MemoryUsageRow>;
// Of the pool that the memory came from; NULL where it came from none.
template <auto Member>
constexpr auto of_pool = [](SqlValue cell, const MemoryUsageRow& r) {
    if (r.row.pool_address != 0) cell.integer(static_cast<std::int64_t>(std::invoke(Member, r.row)));
};
constexpr std::array kMemoryUsage = {
    Usage::integer<[](const MemoryUsageRow& r) { return r.row.time; }>("start"),
    Usage::integer<[](const MemoryUsageRow& r) { return r.row.global_pid; }>("globalPid"),
    Usage::integer<[](const MemoryUsageRow& r) { return r.row.device; }>("deviceId"),
    Usage::integer<[](const MemoryUsageRow& r) { return r.row.context; }>("contextId"),
    Usage::integer<[](const MemoryUsageRow& r) { return r.row.address; }>("address"),
    Usage::any<[](SqlValue cell, const MemoryUsageRow& r) { address<&CudaMemoryRow::pc>(cell, r.row); }>(
        "pc"),
    Usage::integer<[](const MemoryUsageRow& r) { return r.row.bytes; }>("bytes"),
    Usage::integer<[](const MemoryUsageRow& r) { return r.row.mem_kind; }>("memKind"),
    Usage::integer<[](const MemoryUsageRow& r) { return r.row.is_free; }>("memoryOperationType"),
    Usage::any<[](SqlValue cell, const MemoryUsageRow& r) {
        if (r.row.name != StringId::empty) cell.text(r.name);
    }>("name"),
    Usage::any<[](SqlValue cell, const MemoryUsageRow& r) {
        if (r.row.correlation != 0) cell.integer(r.row.correlation);
    }>("correlationId"),
    Usage::id<[](const MemoryUsageRow& r) { return r.row.stream; }>("streamId"),
    Usage::any<of_pool<&CudaMemoryRow::pool_address>>("localMemoryPoolAddress"),
    Usage::any<of_pool<&CudaMemoryRow::pool_threshold>>("localMemoryPoolReleaseThreshold"),
    Usage::any<of_pool<&CudaMemoryRow::pool_size>>("localMemoryPoolSize"),
    Usage::any<of_pool<&CudaMemoryRow::pool_used>>("localMemoryPoolUtilizedSize"),
};

using Pool = ColumnOf<CudaPoolRow>;
constexpr std::array kMemoryPool = {
    Pool::integer<&CudaPoolRow::time>("start"),
    Pool::integer<&CudaPoolRow::global_pid>("globalPid"),
    Pool::integer<&CudaPoolRow::device>("deviceId"),
    Pool::integer<&CudaPoolRow::address>("address"),
    Pool::integer<&CudaPoolRow::operation>("operationType"),
    Pool::integer<&CudaPoolRow::type>("poolType"),
    Pool::integer<&CudaPoolRow::correlation>("correlationId"),
    Pool::integer<&CudaPoolRow::min_bytes_to_keep>("minBytesToKeep"),
    Pool::integer<&CudaPoolRow::threshold>("localMemoryPoolReleaseThreshold"),
    Pool::integer<&CudaPoolRow::size>("localMemoryPoolSize"),
    Pool::integer<&CudaPoolRow::used>("localMemoryPoolUtilizedSize"),
};

using Nvtx = ColumnOf<NvtxRow>;
// The payload, in the column of its type.
template <RangePayload::Type Type>
constexpr auto payload = [](SqlValue cell, const NvtxRow& r) {
    using enum RangePayload::Type;
    const RangePayload& p = r.range.payload;
    if (p.type != Type) return;
    const auto low = static_cast<std::uint32_t>(p.bits);
    if constexpr (Type == uint64 || Type == int64) cell.integer(static_cast<std::int64_t>(p.bits));
    if constexpr (Type == real64) cell.real(std::bit_cast<double>(p.bits));
    if constexpr (Type == uint32) cell.integer(low);
    if constexpr (Type == int32) cell.integer(static_cast<std::int32_t>(low));
    if constexpr (Type == real32) cell.real(std::bit_cast<float>(low));
};
constexpr std::array kNvtx = {
    Nvtx::integer<[](const NvtxRow& r) { return r.range.start; }>("start"),
    Nvtx::optional<[](const NvtxRow& r) { return r.range.end; }>("end"),
    Nvtx::integer<[](const NvtxRow& r) { return r.range.event_type; }>("eventType"),
    rare(Nvtx::id<&NvtxRow::range_id>("rangeId")),
    rare(Nvtx::optional<[](const NvtxRow& r) { return r.range.category; }>("category")),
    rare(Nvtx::optional<[](const NvtxRow& r) { return r.range.color; }>("color")),
    Nvtx::text<&NvtxRow::text>("text"),
    Nvtx::integer<[](const NvtxRow& r) { return r.range.global_tid; }>("globalTid"),
    rare(Nvtx::optional<[](const NvtxRow& r) { return r.range.end_global_tid; }>("endGlobalTid")),
    Nvtx::integer<[](const NvtxRow& r) { return r.range.text; }>("textId"),
    Nvtx::integer<&NvtxRow::domain>("domainId"),
    rare(Nvtx::any<[](SqlValue cell, const NvtxRow& r) {
        if (r.range.external_id != 0) return cell.integer(r.range.external_id);
        payload<RangePayload::Type::uint64>(cell, r);
    }>("uint64Value")),
    Nvtx::any<[](SqlValue cell, const NvtxRow& r) {
        if (r.range.module >= 0) return cell.integer(r.range.module);
        payload<RangePayload::Type::int64>(cell, r);
    }>("int64Value"),
    rare(Nvtx::any<payload<RangePayload::Type::real64>>("doubleValue")),
    rare(Nvtx::any<payload<RangePayload::Type::uint32>>("uint32Value")),
    rare(Nvtx::any<payload<RangePayload::Type::int32>>("int32Value")),
    rare(Nvtx::any<payload<RangePayload::Type::real32>>("floatValue")),
    rare(Nvtx::id<name_id<[](const NvtxRow& r) { return r.range.detail; }>>("jsonTextId")),
    rare(Nvtx::any<[](SqlValue cell, const NvtxRow& r) {
        if (!r.range.binary.empty()) cell.blob(r.range.binary);
    }>("binaryData")),
};

bool has_rare(const NvtxRow& r) {
    return r.range_id >= 0 || r.range.category || r.range.color || r.range.end_global_tid ||
           r.range.payload.type != RangePayload::Type::none || !r.range.binary.empty() ||
           r.range.detail != StringId::empty || r.range.external_id != 0;
}

using Collective = ColumnOf<CollectiveRow>;
constexpr std::array kCollective = {
    Collective::integer<&CollectiveRow::rank>("rank"),
    Collective::integer<&CollectiveRow::correlation>("correlationId"),
    Collective::integer<&CollectiveRow::operation>("operation"),
    Collective::integer<&CollectiveRow::bytes>("bytes"),
    Collective::integer<&CollectiveRow::padding>("padding"),
    Collective::integer<&CollectiveRow::group>("groupId"),
    Collective::integer<&CollectiveRow::group_size>("groupSize"),
    Collective::integer<&CollectiveRow::sequence>("sequence"),
    Collective::id<&CollectiveRow::unit>("unit"),
    Collective::integer<&CollectiveRow::phase>("phase"),
};

using Memory = ColumnOf<MemoryRow>;
constexpr std::array kMemory = {
    Memory::integer<&MemoryRow::time>("time"),
    Memory::integer<&MemoryRow::rank>("rank"),
    Memory::integer<&MemoryRow::address>("address"),
    Memory::integer<&MemoryRow::bytes>("bytes"),
    Memory::integer<&MemoryRow::category>("category"),
    Memory::integer<&MemoryRow::space>("space"),
    Memory::integer<&MemoryRow::phase>("phase"),
    Memory::id<&MemoryRow::unit>("unit"),
    Memory::id<&MemoryRow::module>("module"),
    Memory::id<&MemoryRow::stream>("streamId"),
    Memory::integer<&MemoryRow::name>("nameId"),
    rare(Memory::any<[](SqlValue cell, const MemoryRow& r) {
        if (r.global_tid != 0) cell.integer(r.global_tid);
    }>("globalTid")),
    rare(Memory::id<&MemoryRow::total>("total")),
    rare(Memory::id<&MemoryRow::reserved>("reserved")),
    rare(Memory::id<name_id<&MemoryRow::annotation>>("annotationId")),
    rare(Memory::id<name_id<&MemoryRow::stack>>("stackId")),
};

bool has_rare(const MemoryRow& r) {
    return r.global_tid != 0 || r.total >= 0 || r.reserved >= 0 || r.annotation != StringId::empty ||
           r.stack != StringId::empty;
}

using Segment = ColumnOf<SegmentRow>;
constexpr std::array kSegment = {
    Segment::integer<&SegmentRow::time>("time"),       Segment::integer<&SegmentRow::rank>("rank"),
    Segment::integer<&SegmentRow::address>("address"), Segment::integer<&SegmentRow::bytes>("bytes"),
    Segment::id<&SegmentRow::stream>("streamId"),
};

using Link = ColumnOf<LinkRow>;
constexpr std::array kLink = {
    Link::integer<&LinkRow::kind>("kind"),          Link::integer<&LinkRow::from_tid>("fromTid"),
    Link::integer<&LinkRow::from_time>("fromTime"), Link::integer<&LinkRow::to_tid>("toTid"),
    Link::integer<&LinkRow::to_time>("toTime"),
};

using Detail = ColumnOf<DeviceDetailRow>;
template <auto Member>
constexpr auto if_known = [](SqlValue cell, const DeviceDetailRow& r) {
    const float value = std::invoke(Member, r);
    if (value >= 0) cell.real(value);
};
constexpr std::array kDetail = {
    Detail::integer<&DeviceDetailRow::start>("start"),
    Detail::integer<&DeviceDetailRow::device>("deviceId"),
    Detail::integer<&DeviceDetailRow::stream>("streamId"),
    Detail::integer<&DeviceDetailRow::correlation>("correlationId"),
    Detail::any<[](SqlValue cell, const DeviceDetailRow& r) {
        if (r.external_id != 0) cell.integer(r.external_id);
    }>("externalId"),
    Detail::any<if_known<&DeviceDetailRow::blocks_per_sm>>("blocksPerSm"),
    Detail::any<if_known<&DeviceDetailRow::occupancy>>("occupancy"),
};

using Flight = ColumnOf<FlightRow>;
constexpr std::array kFlight = {
    Flight::integer<&FlightRow::rank>("rank"),
    Flight::integer<&FlightRow::id>("id"),
    Flight::integer<&FlightRow::group>("groupNameId"),
    Flight::integer<&FlightRow::group_description>("groupDescriptionId"),
    Flight::integer<&FlightRow::group_size>("groupSize"),
    Flight::integer<&FlightRow::sequence>("sequence"),
    Flight::integer<&FlightRow::point_to_point>("pointToPoint"),
    Flight::integer<&FlightRow::operation>("operation"),
    Flight::integer<&FlightRow::name>("nameId"),
    Flight::id<&FlightRow::input_bytes>("inputBytes"),
    Flight::id<&FlightRow::output_bytes>("outputBytes"),
    Flight::integer<&FlightRow::data_type>("dataTypeId"),
    Flight::integer<&FlightRow::sizes>("sizesId"),
    Flight::integer<&FlightRow::state>("state"),
    Flight::integer<&FlightRow::created>("created"),
    Flight::optional<&FlightRow::started>("started"),
    Flight::optional<&FlightRow::completed>("completed"),
    Flight::id<&FlightRow::timeout_ms>("timeout"),
    Flight::integer<&FlightRow::stack>("stackId"),
};

using Counter = ColumnOf<CounterRow>;
constexpr std::array kCounter = {
    Counter::integer<&CounterRow::time>("time"),
    Counter::integer<&CounterRow::rank>("rank"),  // -1: of no rank
    Counter::integer<&CounterRow::name>("nameId"),
    Counter::real<&CounterRow::value>("value"),
};

}  // namespace

EventInserts::EventInserts(Database& db)
    : kernels(db, "CUPTI_ACTIVITY_KIND_KERNEL", kKernel, has_rare),
      memcpys(db, "CUPTI_ACTIVITY_KIND_MEMCPY", kMemcpy),
      memsets(db, "CUPTI_ACTIVITY_KIND_MEMSET", kMemset),
      runtime(db, "CUPTI_ACTIVITY_KIND_RUNTIME", kRuntime),
      synchronizations(db, "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", kSynchronization),
      cuda_events(db, "CUPTI_ACTIVITY_KIND_CUDA_EVENT", kCudaEvent),
      overheads(db, "CUPTI_ACTIVITY_KIND_OVERHEAD", kOverhead),
      graph_traces(db, "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", kGraphTrace),
      memory_usage(db, "CUDA_GPU_MEMORY_USAGE_EVENTS", kMemoryUsage),
      memory_pools(db, "CUDA_GPU_MEMORY_POOL_EVENTS", kMemoryPool),
      nvtx(db, "NVTX_EVENTS", kNvtx, has_rare),
      collectives(db, "SHARD_COLLECTIVES", kCollective),
      memory(db, "SHARD_MEMORY", kMemory, has_rare),
      counters(db, "SHARD_COUNTERS", kCounter),
      segments(db, "SHARD_SEGMENTS", kSegment),
      links(db, "SHARD_LINKS", kLink),
      device_details(db, "SHARD_DEVICE_DETAILS", kDetail),
      flight_records(db, "SHARD_FLIGHT_RECORDS", kFlight) {}

void EventInserts::flush() {
    kernels.flush();
    memcpys.flush();
    memsets.flush();
    runtime.flush();
    synchronizations.flush();
    cuda_events.flush();
    overheads.flush();
    graph_traces.flush();
    memory_usage.flush();
    memory_pools.flush();
    nvtx.flush();
    collectives.flush();
    memory.flush();
    counters.flush();
    segments.flush();
    links.flush();
    device_details.flush();
    flight_records.flush();
}

}  // namespace shardscope::traces
