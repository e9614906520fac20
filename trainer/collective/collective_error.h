// The error that ends a collective that cannot complete.
#pragma once

#include <stdexcept>

namespace shardscope::trainer::collective {

// Thrown for a collective that will never end; the message is one sentence.
class CollectiveError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

}  // namespace shardscope::trainer::collective
