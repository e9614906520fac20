#include "profiler/recorder/cuda_rows.h"

#include "profiler/recorder/kernel_names.h"

namespace shardscope::profiler {
namespace {

// ENUM_CUDA_KERNEL_LAUNCH_TYPE
int launch_type(int cupti_type) {
    constexpr int kUnknown = 0;
    return cupti_type <= 2 ? cupti_type + 1 : kUnknown;
}

}  // namespace

int mem_kind(int cupti_kind) {
    constexpr int kUnknown = 7;
    return cupti_kind >= 1 && cupti_kind <= kUnknown ? cupti_kind - 1 : kUnknown;
}

SymbolNames intern_names(traces::store::EventSink& sink, const std::string& symbol) {
    const std::string demangled = demangle(symbol);
    return {sink.intern(symbol), sink.intern(demangled), sink.intern(base_name(demangled))};
}

void fill_row(const SymbolNames& names, traces::schema::KernelRow& row) {
    row.mangled_name = names.mangled;
    row.demangled_name = names.demangled;
    row.short_name = names.base;
}

void fill_row(const CudaKernelRecord& record, traces::schema::KernelRow& row) {
    for (int i = 0; i < 3; ++i) {
        row.grid[i] = record.grid[i];
        row.block[i] = record.block[i];
        row.cluster[i] = record.cluster[i];
    }
    row.context = record.context;
    row.launch_type = launch_type(record.launch_type);
    row.cache_config = record.cache_config;
    row.registers = record.registers;
    row.static_shared_memory = record.static_shared;
    row.dynamic_shared_memory = record.dynamic_shared;
    row.local_memory_per_thread = record.local_per_thread;
    row.local_memory_total = record.local_total;
    row.grid_id = record.grid_id;
    row.shared_memory_executed = record.shared_executed;
    row.shared_memory_limit_config = record.shared_limit_config;
    if (record.graph_node != 0) {
        row.graph_node = record.graph_node;
        row.graph = record.graph;
    }
    row.cluster_policy = record.cluster_policy;
    row.max_potential_cluster = record.max_potential_cluster;
    row.max_active_clusters = record.max_active_clusters;
}

void fill_row(const CudaMemcpyRecord& record, traces::schema::MemcpyRow& row) {
    row.bytes = record.bytes;
    row.copy_kind = record.copy_kind;
    row.src_kind = mem_kind(record.src_kind);
    row.dst_kind = mem_kind(record.dst_kind);
    row.context = record.context;
    if (record.graph_node != 0) row.graph_node = record.graph_node;
    if (record.copies != 0) row.copies = record.copies;
}

void fill_row(const CudaMemsetRecord& record, traces::schema::MemsetRow& row) {
    row.bytes = record.bytes;
    row.value = static_cast<int>(record.value);
    row.mem_kind = mem_kind(record.mem_kind);
    row.context = record.context;
    if (record.graph_node != 0) row.graph_node = record.graph_node;
}

}  // namespace shardscope::profiler
