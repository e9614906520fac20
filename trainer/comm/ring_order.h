// In which order the segments of the pieces travel along a ring. There are members - 1 rounds: in round r of
// the sums a member sends on what it received in round r - 1. So that the memory for what is on its way does
// not grow with the pieces, the segments go in groups: all rounds of a group before the next one.
#pragma once

#include <algorithm>
#include <cstdint>

namespace shardscope::trainer::collectives {

struct RingOrder {
    std::int64_t segments = 0;    // of the longest piece
    std::int64_t rounds = 0;      // members - 1
    std::int64_t group_size = 1;  // segments of a group

    struct Message {
        std::int64_t round, segment;
    };
    std::int64_t count() const { return segments * rounds; }
    Message at(std::int64_t index) const {
        const std::int64_t within = index % (group_size * rounds), width = width_at(index);
        return {within / width, group(index) * group_size + within % width};
    }
    // What is sent on as message `index`, `round` > 0, was received as this one.
    std::int64_t received_as(std::int64_t index) const { return index - width_at(index); }
    // What was received as message `index`, not in the last round, is sent on as this one.
    std::int64_t sent_on_as(std::int64_t index) const { return index + width_at(index); }
    // The first message behind the group of message `index`.
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

}  // namespace shardscope::trainer::collectives
