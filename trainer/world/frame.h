// What goes over a World's connections: a header of 16 bytes and a text.
//
//     bytes 0-7    "ShdWorld"
//     bytes 8-9    kind
//     bytes 10-15  bytes of the text
//
// Numbers, here and in the texts, have their lowest byte first.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace shardscope::trainer {

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

// A text whose content does not match its kind.
class FrameError : public std::runtime_error {
  public:
    FrameError() : std::runtime_error("a message that ends too early") {}
};

// Builds a text from numbers and texts; FrameReader takes it apart.
class FrameWriter {
  public:
    FrameWriter& number(std::int64_t value);
    FrameWriter& text(std::string_view value);  // with its length before it
    FrameWriter& rest(std::string_view value) {
        bytes_ += value;
        return *this;
    }
    void reserve(std::size_t bytes) { bytes_.reserve(bytes); }
    std::string take() { return std::move(bytes_); }

  private:
    std::string bytes_;
};

// Reads a text, into which it points. Its members throw FrameError where nothing of the requested kind is
// left.
class FrameReader {
  public:
    explicit FrameReader(std::string_view bytes) : bytes_(bytes) {}

    std::int64_t number();
    int small_number();  // in the range of an int
    std::string_view text();
    std::string_view rest() const { return bytes_; }

  private:
    std::string_view bytes_;
};

}  // namespace shardscope::trainer
