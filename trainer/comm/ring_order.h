// The order in which the segments of the pieces travel along a ring. There are members - 1 rounds: in round r
// of the sums a member sends on what it received in round r - 1. The segments go in groups (all rounds of a
// group before the next group), so that the memory for data under way does not grow with the pieces.
#pragma once

#include <algorithm>
#include <cstdint>

namespace shardscope::trainer::comm {

struct RingOrder {
    std::int64_t segments = 0;    // in the longest piece
    std::int64_t rounds = 0;      // members - 1
    std::int64_t group_size = 1;  // segments per group

    struct Message {
        std::int64_t round, segment;
    };
    std::int64_t count() const { return segments * rounds; }
    Message at(std::int64_t index) const {
        const std::int64_t within = index % (group_size * rounds), width = width_at(index);
        return {within / width, group(index) * group_size + within % width};
    }
    // The index with which the data sent as message `index`, `round` > 0, was received.
    std::int64_t received_as(std::int64_t index) const { return index - width_at(index); }
    // The index with which the data received as message `index`, not in the last round, is sent on.
    std::int64_t sent_on_as(std::int64_t index) const { return index + width_at(index); }
    // The first message after the group of message `index`.
    std::int64_t group_end(std::int64_t index) const {
        return std::min(count(), (group(index) + 1) * group_size * rounds);
    }
    // The last round's message of the same segment.
    std::int64_t last_of(std::int64_t index) const {
        return index + (rounds - 1 - at(index).round) * width_at(index);
    }

  private:
    std::int64_t group(std::int64_t index) const { return index / (group_size * rounds); }
    std::int64_t width_at(std::int64_t index) const {
        return std::min(group_size, segments - group(index) * group_size);
    }
};

}  // namespace shardscope::trainer::comm
