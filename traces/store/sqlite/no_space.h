// The error for a full disk (or an exhausted quota), which the writer may handle differently from other
// failures.
#pragma once

#include "traces/store/error.h"

namespace shardscope::traces::store {

class NoSpaceError : public StoreError {
  public:
    using StoreError::StoreError;
};

// The key and value in SHARD_RUN that say why recording ended before the run did, if they could be written.
inline constexpr const char* kStoppedBecause = "recording_stopped";
inline constexpr const char* kDiskWasFull = "its disk was full";

}  // namespace shardscope::traces::store
