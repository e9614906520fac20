// A PNG, as tests read it.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <png.h>

namespace shardscope::tools {

struct Picture {
    int width = 0, height = 0;
    std::vector<std::uint32_t> pixels;
    std::size_t colors() const { return std::set<std::uint32_t>(pixels.begin(), pixels.end()).size(); }
    // The number of different colours to the right of and below a corner.
    std::size_t colors_from(int left, int top) const {
        std::set<std::uint32_t> all;
        for (int y = top; y < height; ++y) {
            const auto row = pixels.begin() + static_cast<std::ptrdiff_t>(y) * width;
            all.insert(row + left, row + width);
        }
        return all.size();
    }
};

// Fails the test if the file does not exist.
inline Picture read_png(const std::string& path) {
    png_image image{};
    image.version = PNG_IMAGE_VERSION;
    Picture picture;
    if (png_image_begin_read_from_file(&image, path.c_str()) == 0) {
        ADD_FAILURE() << path << ": " << image.message;
        return picture;
    }
    image.format = PNG_FORMAT_RGBA;
    picture.width = static_cast<int>(image.width);
    picture.height = static_cast<int>(image.height);
    picture.pixels.resize(static_cast<std::size_t>(image.width) * image.height);
    EXPECT_NE(png_image_finish_read(&image, nullptr, picture.pixels.data(), 0, nullptr), 0);
    return picture;
}

}  // namespace shardscope::tools
