// The store's only exception: a sentence that says what is wrong, where, and what to do.
#pragma once

#include <stdexcept>

namespace shardscope::traces::store {

class StoreError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

}  // namespace shardscope::traces::store
