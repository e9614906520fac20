// What an allocation is for, where a source knows no categories but tells the annotations and operators under
// which it was made (Kineto traces, memory snapshots of PyTorch).
#pragma once

#include <string_view>

#include "traces/schema/enums.h"

namespace shardscope::traces {

// The category that the name of an annotation or operator stands for; `other` where it says nothing, so that
// the next range around it may be asked.
MemoryCategory category_of_origin(std::string_view annotation);

}  // namespace shardscope::traces
