// Converts field by field; a value that the version does not report is -1.
#include "profiler/cupti/convert.h"

namespace shardscope::profiler::cupti {
namespace {

// The fields that all work on a device has.
template <typename Record, typename Work>
void set_place(Record& r, const Work& work) {
    r.start = real_time(work.start);
    r.end = real_time(work.end);
    r.correlation = work.correlation;
    r.device = small(work.device);
    r.context = small(work.context);
    r.stream = small(work.stream);
    r.graph_node = static_cast<std::int64_t>(work.graph_node);
}

template <typename Copy>
void set_copy(CudaMemcpyRecord& r, const Copy& copy) {
    r.bytes = static_cast<std::int64_t>(copy.bytes);
    r.copy_kind = copy.copy_kind;
    r.src_kind = copy.src_kind;
    r.dst_kind = copy.dst_kind;
}

}  // namespace

CudaKernelRecord to_record(const Kernel& kernel, std::uint32_t version, std::uint32_t name) {
    auto r = make_record<CudaKernelRecord>(name);
    set_place(r, kernel);
    const bool has_clusters = version >= kVersion11_8, has_cluster_limits = version >= kVersion12_0;
    for (int i = 0; i < 3; ++i) {
        r.grid[i] = kernel.grid[i];
        r.block[i] = kernel.block[i];
        r.cluster[i] = has_clusters ? small(kernel.cluster[i]) : -1;
    }
    r.cluster_policy = has_clusters ? small(kernel.cluster_policy) : -1;
    r.max_potential_cluster = has_cluster_limits ? small(kernel.max_potential_cluster) : -1;
    r.max_active_clusters = has_cluster_limits ? small(kernel.max_active_clusters) : -1;
    r.registers = kernel.registers;
    r.static_shared = kernel.static_shared;
    r.dynamic_shared = kernel.dynamic_shared;
    r.local_per_thread = small(kernel.local_per_thread);
    r.local_total =
        has_clusters ? static_cast<std::int64_t>(kernel.local_total_64) : std::int64_t{kernel.local_total};
    r.grid_id = kernel.grid_id;
    r.shared_executed = small(kernel.shared_executed);
    r.launch_type = kernel.launch_type;
    r.cache_config = kernel.cache_config >> 4;  // what was executed; the request is in the low half
    r.shared_limit_config = static_cast<std::uint8_t>(kernel.shared_limit_config);
    r.graph = kernel.graph;
    return r;
}

CudaMemcpyRecord to_record(const Memcpy& copy) {
    auto r = make_record<CudaMemcpyRecord>();
    set_place(r, copy);
    set_copy(r, copy);
    r.src_device = r.src_context = r.dst_device = r.dst_context = -1;
    r.copies = small(copy.copies);
    return r;
}

CudaMemcpyRecord to_record(const MemcpyPeer& copy) {
    auto r = make_record<CudaMemcpyRecord>();
    set_place(r, copy);
    set_copy(r, copy);
    r.src_device = small(copy.src_device);
    r.src_context = small(copy.src_context);
    r.dst_device = small(copy.dst_device);
    r.dst_context = small(copy.dst_context);
    return r;
}

CudaMemsetRecord to_record(const Memset& set) {
    auto r = make_record<CudaMemsetRecord>();
    set_place(r, set);
    r.bytes = static_cast<std::int64_t>(set.bytes);
    r.value = set.value;
    r.mem_kind = set.mem_kind;
    return r;
}

}  // namespace shardscope::profiler::cupti
