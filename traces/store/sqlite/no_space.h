// The error for a full disk (or an exhausted quota), which the writer may handle differently from other
// failures.
#pragma once

#include "traces/store/error.h"

namespace shardscope::traces {

class NoSpaceError : public StoreError {
  public:
    using StoreError::StoreError;
};

// The fact of SHARD_RUN that says why recording ended before the run did, if it could still be written.
inline constexpr const char* kStoppedBecause = "recording_stopped";
inline constexpr const char* kDiskWasFull = "its disk was full";

}  // namespace shardscope::traces
