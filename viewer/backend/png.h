// Writes a picture. It appears complete or not at all: it is written under a temporary name and renamed.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace shardscope::viewer::backend {

// `rgba`: width * height * 4 bytes, top row first. Throws std::runtime_error with one sentence.
void write_png(const std::string& path, int width, int height, std::span<const std::uint8_t> rgba);

}  // namespace shardscope::viewer::backend
