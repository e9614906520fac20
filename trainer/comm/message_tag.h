// Tags of the collectives' messages: which communicator, which of its collectives, which stream of messages
// in it.
#pragma once

#include <cstdint>

namespace shardscope::trainer::collectives {

// Messages of a collective between two ranks; those of one stream arrive in their order.
enum class MessageStream : std::uint8_t {
    header = 0,   // what is called
    inputs = 1,   // what is summed, or sums on their way along a ring
    results = 2,  // what is there to stay
};

// Collectives of a communicator that are told apart. Only half as many are under way at a time: a member that
// has ended the others may be so far ahead of one that has not.
inline constexpr std::int64_t kSequences = 64;
inline constexpr std::int64_t kUnderWay = kSequences / 2;

// Small and dense, because MPI libraries differ in how large a tag may be: those of the largest
// communicator's number, 2 * ranks, are below 512 * (ranks + 1).
constexpr std::uint32_t message_tag(int communicator, std::int64_t sequence, MessageStream stream) {
    return (static_cast<std::uint32_t>(communicator) * static_cast<std::uint32_t>(kSequences) +
            static_cast<std::uint32_t>(sequence % kSequences)) *
               4 +
           static_cast<std::uint32_t>(stream);
}

}  // namespace shardscope::trainer::collectives
