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
    // Coming together (hello.h). The others say hello, rank 0 challenges them, they prove that they know the
    // token, it accepts them, they confirm; or it refuses the job's coming together (a sentence). When all
    // are here it tells them who they are.
    hello = 1,
    challenge,
    proof,
    accepted,
    confirm,
    refused,
    together,
    alive,  // nothing but a sign of life
    // To rank 0: a number that counts the collective calls, a text. From it: the number, all texts.
    gather,
    gathered,
    broadcast,  // from rank 0: the number, a text
    tell,       // topic, text
    // Each says that it is ready, rank 0 gives one after another its turn; that one asks for the time as
    // often
    // as it likes and says that it is done. The end is told to all, with the collective call's number.
    clock_ready,
    clock_turn,
    clock_ask,
    clock_tell,
    clock_done,
    clock_end,
    failure,   // to rank 0: what failed; from it: the job's first failure
    goodbye,   // to rank 0: the process has done its work
    farewell,  // from it: all have
};

struct Frame {
    FrameKind kind = FrameKind::alive;
    std::string text;
};

inline constexpr std::size_t kFrameHeaderBytes = 16;
// Of a text, checked before memory is taken: from anybody, and from a process that knows the job's token.
inline constexpr std::uint64_t kMostHelloBytes = 4096, kMostFrameBytes = std::uint64_t{1} << 31U;

using FrameHeaderBytes = std::array<char, kFrameHeaderBytes>;

struct FrameHeader {
    FrameKind kind = FrameKind::alive;
    std::uint64_t bytes = 0;
};

FrameHeaderBytes encode(const FrameHeader& header);
// Nothing: this is no header.
std::optional<FrameHeader> decode(const FrameHeaderBytes& bytes);

// A text that is not what its kind says it holds.
class FrameError : public std::runtime_error {
  public:
    FrameError() : std::runtime_error("a message that ends too early") {}
};

// Builds a text from numbers and texts, FrameReader takes it apart.
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

// Its members throw FrameError where nothing of that kind is left. It points into the text.
class FrameReader {
  public:
    explicit FrameReader(std::string_view bytes) : bytes_(bytes) {}

    std::int64_t number();
    int small_number();  // of an int
    std::string_view text();
    std::string_view rest() const { return bytes_; }

  private:
    std::string_view bytes_;
};

}  // namespace shardscope::trainer
