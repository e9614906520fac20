// The failure of a full disk (or a used-up quota), which who wrote may answer otherwise than other failures.
#pragma once

#include "traces/store/error.h"

namespace shardscope::traces {

class NoSpaceError : public StoreError {
  public:
    using StoreError::StoreError;
};

// The fact of SHARD_RUN that says why a run's recording ended before the run, where that could still be
// written.
inline constexpr const char* kStoppedBecause = "recording_stopped";
inline constexpr const char* kDiskWasFull = "its disk was full";

}  // namespace shardscope::traces
