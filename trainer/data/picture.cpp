#include "trainer/data/picture.h"

#include <csetjmp>
#include <cstddef>
#include <cstdio>  // jpeglib.h needs FILE
#include <cstring>

#include <fmt/core.h>
#include <jerror.h>
#include <jpeglib.h>
#include <png.h>

namespace shardscope::trainer::data {

namespace {

constexpr unsigned char kPngStart[] = {0x89, 'P', 'N', 'G'};
constexpr unsigned char kJpegStart[] = {0xFF, 0xD8, 0xFF};

template <std::size_t N>
bool starts_with(std::span<const unsigned char> file, const unsigned char (&start)[N]) {
    return file.size() >= N && std::memcmp(file.data(), start, N) == 0;
}

void check_size(std::int64_t width, std::int64_t height, std::int64_t most) {
    if (width <= most / height) return;
    throw PictureError(
        fmt::format("has {} × {} pixels, and {} are the most that is read", width, height, most));
}

// Frees what libpng allocated for an image.
struct Png {
    Png() { image.version = PNG_IMAGE_VERSION; }
    ~Png() { png_image_free(&image); }
    Png(const Png&) = delete;
    Png& operator=(const Png&) = delete;
    [[noreturn]] void fail() const {
        throw PictureError(
            fmt::format("is a PNG file that is cut off or damaged ({})", std::string_view(image.message)));
    }
    png_image image{};
};

Picture decode_png(std::span<const unsigned char> file, std::vector<unsigned char>& room, std::int64_t most) {
    Png png;
    if (png_image_begin_read_from_memory(&png.image, file.data(), file.size()) == 0) png.fail();
    check_size(png.image.width, png.image.height, most);
    png.image.format = PNG_FORMAT_RGBA;
    png.image.flags |= PNG_IMAGE_FLAG_16BIT_sRGB;
    room.resize(PNG_IMAGE_SIZE(png.image));
    if (png_image_finish_read(&png.image, nullptr, room.data(), 0, nullptr) == 0) png.fail();
    return {static_cast<int>(png.image.height), static_cast<int>(png.image.width), room.data(), 4, 1};
}

// libjpeg reports an error by a function that must not return. It jumps back into the method that called the
// library, none of which owns an object; they return false then.
class Jpeg {
  public:
    explicit Jpeg(std::span<const unsigned char> file) : file_(file) {
        state_.err = jpeg_std_error(&errors_);
        errors_.error_exit = [](j_common_ptr state) {
            state->err->format_message(state, of(state).message_);
            std::longjmp(of(state).back_, 1);
        };
        errors_.emit_message = [](j_common_ptr state, int level) {
            const int code = state->err->msg_code;
            if (level >= 0 || (code != JWRN_JPEG_EOF && code != JWRN_HIT_MARKER)) return;
            if (!of(state).is_damaged_) state->err->format_message(state, of(state).message_);
            of(state).is_damaged_ = true;
        };
        state_.client_data = this;
    }
    ~Jpeg() { jpeg_destroy_decompress(&state_); }
    Jpeg(const Jpeg&) = delete;
    Jpeg& operator=(const Jpeg&) = delete;

    bool read_header() {
        if (setjmp(back_) != 0) return false;
        jpeg_create_decompress(&state_);
        state_.client_data = this;
        jpeg_mem_src(&state_, file_.data(), file_.size());
        jpeg_read_header(&state_, TRUE);
        state_.out_color_space = is_cmyk() ? JCS_CMYK : JCS_RGB;
        return true;
    }
    bool start() {
        if (setjmp(back_) != 0) return false;
        return jpeg_start_decompress(&state_) == TRUE;
    }
    bool read_rows(unsigned char* to) {
        if (setjmp(back_) != 0) return false;
        while (state_.output_scanline < state_.output_height) {
            JSAMPROW row = to + std::size_t{state_.output_scanline} * row_bytes();
            jpeg_read_scanlines(&state_, &row, 1);
        }
        return jpeg_finish_decompress(&state_) == TRUE && !is_damaged_;
    }

    bool is_cmyk() const {
        return state_.jpeg_color_space == JCS_CMYK || state_.jpeg_color_space == JCS_YCCK;
    }
    std::int64_t width() const { return state_.image_width; }
    std::int64_t height() const { return state_.image_height; }
    std::size_t pixel_bytes() const { return is_cmyk() ? 4 : 3; }
    std::size_t row_bytes() const { return std::size_t{state_.output_width} * pixel_bytes(); }
    std::size_t bytes() const { return row_bytes() * state_.output_height; }
    bool is_inverted() const { return state_.saw_Adobe_marker == TRUE; }
    [[noreturn]] void fail() const {
        throw PictureError(
            fmt::format("is a JPEG file that is cut off or damaged ({})", std::string_view(message_)));
    }

  private:
    static Jpeg& of(j_common_ptr state) { return *static_cast<Jpeg*>(state->client_data); }

    std::span<const unsigned char> file_;
    jpeg_decompress_struct state_{};
    jpeg_error_mgr errors_{};
    std::jmp_buf back_{};
    char message_[JMSG_LENGTH_MAX] = {};
    bool is_damaged_ = false;
};

// Cyan, magenta, yellow and black to red, green and blue in place; Adobe's files store 255 minus each.
void convert_cmyk(std::vector<unsigned char>& pixels, bool inverted) {
    for (std::size_t at = 0; at + 4 <= pixels.size(); at += 4) {
        const int white = inverted ? pixels[at + 3] : 255 - pixels[at + 3];
        for (std::size_t c = at; c < at + 3; ++c) {
            const int ink = inverted ? pixels[c] : 255 - pixels[c];
            pixels[c] = static_cast<unsigned char>((ink * white + 127) / 255);
        }
    }
}

Picture decode_jpeg(std::span<const unsigned char> file, std::vector<unsigned char>& room,
                    std::int64_t most) {
    Jpeg jpeg(file);
    if (!jpeg.read_header()) jpeg.fail();
    check_size(jpeg.width(), jpeg.height(), most);
    if (!jpeg.start()) jpeg.fail();
    room.resize(jpeg.bytes());
    if (!jpeg.read_rows(room.data())) jpeg.fail();
    if (jpeg.is_cmyk()) convert_cmyk(room, jpeg.is_inverted());
    return {static_cast<int>(jpeg.height()), static_cast<int>(jpeg.width()), room.data(), jpeg.pixel_bytes(),
            1};
}

}  // namespace

Picture decode(std::span<const unsigned char> file, std::vector<unsigned char>& room, std::int64_t most) {
    if (starts_with(file, kPngStart)) return decode_png(file, room, most);
    if (starts_with(file, kJpegStart)) return decode_jpeg(file, room, most);
    throw PictureError(file.empty() ? "is empty" : "is neither a PNG nor a JPEG file");
}

}  // namespace shardscope::trainer::data
