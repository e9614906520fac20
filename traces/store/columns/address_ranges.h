// A changing set of address ranges: memory reserved by an allocator, taken and returned in whole or in parts.
// Ranges that only touch stay separate. One thread.
#pragma once

#include <cstdint>
#include <map>

namespace shardscope::traces::store {

class AddressRanges {
  public:
    // Adds bytes at `address`; none if `bytes` is not positive. A range past the end of the address space is
    // cut.
    void add(std::uint64_t address, std::int64_t bytes);
    void remove(std::uint64_t address, std::int64_t bytes);

    // Start -> end, none overlapping.
    const std::map<std::uint64_t, std::uint64_t>& ranges() const { return ranges_; }

  private:
    std::map<std::uint64_t, std::uint64_t> ranges_;
};

}  // namespace shardscope::traces::store
