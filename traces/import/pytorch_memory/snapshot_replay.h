// What lived before a recording began: PyTorch's memory snapshots tell what lives at their end and what
// happened before, as far back as their ring buffer goes. Played backwards, an allocation takes away what
// lives and a free brings it back; what is left at the beginning was there before.
//
// Addresses and sizes in bytes. One thread.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace shardscope::traces {

struct LiveBlock {
    std::uint64_t address = 0;
    std::int64_t bytes = 0;
    std::size_t tag = 0;  // the caller's: which block or event told of it
};

// Allocations, each at an address of its own.
class BlockReplay {
  public:
    void lives_at_end(const LiveBlock& block);
    // Backwards in time:
    void allocated(std::uint64_t address, std::int64_t bytes);
    void freed(const LiveBlock& block);

    // What lived before everything that was told, in the order of its addresses.
    std::vector<LiveBlock> before() const;
    // Total before everything: the total at the end without all that was told to have happened. It is the sum
    // of before() and of what addresses do not explain, for example the rounding of blocks.
    std::int64_t bytes_before() const { return bytes_; }

  private:
    std::unordered_map<std::uint64_t, LiveBlock> live_;
    std::int64_t bytes_ = 0;
};

}  // namespace shardscope::traces
