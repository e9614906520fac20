// The error that says what is wrong with a checkpoint.
#pragma once

#include <stdexcept>
#include <string>

namespace shardscope::trainer::checkpoint {

// One sentence for the user: which file, what is wrong, what to do. Nothing has been loaded or replaced.
class CheckpointError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

}  // namespace shardscope::trainer::checkpoint
