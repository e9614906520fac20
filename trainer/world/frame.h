// What goes over a World's connections: a header of 16 bytes and a text, which is made of numbers and texts
// (message.h).
//
//     bytes 0-7    "ShdWorld"
//     bytes 8-9    kind
//     bytes 10-15  bytes of the text
//
// Numbers have their lowest byte first.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace shardscope::trainer::world {

enum class FrameKind : std::uint16_t {
    // Joining (hello.h). The others say hello, rank 0 challenges them, they prove that they know the token,
    // it accepts them, they confirm; or it refuses to let the job start (a sentence). When all are here, it
    // sends them the list of members.
    hello = 1,
    challenge,
    proof,
    accepted,
    confirm,
    refused,
    together,
    alive,  // only a sign of life
    // To rank 0: a number that counts the collective calls, and a text. From rank 0: the number and all
    // texts.
    gather,
    gathered,
    broadcast,  // from rank 0: the number, a text
    tell,       // topic, text
    // Each says that it is ready; rank 0 gives them turns. The rank whose turn it is asks for the time as
    // often as it likes and says that it is done. The end is sent to all, with the collective call's number.
    clock_ready,
    clock_turn,
    clock_ask,
    clock_tell,
    clock_done,
    clock_end,
    failure,   // to rank 0: what failed; from it: the job's first failure
    goodbye,   // to rank 0: the process has done its work
    farewell,  // from rank 0: all have
};

struct Frame {
    FrameKind kind = FrameKind::alive;
    std::string text;
};

inline constexpr std::size_t kFrameHeaderBytes = 16;
// Limits of a text, checked before memory is allocated: from any sender, and from a process that knows the
// job's token.
inline constexpr std::uint64_t kMostHelloBytes = 4096, kMostFrameBytes = std::uint64_t{1} << 31U;

using FrameHeaderBytes = std::array<char, kFrameHeaderBytes>;

struct FrameHeader {
    FrameKind kind = FrameKind::alive;
    std::uint64_t bytes = 0;
};

FrameHeaderBytes encode(const FrameHeader& header);
// Nothing: this is not a header.
std::optional<FrameHeader> decode(const FrameHeaderBytes& bytes);

}  // namespace shardscope::trainer::world
