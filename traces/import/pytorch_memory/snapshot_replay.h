// Finds what was live before a recording began: PyTorch's memory snapshots record what is live at their end
// and what happened before, as far back as their ring buffer goes. Replayed backwards, an allocation removes
// a block and a free restores it; what is left at the beginning was there before.
//
// Addresses and sizes in bytes. One thread.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace shardscope::traces::importer {

struct LiveBlock {
    std::uint64_t address = 0;
    std::int64_t bytes = 0;
    std::size_t tag = 0;  // the caller's, to identify the block or event
};

// Allocations, each at an address of its own.
class BlockReplay {
  public:
    void lives_at_end(const LiveBlock& block);
    // To be called backwards in time:
    void allocated(std::uint64_t address, std::int64_t bytes);
    void freed(const LiveBlock& block);

    // The blocks that were live before all recorded events, in the order of their addresses.
    std::vector<LiveBlock> before() const;
    // Total bytes before all recorded events: the total at the end minus the effect of the events. It is the
    // sum of before() and of bytes that addresses do not explain, for example the rounding of blocks.
    std::int64_t bytes_before() const { return bytes_; }

  private:
    std::unordered_map<std::uint64_t, LiveBlock> live_;
    std::int64_t bytes_ = 0;
};

}  // namespace shardscope::traces::importer
