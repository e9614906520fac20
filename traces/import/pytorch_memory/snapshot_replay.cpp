#include "traces/import/pytorch_memory/snapshot_replay.h"

#include <algorithm>

namespace shardscope::traces::importer {

void BlockReplay::lives_at_end(const LiveBlock& block) {
    live_[block.address] = block;
    bytes_ += block.bytes;
}

void BlockReplay::allocated(std::uint64_t address, std::int64_t bytes) {
    live_.erase(address);
    bytes_ -= bytes;
}

void BlockReplay::freed(const LiveBlock& block) {
    live_[block.address] = block;
    bytes_ += block.bytes;
}

std::vector<LiveBlock> BlockReplay::before() const {
    std::vector<LiveBlock> blocks;
    blocks.reserve(live_.size());
    for (const auto& [address, block] : live_) blocks.push_back(block);
    std::sort(blocks.begin(), blocks.end(),
              [](const LiveBlock& a, const LiveBlock& b) { return a.address < b.address; });
    return blocks;
}

}  // namespace shardscope::traces::importer
