// Turns the records of what CUDA did (cupti/records.h) in one process into rows: CUPTI's clock into
// trace time, CUPTI's enum values into Nsight's, its ids into ids that are unique in the trace. One thread.
#pragma once

#include <memory>

#include "profiler/record/handlers.h"
#include "profiler/recorder/record_converter.h"

namespace shardscope::profiler {

// `process.findings` must outlive the handler.
std::unique_ptr<RecordHandler> make_cuda_handler(const ProcessFacts& process);

}  // namespace shardscope::profiler
