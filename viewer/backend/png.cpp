// See png.h.
#include "viewer/backend/png.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <vector>

#include <fmt/core.h>
#include <png.h>
#include <unistd.h>

namespace shardscope::viewer::backend {
namespace {

[[noreturn]] void fail(const std::string& path, const std::string& why) {
    throw std::runtime_error(fmt::format(
        "{}: the picture cannot be written ({}); choose a folder that can be written to.", path, why));
}

struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
};

}  // namespace

void write_png(const std::string& path, int width, int height, std::span<const std::uint8_t> rgba) {
    // The picture is always opaque, so three channels suffice, a quarter less data.
    std::vector<std::uint8_t> rgb(static_cast<std::size_t>(width) * static_cast<std::size_t>(height) * 3);
    for (std::size_t i = 0; i < rgb.size() / 3; ++i) std::memcpy(&rgb[i * 3], &rgba[i * 4], 3);

    const std::string part = fmt::format("{}.{}.part", path, ::getpid());
    std::unique_ptr<std::FILE, CloseFile> file(std::fopen(part.c_str(), "wb"));
    if (!file) fail(path, std::strerror(errno));

    png_image image{};
    image.version = PNG_IMAGE_VERSION;
    image.width = static_cast<png_uint_32>(width);
    image.height = static_cast<png_uint_32>(height);
    image.format = PNG_FORMAT_RGB;
    image.flags = PNG_IMAGE_FLAG_FAST;
    const bool written = png_image_write_to_stdio(&image, file.get(), 0, rgb.data(), 0, nullptr) != 0 &&
                         std::fflush(file.get()) == 0;
    const std::string why = image.message[0] != '\0' ? image.message : std::strerror(errno);
    file.reset();
    std::error_code error;
    if (written) {
        std::filesystem::rename(part, path, error);
        if (!error) return;
    }
    std::error_code ignored;
    std::filesystem::remove(part, ignored);
    fail(path, written ? error.message() : why);
}

}  // namespace shardscope::viewer::backend
