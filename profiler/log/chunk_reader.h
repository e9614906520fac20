// The reading end of an arena (record.h): finds what is published, hands it over log by log in order, and
// frees finished chunks. One thread. The chunks may be shared with a program that can die or corrupt them at
// any moment, so nothing in them is trusted beyond their bounds.
//
// snapshot() and drain() are separate because the order of reading matters: what a record refers to (a name,
// a clock anchor) is collected after the snapshot, and so is never missing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <unordered_map>
#include <vector>

#include "profiler/base/record.h"

namespace shardscope::profiler {

class ChunkReader {
  public:
    // `base` holds up to max_chunks chunks of chunk_bytes each, of which control says how many exist.
    ChunkReader(std::byte* base, std::size_t chunk_bytes, std::uint32_t max_chunks, ArenaControl* control);

    // Reads no more chunks than this from now on (a file may be shorter than its header claims).
    void limit(std::uint32_t max_chunks) { max_chunks_ = max_chunks; }

    // Remembers what is published now. The names (log 0) are read last, so that they cover all other logs.
    void snapshot();

    // Whole records of one log, in order of time; `tid` is the thread that wrote them.
    using Visit =
        std::function<void(std::uint32_t log, std::uint32_t tid, std::span<const std::byte> records)>;
    // Hands over what the last snapshot saw and earlier calls have not handed over, log 0 first. With
    // `share` below 1, only that part of the snapshot's bytes (in whole chunks), and the rest in later calls.
    void drain(const Visit& visit, double share = 1);
    // Bytes that the last snapshot saw.
    std::size_t bytes_seen() const { return bytes_seen_; }

    // Visits logs that are losing records now: since when, and from which depth on ranges are in doubt.
    using VisitGap = std::function<void(std::uint32_t log, Ticks ticks, std::uint64_t min_depth)>;
    void open_gaps(const VisitGap& visit) const;

    // Records lost so far, as of the last snapshot.
    std::uint64_t dropped() const;

  private:
    struct Seen {
        std::uint32_t log, index, tid;
        std::uint64_t sequence;
        std::size_t used;
        bool sealed;
    };
    struct Log {
        std::uint64_t next_sequence = 0;
        std::size_t offset = 0;  // read so far of chunk next_sequence
        std::uint64_t dropped = 0;
    };

    ChunkHeader* chunk(std::uint32_t index) const {
        return reinterpret_cast<ChunkHeader*>(base_ + std::size_t{index} * chunk_bytes_);
    }
    std::uint32_t chunks() const;
    void look(bool names);

    std::byte* base_;
    std::size_t chunk_bytes_;
    std::uint32_t max_chunks_;
    ArenaControl* control_;
    std::vector<Seen> seen_;
    std::size_t next_seen_ = 0;                    // the next of seen_ to hand over
    std::size_t bytes_seen_ = 0, bytes_past_ = 0;  // of all of seen_, and of those before next_seen_
    std::unordered_map<std::uint32_t, Log> logs_;
    std::uint64_t lost_ = 0;
};

}  // namespace shardscope::profiler
