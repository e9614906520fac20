// Pictures in memory as PNG and JPEG files, and IDX files.
#pragma once

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <jpeglib.h>
#include <png.h>

namespace shardscope::trainer::testing {

// Rows of red, green and blue (or, with one channel, of grey) that grow smoothly.
inline std::vector<unsigned char> smooth_pixels(int height, int width, int channels, int first = 40) {
    std::vector<unsigned char> pixels;
    for (int y = 0; y < height; ++y) {
        for (int x = 0; x < width; ++x) {
            for (int c = 0; c < channels; ++c)
                pixels.push_back(static_cast<unsigned char>((first + 2 * y + x + 30 * c) % 256));
        }
    }
    return pixels;
}

// `format`: of png.h's simplified interface, for example PNG_FORMAT_RGB.
inline std::string png_file(int height, int width, png_uint_32 format,
                            const std::vector<unsigned char>& pixels) {
    png_image image{};
    image.version = PNG_IMAGE_VERSION;
    image.width = static_cast<png_uint_32>(width);
    image.height = static_cast<png_uint_32>(height);
    image.format = format;
    png_alloc_size_t bytes = PNG_IMAGE_PNG_SIZE_MAX(image);
    std::string file(bytes, '\0');
    png_image_write_to_memory(&image, file.data(), &bytes, 0, pixels.data(), 0, nullptr);
    file.resize(bytes);
    return file;
}

// What png.h's simplified interface does not write. `rows`: of the whole picture, as the file has them.
struct PngKind {
    int color = PNG_COLOR_TYPE_RGB, depth = 8;
    bool interlaced = false;
    std::vector<png_color> palette;
    int gamma = 0;  // of 100,000; 0: the file has none
};
inline std::string png_file(int height, int width, const PngKind& kind,
                            const std::vector<unsigned char>& rows) {
    std::string file;
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
    png_infop info = png_create_info_struct(png);
    png_set_write_fn(
        png, &file,
        [](png_structp to, png_bytep bytes, std::size_t size) {
            static_cast<std::string*>(png_get_io_ptr(to))->append(reinterpret_cast<char*>(bytes), size);
        },
        [](png_structp) {});
    png_set_IHDR(png, info, static_cast<png_uint_32>(width), static_cast<png_uint_32>(height), kind.depth,
                 kind.color, kind.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    if (!kind.palette.empty())
        png_set_PLTE(png, info, kind.palette.data(), static_cast<int>(kind.palette.size()));
    if (kind.gamma > 0) png_set_gAMA_fixed(png, info, kind.gamma);
    png_write_info(png, info);
    const std::size_t bytes = rows.size() / static_cast<std::size_t>(height);
    std::vector<png_bytep> starts;
    for (std::size_t y = 0; y < static_cast<std::size_t>(height); ++y)
        starts.push_back(const_cast<png_bytep>(rows.data()) + y * bytes);
    png_write_image(png, starts.data());
    png_write_end(png, info);
    png_destroy_write_struct(&png, &info);
    return file;
}

inline std::string jpeg_file(int height, int width, J_COLOR_SPACE space, int channels,
                             const std::vector<unsigned char>& pixels, bool progressive = false) {
    jpeg_compress_struct state{};
    jpeg_error_mgr errors{};
    state.err = jpeg_std_error(&errors);
    jpeg_create_compress(&state);
    unsigned char* memory = nullptr;
    unsigned long bytes = 0;
    jpeg_mem_dest(&state, &memory, &bytes);
    state.image_width = static_cast<JDIMENSION>(width);
    state.image_height = static_cast<JDIMENSION>(height);
    state.input_components = channels;
    state.in_color_space = space;
    jpeg_set_defaults(&state);
    jpeg_set_quality(&state, 98, TRUE);
    if (progressive) jpeg_simple_progression(&state);
    jpeg_start_compress(&state, TRUE);
    while (state.next_scanline < state.image_height) {
        const std::size_t row = std::size_t{state.next_scanline} * static_cast<std::size_t>(width * channels);
        JSAMPROW from = const_cast<unsigned char*>(pixels.data()) + row;
        jpeg_write_scanlines(&state, &from, 1);
    }
    jpeg_finish_compress(&state);
    std::string file(reinterpret_cast<const char*>(memory), bytes);
    jpeg_destroy_compress(&state);
    std::free(memory);
    return file;
}

// The header of an IDX file of unsigned bytes, and its bytes.
inline std::string idx_file(const std::vector<unsigned>& dims, const std::vector<unsigned char>& bytes) {
    std::string file = {0, 0, 8, static_cast<char>(dims.size())};
    for (const unsigned dim : dims) {
        for (const int shift : {24, 16, 8, 0}) file += static_cast<char>(dim >> shift);
    }
    return file.append(bytes.begin(), bytes.end());
}

}  // namespace shardscope::trainer::testing
