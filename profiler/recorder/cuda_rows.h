// Copies a record of device work (cupti/records.h) to the fields of a row: all but times, device, stream,
// correlation, process and names, which depend on the recorder. CUPTI's values become Nsight's (schema
// 3.25.0). Pure functions.
#pragma once

#include <string>

#include "profiler/cupti/records.h"
#include "traces/store/sink.h"

namespace shardscope::profiler {

void fill_row(const CudaKernelRecord& record, traces::schema::KernelRow& row);
void fill_row(const CudaMemcpyRecord& record,
              traces::schema::MemcpyRow& row);  // does not set the two devices
void fill_row(const CudaMemsetRecord& record, traces::schema::MemsetRow& row);

// A kernel's names, as strings of a sink.
struct SymbolNames {
    traces::schema::StringId mangled = traces::schema::StringId::empty,
                             demangled = traces::schema::StringId::empty,
                             base = traces::schema::StringId::empty;
};
SymbolNames intern_names(traces::store::EventSink& sink, const std::string& symbol);
void fill_row(const SymbolNames& names, traces::schema::KernelRow& row);

// ENUM_CUDA_MEM_KIND counts from 0, and its last value is "unknown".
int mem_kind(int cupti_kind);

}  // namespace shardscope::profiler
