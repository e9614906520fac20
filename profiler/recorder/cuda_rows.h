// What a record of device work (cupti/records.h) says, in the fields of a row: all but times, device, stream,
// correlation, process and names, which depend on who recorded it. CUPTI's values become Nsight's (schema
// 3.25.0). Pure functions.
#pragma once

#include "profiler/cupti/records.h"
#include "traces/schema/rows.h"

namespace shardscope::profiler {

void fill_row(const CudaKernelRecord& record, traces::KernelRow& row);
void fill_row(const CudaMemcpyRecord& record, traces::MemcpyRow& row);  // of the two devices nothing
void fill_row(const CudaMemsetRecord& record, traces::MemsetRow& row);

// ENUM_CUDA_MEM_KIND counts from 0 and has its unknown last.
int mem_kind(int cupti_kind);

}  // namespace shardscope::profiler
