// Reads a PNG or JPEG file in memory with libpng or libjpeg. The format follows from its first bytes, as
// names mislead. Thread safe.
#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

#include "trainer/data/image_files.h"

namespace shardscope::trainer::data {

// The message says what is wrong with the file: "is cut off".
class PictureError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

inline constexpr std::int64_t kMostPixels = std::int64_t{1} << 26;
// As JPEG's: a side that data.resize makes longer, up to 8,192 times, is an int.
inline constexpr std::int64_t kMostSide = 65535;

// The pixels are in `room`. Transparency is ignored, CMYK is converted. Throws PictureError if it is neither
// format, damaged, or has more than `most` pixels or kMostSide along a side.
Picture decode(std::span<const unsigned char> file, std::vector<unsigned char>& room,
               std::int64_t most = kMostPixels);

}  // namespace shardscope::trainer::data
