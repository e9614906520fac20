// The bytes of the HTML timeline: columns of numbers, compressed by zlib, as base64 text. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shardscope::traces::report {

// A column of numbers in planes: the lowest seven bits of every number, then the next seven of each number
// that has more (its byte's highest bit is set), and so on. Bytes of a plane resemble each other, which
// halves what deflate needs for times.
class NumberColumn {
  public:
    void add(std::uint64_t number);
    // The number of planes, then each plane as its length and its bytes; lengths are 32 bits, little-endian.
    std::string bytes() const;

  private:
    std::vector<std::string> planes_;
};

// Appends a length and the text.
void append_block(std::string& to, std::string_view text);

// A zlib stream; nullopt as soon as it would be longer than `most`.
std::optional<std::string> compressed(std::string_view bytes, std::size_t most);

std::string base64(std::string_view bytes);

}  // namespace shardscope::traces::report
