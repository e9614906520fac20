// What goes over a connection of a TcpWire: frames, some with data behind them.
//
//     small     a message that is sent at once                        data: all of it
//     announce  a large message is there                              id: the sender's, address: of its data
//     clear     send the message `id` as `other`                      other: the receiver's number
//     data      a part of the message `id` (the receiver's number)    data: the next `size` bytes
//     taken     the message `id` has been read where it was
//
// The small and announce frames of a tag are its messages in their order.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shardscope::trainer {

enum class TcpFrameKind : std::uint32_t { small = 1, announce, clear, data, taken };

struct TcpFrame {
    TcpFrameKind kind = TcpFrameKind::small;
    std::uint32_t tag = 0;
    std::uint64_t id = 0, other = 0;
    std::uint64_t size = 0;     // of the message; of a data frame: of what follows
    std::uint64_t address = 0;  // of an announced message in the sender's memory
};
static_assert(sizeof(TcpFrame) == 40);

// A message up to this size is small.
inline constexpr std::size_t kSmallMessage = std::size_t{32} << 10;
// The most data in one frame: what a large message holds others up for.
inline constexpr std::size_t kDataFrame = std::size_t{512} << 10;

}  // namespace shardscope::trainer
