// What ends a collective that cannot end by itself.
#pragma once

#include <stdexcept>

namespace shardscope::trainer {

// A collective that will never end; one sentence.
class CollectiveError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

}  // namespace shardscope::trainer
