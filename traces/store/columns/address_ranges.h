// Ranges of addresses that come and go: memory that an allocator holds, taken and given back in whole or in
// parts. Kept apart where they only touch. One thread.
#pragma once

#include <cstdint>
#include <map>

namespace shardscope::traces {

class AddressRanges {
  public:
    // Bytes at `address`; none where `bytes` is not positive. What would pass the end of all addresses is
    // cut.
    void add(std::uint64_t address, std::int64_t bytes);
    void remove(std::uint64_t address, std::int64_t bytes);

    // Start -> end, none overlapping.
    const std::map<std::uint64_t, std::uint64_t>& ranges() const { return ranges_; }

  private:
    std::map<std::uint64_t, std::uint64_t> ranges_;
};

}  // namespace shardscope::traces
