// Converts NCCL's own account of its operations (inject/nccl_records.h) in one process to rows of the sink.
#pragma once

#include <memory>

#include "profiler/recorder/record_converter.h"

namespace shardscope::profiler {

std::unique_ptr<RecordHandler> make_nccl_handler();

}  // namespace shardscope::profiler
