// The tags of the collectives' messages: a communicator, one of its collectives, and one of that collective's
// streams of messages.
#pragma once

#include <cstdint>

#include "trainer/plan/mesh.h"

namespace shardscope::trainer::comm {

// A stream of messages between two ranks in a collective; they arrive in order.
enum class MessageStream : std::uint8_t {
    header = 0,   // which collective is called
    inputs = 1,   // what is summed, or partial sums that travel along a ring
    results = 2,  // final data
};

// The number of successive collectives of a communicator that have different tags. Only half as many may be
// under way at a time: a member that has ended them may be that far ahead of one that has not.
inline constexpr std::int64_t kSequences = 64;
inline constexpr std::int64_t kUnderWay = kSequences / 2;

// Tags are small and dense, because MPI libraries differ in how large one may be. A rank is in six groups at
// most and begins two channels, so all tags are below 2048 * (ranks + 1).
constexpr std::uint32_t message_tag(plan::CommunicatorId communicator, std::int64_t sequence,
                                    MessageStream stream) {
    return (static_cast<std::uint32_t>(communicator) * static_cast<std::uint32_t>(kSequences) +
            static_cast<std::uint32_t>(sequence % kSequences)) *
               4 +
           static_cast<std::uint32_t>(stream);
}

}  // namespace shardscope::trainer::comm
