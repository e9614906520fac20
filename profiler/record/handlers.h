// Which sources of records a recording understands besides NVTX: the one place where CUDA, NCCL and any later
// source add their handlers to the converter of a process.
#pragma once

#include <cstdint>
#include <memory>

#include "profiler/recorder/record_converter.h"

namespace shardscope::profiler {

struct Findings;

// What a handler may need to know about the process whose records it converts.
struct ProcessFacts {
    std::int64_t pid = 0;          // of rows (row_pids.h)
    int rank = -1;                 // from the launcher; -1: none
    int number = 0;                // 0, 1, 2 … in the recording, in the order in which processes were found
    Findings* findings = nullptr;  // of the whole recording; outlives the handlers
};

// Turns the records of what CUDA did (cupti/records.h) in one process into rows: CUPTI's clock into
// trace time, CUPTI's enum values into Nsight's, its ids into ids that are unique in the trace.
std::unique_ptr<RecordHandler> make_cuda_handler(const ProcessFacts& process);
// Converts NCCL's own account of its operations (inject/nccl_records.h).
std::unique_ptr<RecordHandler> make_nccl_handler();

// Called once for each process, before its first record.
void add_handlers(RecordConverter& converter, const ProcessFacts& process);

}  // namespace shardscope::profiler
