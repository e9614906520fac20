// The frames that a connection of a TcpWire carries; some are followed by data.
//
//     small     a message that is sent immediately                   data: all of it
//     announce  a large message is ready                             id: the sender's, address: of its data
//     clear     asks for the message `id` to be sent as `other`      other: the receiver's number
//     data      a part of the message `other`                        data: the next `size` bytes
//     taken     the message `id` has been read from its memory
//
// The small and announce frames with a tag are its messages, in order.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shardscope::trainer::comm {

enum class TcpFrameKind : std::uint32_t { small = 1, announce, clear, data, taken };

struct TcpFrame {
    TcpFrameKind kind = TcpFrameKind::small;
    std::uint32_t tag = 0;
    std::uint64_t id = 0, other = 0;
    std::uint64_t size = 0;     // of the message; in a data frame: of the data that follow
    std::uint64_t address = 0;  // of an announced message, in the sender's memory
};
static_assert(sizeof(TcpFrame) == 40);

// Messages up to this size are sent as small ones.
inline constexpr std::size_t kSmallMessage = std::size_t{32} << 10;
// The most data in one frame: how long a large message can delay others.
inline constexpr std::size_t kDataFrame = std::size_t{512} << 10;

}  // namespace shardscope::trainer::comm
