// Finds, orders and frees chunks; the header explains the order of reading.
#include "profiler/log/chunk_reader.h"

#include <algorithm>
#include <tuple>

namespace shardscope::profiler {

ChunkReader::ChunkReader(std::byte* base, std::size_t chunk_bytes, std::uint32_t max_chunks,
                         ArenaControl* control)
    : base_(base), chunk_bytes_(chunk_bytes), max_chunks_(max_chunks), control_(control) {}

std::uint32_t ChunkReader::chunks() const {
    return std::min(control_->chunks.load(std::memory_order_acquire), max_chunks_);
}

void ChunkReader::look(bool names) {
    const std::uint32_t count = chunks();
    for (std::uint32_t i = 0; i < count; ++i) {
        ChunkHeader* c = chunk(i);
        const ChunkState state = c->state.load(std::memory_order_acquire);
        if (state == ChunkState::free || (c->log == 0) != names) continue;
        // The state was read before `used`: of a sealed chunk this is the final count.
        const std::uint64_t used = c->used.load(std::memory_order_acquire);
        const std::size_t capacity = chunk_bytes_ - sizeof(ChunkHeader);
        seen_.push_back({c->log, i, c->tid, c->sequence, std::min<std::size_t>(used, capacity),
                         state == ChunkState::sealed});
        std::uint64_t& dropped = logs_[c->log].dropped;
        dropped = std::max(dropped, c->dropped.load(std::memory_order_acquire));
    }
}

void ChunkReader::snapshot() {
    seen_.clear();
    next_seen_ = bytes_past_ = bytes_seen_ = 0;
    lost_ = control_->lost.load(std::memory_order_relaxed);
    look(false);
    look(true);
    std::sort(seen_.begin(), seen_.end(), [](const Seen& a, const Seen& b) {
        return std::tie(a.log, a.sequence) < std::tie(b.log, b.sequence);
    });
    for (const Seen& seen : seen_) bytes_seen_ += seen.used;
}

void ChunkReader::drain(const Visit& visit, double share) {
    const double until = share * static_cast<double>(bytes_seen_);
    for (; next_seen_ < seen_.size(); ++next_seen_) {
        if (share < 1 && static_cast<double>(bytes_past_) >= until) return;
        const Seen& seen = seen_[next_seen_];
        bytes_past_ += seen.used;
        Log& log = logs_[seen.log];
        // The owner may have begun a new chunk during the snapshot. Then an earlier chunk, or its end, waits
        // for the next drain, and so must everything after it.
        if (seen.sequence != log.next_sequence) continue;
        if (seen.used > log.offset) {
            visit(seen.log, seen.tid, {chunk_data(chunk(seen.index)) + log.offset, seen.used - log.offset});
            log.offset = seen.used;
        }
        if (!seen.sealed) continue;
        ++log.next_sequence;
        log.offset = 0;
        chunk(seen.index)->state.store(ChunkState::free, std::memory_order_release);
        control_->released.fetch_add(1, std::memory_order_release);
    }
}

void ChunkReader::open_gaps(const VisitGap& visit) const {
    const std::uint32_t count = chunks();
    for (std::uint32_t i = 0; i < count; ++i) {
        const ChunkHeader* c = chunk(i);
        if (c->state.load(std::memory_order_acquire) != ChunkState::active) continue;
        if (c->dropped.load(std::memory_order_acquire) == 0) continue;
        const Ticks ticks(c->gap_ticks.load(std::memory_order_relaxed));
        if (ticks != Ticks(0)) visit(c->log, ticks, c->gap_min_depth.load(std::memory_order_relaxed));
    }
}

std::uint64_t ChunkReader::dropped() const {
    std::uint64_t sum = lost_;
    for (const auto& [number, log] : logs_) sum += log.dropped;
    return sum;
}

}  // namespace shardscope::profiler
