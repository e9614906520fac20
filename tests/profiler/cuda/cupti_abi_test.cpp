// The layouts and numbers of cupti/abi.h match those of the Toolkit's headers.
#include <cupti.h>
#include <gtest/gtest.h>

#include "profiler/cupti/abi.h"

namespace cupti = shardscope::profiler::cupti;

namespace TEST_FILE {

#define SAME(ours, our_field, theirs, their_field)                                    \
    static_assert(offsetof(cupti::ours, our_field) == offsetof(theirs, their_field)); \
    static_assert(sizeof(cupti::ours::our_field) == sizeof(theirs::their_field))
// For an array of ours that corresponds to several of their fields.
#define SAME_PLACE(ours, our_field, theirs, their_field) \
    static_assert(offsetof(cupti::ours, our_field) == offsetof(theirs, their_field))

#if CUPTI_API_VERSION >= 130000
SAME(Kernel, cache_config, CUpti_ActivityKernel10, cacheConfig);
SAME(Kernel, registers, CUpti_ActivityKernel10, registersPerThread);
SAME(Kernel, start, CUpti_ActivityKernel10, start);
SAME(Kernel, end, CUpti_ActivityKernel10, end);
SAME(Kernel, device, CUpti_ActivityKernel10, deviceId);
SAME(Kernel, context, CUpti_ActivityKernel10, contextId);
SAME(Kernel, stream, CUpti_ActivityKernel10, streamId);
SAME_PLACE(Kernel, grid, CUpti_ActivityKernel10, gridX);
SAME_PLACE(Kernel, block, CUpti_ActivityKernel10, blockX);
SAME(Kernel, static_shared, CUpti_ActivityKernel10, staticSharedMemory);
SAME(Kernel, dynamic_shared, CUpti_ActivityKernel10, dynamicSharedMemory);
SAME(Kernel, local_per_thread, CUpti_ActivityKernel10, localMemoryPerThread);
SAME(Kernel, local_total, CUpti_ActivityKernel10, localMemoryTotal);
SAME(Kernel, correlation, CUpti_ActivityKernel10, correlationId);
SAME(Kernel, grid_id, CUpti_ActivityKernel10, gridId);
SAME(Kernel, name, CUpti_ActivityKernel10, name);
SAME(Kernel, launch_type, CUpti_ActivityKernel10, launchType);
SAME(Kernel, shared_executed, CUpti_ActivityKernel10, sharedMemoryExecuted);
SAME(Kernel, graph_node, CUpti_ActivityKernel10, graphNodeId);
SAME(Kernel, shared_limit_config, CUpti_ActivityKernel10, shmemLimitConfig);
SAME(Kernel, graph, CUpti_ActivityKernel10, graphId);
SAME_PLACE(Kernel, cluster, CUpti_ActivityKernel10, clusterX);
SAME(Kernel, cluster_policy, CUpti_ActivityKernel10, clusterSchedulingPolicy);
SAME(Kernel, local_total_64, CUpti_ActivityKernel10, localMemoryTotal_v2);
SAME(Kernel, max_potential_cluster, CUpti_ActivityKernel10, maxPotentialClusterSize);
SAME(Kernel, max_active_clusters, CUpti_ActivityKernel10, maxActiveClusters);
static_assert(sizeof(cupti::Kernel) <= sizeof(CUpti_ActivityKernel10));
static_assert(cupti::bytes_known<cupti::Kernel>(cupti::kVersion12_0) <= sizeof(CUpti_ActivityKernel9));
static_assert(cupti::bytes_known<cupti::Kernel>(cupti::kVersion11_8) <= sizeof(CUpti_ActivityKernel8));
static_assert(cupti::bytes_known<cupti::Kernel>(cupti::kVersion11_2) <= sizeof(CUpti_ActivityKernel6));

SAME(Memcpy, copy_kind, CUpti_ActivityMemcpy6, copyKind);
SAME(Memcpy, src_kind, CUpti_ActivityMemcpy6, srcKind);
SAME(Memcpy, dst_kind, CUpti_ActivityMemcpy6, dstKind);
SAME(Memcpy, bytes, CUpti_ActivityMemcpy6, bytes);
SAME(Memcpy, start, CUpti_ActivityMemcpy6, start);
SAME(Memcpy, end, CUpti_ActivityMemcpy6, end);
SAME(Memcpy, device, CUpti_ActivityMemcpy6, deviceId);
SAME(Memcpy, context, CUpti_ActivityMemcpy6, contextId);
SAME(Memcpy, stream, CUpti_ActivityMemcpy6, streamId);
SAME(Memcpy, correlation, CUpti_ActivityMemcpy6, correlationId);
SAME(Memcpy, graph_node, CUpti_ActivityMemcpy6, graphNodeId);
SAME(Memcpy, copies, CUpti_ActivityMemcpy6, copyCount);
static_assert(cupti::bytes_known<cupti::Memcpy>(cupti::kVersion11_2) <= sizeof(CUpti_ActivityMemcpy4));

SAME(MemcpyPeer, bytes, CUpti_ActivityMemcpyPtoP4, bytes);
SAME(MemcpyPeer, start, CUpti_ActivityMemcpyPtoP4, start);
SAME(MemcpyPeer, end, CUpti_ActivityMemcpyPtoP4, end);
SAME(MemcpyPeer, stream, CUpti_ActivityMemcpyPtoP4, streamId);
SAME(MemcpyPeer, src_device, CUpti_ActivityMemcpyPtoP4, srcDeviceId);
SAME(MemcpyPeer, src_context, CUpti_ActivityMemcpyPtoP4, srcContextId);
SAME(MemcpyPeer, dst_device, CUpti_ActivityMemcpyPtoP4, dstDeviceId);
SAME(MemcpyPeer, dst_context, CUpti_ActivityMemcpyPtoP4, dstContextId);
SAME(MemcpyPeer, correlation, CUpti_ActivityMemcpyPtoP4, correlationId);
SAME(MemcpyPeer, graph_node, CUpti_ActivityMemcpyPtoP4, graphNodeId);
static_assert(sizeof(cupti::MemcpyPeer) <= sizeof(CUpti_ActivityMemcpyPtoP3));

SAME(Memset, value, CUpti_ActivityMemset4, value);
SAME(Memset, bytes, CUpti_ActivityMemset4, bytes);
SAME(Memset, start, CUpti_ActivityMemset4, start);
SAME(Memset, end, CUpti_ActivityMemset4, end);
SAME(Memset, device, CUpti_ActivityMemset4, deviceId);
SAME(Memset, correlation, CUpti_ActivityMemset4, correlationId);
SAME(Memset, mem_kind, CUpti_ActivityMemset4, memoryKind);
SAME(Memset, graph_node, CUpti_ActivityMemset4, graphNodeId);
static_assert(sizeof(cupti::Memset) <= sizeof(CUpti_ActivityMemset3));

SAME(Synchronization, type, CUpti_ActivitySynchronization2, type);
SAME(Synchronization, start, CUpti_ActivitySynchronization2, start);
SAME(Synchronization, end, CUpti_ActivitySynchronization2, end);
SAME(Synchronization, correlation, CUpti_ActivitySynchronization2, correlationId);
SAME(Synchronization, context, CUpti_ActivitySynchronization2, contextId);
SAME(Synchronization, stream, CUpti_ActivitySynchronization2, streamId);
SAME(Synchronization, event, CUpti_ActivitySynchronization2, cudaEventId);
SAME(Synchronization, event_sync, CUpti_ActivitySynchronization2, cudaEventSyncId);
static_assert(cupti::bytes_known<cupti::Synchronization>(cupti::kVersion11_2) <=
              sizeof(CUpti_ActivitySynchronization));

SAME(CudaEvent, correlation, CUpti_ActivityCudaEvent2, correlationId);
SAME(CudaEvent, context, CUpti_ActivityCudaEvent2, contextId);
SAME(CudaEvent, stream, CUpti_ActivityCudaEvent2, streamId);
SAME(CudaEvent, event, CUpti_ActivityCudaEvent2, eventId);
SAME(CudaEvent, device, CUpti_ActivityCudaEvent2, deviceId);
SAME(CudaEvent, device_time, CUpti_ActivityCudaEvent2, deviceTimestamp);
SAME(CudaEvent, event_sync, CUpti_ActivityCudaEvent2, cudaEventSyncId);
static_assert(cupti::bytes_known<cupti::CudaEvent>(cupti::kVersion11_2) <= sizeof(CUpti_ActivityCudaEvent));

SAME(Memory, operation, CUpti_ActivityMemory4, memoryOperationType);
SAME(Memory, mem_kind, CUpti_ActivityMemory4, memoryKind);
SAME(Memory, correlation, CUpti_ActivityMemory4, correlationId);
SAME(Memory, address, CUpti_ActivityMemory4, address);
SAME(Memory, bytes, CUpti_ActivityMemory4, bytes);
SAME(Memory, time, CUpti_ActivityMemory4, timestamp);
SAME(Memory, pc, CUpti_ActivityMemory4, PC);
SAME(Memory, device, CUpti_ActivityMemory4, deviceId);
SAME(Memory, context, CUpti_ActivityMemory4, contextId);
SAME(Memory, stream, CUpti_ActivityMemory4, streamId);
SAME(Memory, name, CUpti_ActivityMemory4, name);
SAME(Memory, pool_type, CUpti_ActivityMemory4, memoryPoolConfig.memoryPoolType);
SAME_PLACE(Memory, pool_address, CUpti_ActivityMemory4, memoryPoolConfig.address);
SAME_PLACE(Memory, pool_threshold, CUpti_ActivityMemory4, memoryPoolConfig.releaseThreshold);
SAME_PLACE(Memory, pool_size, CUpti_ActivityMemory4, memoryPoolConfig.pool);
SAME_PLACE(Memory, pool_used, CUpti_ActivityMemory4, memoryPoolConfig.utilizedSize);
static_assert(sizeof(cupti::Memory) <= sizeof(CUpti_ActivityMemory3));
static_assert(cupti::bytes_known<cupti::Memory>(cupti::kVersion11_2) <= sizeof(CUpti_ActivityMemory2));

SAME(MemoryPool, operation, CUpti_ActivityMemoryPool3, memoryPoolOperationType);
SAME(MemoryPool, type, CUpti_ActivityMemoryPool3, memoryPoolType);
SAME(MemoryPool, correlation, CUpti_ActivityMemoryPool3, correlationId);
SAME(MemoryPool, device, CUpti_ActivityMemoryPool3, deviceId);
SAME(MemoryPool, min_bytes_to_keep, CUpti_ActivityMemoryPool3, minBytesToKeep);
SAME(MemoryPool, address, CUpti_ActivityMemoryPool3, address);
SAME(MemoryPool, size, CUpti_ActivityMemoryPool3, size);
SAME(MemoryPool, threshold, CUpti_ActivityMemoryPool3, releaseThreshold);
SAME(MemoryPool, time, CUpti_ActivityMemoryPool3, timestamp);
SAME(MemoryPool, used, CUpti_ActivityMemoryPool3, utilizedSize);
static_assert(sizeof(cupti::MemoryPool) <= sizeof(CUpti_ActivityMemoryPool2));
static_assert(cupti::bytes_known<cupti::MemoryPool>(cupti::kVersion11_2) <= sizeof(CUpti_ActivityMemoryPool));

SAME(ExternalCorrelation, external_kind, CUpti_ActivityExternalCorrelation, externalKind);
SAME(ExternalCorrelation, external_id, CUpti_ActivityExternalCorrelation, externalId);
SAME(ExternalCorrelation, correlation, CUpti_ActivityExternalCorrelation, correlationId);
static_assert(sizeof(cupti::ExternalCorrelation) == sizeof(CUpti_ActivityExternalCorrelation));

SAME(Overhead, overhead, CUpti_ActivityOverhead3, overheadKind);
SAME(Overhead, object, CUpti_ActivityOverhead3, objectKind);
SAME(Overhead, object_id, CUpti_ActivityOverhead3, objectId);
SAME(Overhead, start, CUpti_ActivityOverhead3, start);
SAME(Overhead, end, CUpti_ActivityOverhead3, end);
SAME(Overhead, correlation, CUpti_ActivityOverhead3, correlationId);
static_assert(cupti::bytes_known<cupti::Overhead>(cupti::kVersion11_2) <= sizeof(CUpti_ActivityOverhead));

SAME(GraphTrace, correlation, CUpti_ActivityGraphTrace2, correlationId);
SAME(GraphTrace, start, CUpti_ActivityGraphTrace2, start);
SAME(GraphTrace, end, CUpti_ActivityGraphTrace2, end);
SAME(GraphTrace, device, CUpti_ActivityGraphTrace2, deviceId);
SAME(GraphTrace, graph, CUpti_ActivityGraphTrace2, graphId);
SAME(GraphTrace, context, CUpti_ActivityGraphTrace2, contextId);
SAME(GraphTrace, stream, CUpti_ActivityGraphTrace2, streamId);

SAME(Device, memory_bandwidth, CUpti_ActivityDevice5, globalMemoryBandwidth);
SAME(Device, memory, CUpti_ActivityDevice5, globalMemorySize);
SAME(Device, constant_bytes, CUpti_ActivityDevice5, constantMemorySize);
SAME(Device, l2_bytes, CUpti_ActivityDevice5, l2CacheSize);
SAME(Device, warp_threads, CUpti_ActivityDevice5, numThreadsPerWarp);
SAME(Device, clock, CUpti_ActivityDevice5, coreClockRate);
SAME(Device, copy_engines, CUpti_ActivityDevice5, numMemcpyEngines);
SAME(Device, multiprocessors, CUpti_ActivityDevice5, numMultiprocessors);
SAME(Device, max_warps_per_multiprocessor, CUpti_ActivityDevice5, maxWarpsPerMultiprocessor);
SAME(Device, max_blocks_per_multiprocessor, CUpti_ActivityDevice5, maxBlocksPerMultiprocessor);
SAME(Device, max_shared_per_multiprocessor, CUpti_ActivityDevice5, maxSharedMemoryPerMultiprocessor);
SAME(Device, max_registers_per_multiprocessor, CUpti_ActivityDevice5, maxRegistersPerMultiprocessor);
SAME(Device, max_registers_per_block, CUpti_ActivityDevice5, maxRegistersPerBlock);
SAME(Device, max_shared_per_block, CUpti_ActivityDevice5, maxSharedMemoryPerBlock);
SAME(Device, max_threads_per_block, CUpti_ActivityDevice5, maxThreadsPerBlock);
SAME(Device, compute_major, CUpti_ActivityDevice5, computeCapabilityMajor);
SAME(Device, compute_minor, CUpti_ActivityDevice5, computeCapabilityMinor);
SAME(Device, id, CUpti_ActivityDevice5, id);
SAME(Device, uuid, CUpti_ActivityDevice5, uuid);
SAME(Device, name, CUpti_ActivityDevice5, name);
static_assert(sizeof(cupti::Device) <= sizeof(CUpti_ActivityDevice3));
#endif

SAME(Api, callback, CUpti_ActivityAPI, cbid);
SAME(Api, start, CUpti_ActivityAPI, start);
SAME(Api, end, CUpti_ActivityAPI, end);
SAME(Api, pid, CUpti_ActivityAPI, processId);
SAME(Api, tid, CUpti_ActivityAPI, threadId);
SAME(Api, correlation, CUpti_ActivityAPI, correlationId);
SAME(Api, result, CUpti_ActivityAPI, returnValue);
static_assert(sizeof(cupti::Api) == sizeof(CUpti_ActivityAPI));
SAME(Stream, context, CUpti_ActivityStream, contextId);
SAME(Stream, stream, CUpti_ActivityStream, streamId);
SAME(Stream, priority, CUpti_ActivityStream, priority);
SAME(Stream, flag, CUpti_ActivityStream, flag);
SAME(CallbackData, site, CUpti_CallbackData, callbackSite);
#if CUPTI_API_VERSION >= 130000
SAME(Context, context, CUpti_ActivityContext3, contextId);
SAME(Context, device, CUpti_ActivityContext3, deviceId);
SAME(Context, null_stream, CUpti_ActivityContext3, nullStreamId);
static_assert(sizeof(cupti::Context) <= sizeof(CUpti_ActivityContext));
SAME(SubscriberParams, size, CUpti_SubscriberParams, structSize);
SAME(SubscriberParams, name, CUpti_SubscriberParams, subscriberName);
SAME(SubscriberParams, other_name, CUpti_SubscriberParams, oldSubscriberName);
SAME(SubscriberParams, other_size, CUpti_SubscriberParams, oldSubscriberSize);
static_assert(sizeof(cupti::SubscriberParams) == CUpti_SubscriberParams_STRUCT_SIZE);
static_assert(cupti::kSubscriberNameBytes == CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN);
#endif

TEST(CuptiAbi, has_the_toolkits_numbers) {
    EXPECT_EQ(cupti::kKindMemcpy, CUPTI_ACTIVITY_KIND_MEMCPY);
    EXPECT_EQ(cupti::kKindMemset, CUPTI_ACTIVITY_KIND_MEMSET);
    EXPECT_EQ(cupti::kKindDriver, CUPTI_ACTIVITY_KIND_DRIVER);
    EXPECT_EQ(cupti::kKindRuntime, CUPTI_ACTIVITY_KIND_RUNTIME);
    EXPECT_EQ(cupti::kKindDevice, CUPTI_ACTIVITY_KIND_DEVICE);
    EXPECT_EQ(cupti::kKindContext, CUPTI_ACTIVITY_KIND_CONTEXT);
    EXPECT_EQ(cupti::kKindConcurrentKernel, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    EXPECT_EQ(cupti::kKindOverhead, CUPTI_ACTIVITY_KIND_OVERHEAD);
    EXPECT_EQ(cupti::kKindMemcpy2, CUPTI_ACTIVITY_KIND_MEMCPY2);
    EXPECT_EQ(cupti::kKindCudaEvent, CUPTI_ACTIVITY_KIND_CUDA_EVENT);
    EXPECT_EQ(cupti::kKindStream, CUPTI_ACTIVITY_KIND_STREAM);
    EXPECT_EQ(cupti::kKindSynchronization, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
    EXPECT_EQ(cupti::kKindExternalCorrelation, CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION);
    EXPECT_EQ(cupti::kExternalCustom0, static_cast<std::uint32_t>(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0));
    EXPECT_EQ(cupti::kKindMemory2, CUPTI_ACTIVITY_KIND_MEMORY2);
    EXPECT_EQ(cupti::kKindMemoryPool, CUPTI_ACTIVITY_KIND_MEMORY_POOL);
    EXPECT_EQ(cupti::kKindGraphTrace, CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
    EXPECT_EQ(cupti::kSuccess, CUPTI_SUCCESS);
    EXPECT_EQ(cupti::kMultipleSubscribers, CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
    EXPECT_EQ(cupti::kNotApplicable, static_cast<std::uint32_t>(CUPTI_SYNCHRONIZATION_INVALID_VALUE));
    EXPECT_EQ(cupti::kFlushForced, static_cast<std::uint32_t>(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
    EXPECT_EQ(cupti::kAttributeZeroedBuffers, CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER);
    EXPECT_EQ(cupti::kThreadIdSystem, CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
    EXPECT_EQ(cupti::kObjectThread, static_cast<std::uint32_t>(CUPTI_ACTIVITY_OBJECT_THREAD));
    EXPECT_EQ(cupti::kMemoryRelease,
              static_cast<std::uint32_t>(CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE));
    EXPECT_EQ(cupti::kPoolLocal, static_cast<std::uint32_t>(CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL));
    EXPECT_EQ(cupti::kDomainDriver, CUPTI_CB_DOMAIN_DRIVER_API);
    EXPECT_EQ(cupti::kDomainRuntime, CUPTI_CB_DOMAIN_RUNTIME_API);
    EXPECT_EQ(cupti::kDomainResource, CUPTI_CB_DOMAIN_RESOURCE);
    EXPECT_EQ(cupti::kContextDestroyStarting,
              static_cast<std::uint32_t>(CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING));
    EXPECT_EQ(cupti::kApiEnter, CUPTI_API_ENTER);
    EXPECT_EQ(cupti::kApiExit, CUPTI_API_EXIT);
}

}  // namespace TEST_FILE
