// What a file is, told from its first bytes, never from its name.
#pragma once

#include <string>

#include "traces/import/input/input.h"

namespace shardscope::traces {

enum class FileFormat {
    sqlite,       // ours or Nsight Systems'
    json_trace,   // Kineto or another Chrome trace
    json_flight,  // flight recorder dump
    pickle,       // memory snapshot or flight recorder dump
};

// Looks through gzip. Throws StoreError with a sentence where it is none of them.
FileFormat sniff_format(Input& input);

}  // namespace shardscope::traces
