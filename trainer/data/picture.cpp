#include "trainer/data/picture.h"

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstddef>
#include <cstdio>  // jpeglib.h needs FILE
#include <cstring>
#include <string_view>

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
    if (width > kMostSide || height > kMostSide) {
        throw PictureError(
            fmt::format("has {} × {} pixels, and {} are the most of a side", width, height, kMostSide));
    }
    if (width <= most / height) return;
    throw PictureError(
        fmt::format("has {} × {} pixels, and {} are the most that is read", width, height, most));
}

// libpng and libjpeg report an error by a function that must not return. It jumps back into the method that
// called the library, none of which owns an object; they return false then.

// Gamma and profiles are not applied, as in PIL: such chunks are skipped.
class Png {
  public:
    explicit Png(std::span<const unsigned char> file) : rest_(file) {}
    ~Png() { png_destroy_read_struct(&png_, &info_, nullptr); }
    Png(const Png&) = delete;
    Png& operator=(const Png&) = delete;

    bool read_header() {
        if (setjmp(back_) != 0) return false;
        png_ = png_create_read_struct(
            PNG_LIBPNG_VER_STRING, this,
            [](png_structp png, png_const_charp message) {
                Png& self = *static_cast<Png*>(png_get_error_ptr(png));
                std::snprintf(self.message_, sizeof(self.message_), "%s", message);
                std::longjmp(self.back_, 1);
            },
            [](png_structp, png_const_charp) {});
        info_ = png_ ? png_create_info_struct(png_) : nullptr;
        if (!info_) return false;
        png_set_read_fn(png_, this, [](png_structp png, png_bytep to, std::size_t bytes) {
            auto& rest = static_cast<Png*>(png_get_io_ptr(png))->rest_;
            if (bytes > rest.size()) png_error(png, "it ends early");
            std::memcpy(to, rest.data(), bytes);
            rest = rest.subspan(bytes);
        });
        png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
        png_read_info(png_, info_);
        return true;
    }
    // After which a row has bytes of red, green and blue.
    bool start() {
        if (setjmp(back_) != 0) return false;
        png_set_expand(png_);
        png_set_strip_16(png_);
        png_set_strip_alpha(png_);
        png_set_gray_to_rgb(png_);
        passes_ = png_set_interlace_handling(png_);
        png_read_update_info(png_, info_);
        return true;
    }
    bool read_rows(unsigned char* to) {
        if (setjmp(back_) != 0) return false;
        for (int pass = 0; pass < passes_; ++pass) {
            for (std::size_t y = 0; y < height(); ++y) png_read_row(png_, to + y * row_bytes(), nullptr);
        }
        return true;
    }

    std::size_t width() const { return png_get_image_width(png_, info_); }
    std::size_t height() const { return png_get_image_height(png_, info_); }
    std::size_t row_bytes() const { return png_get_rowbytes(png_, info_); }
    [[noreturn]] void fail() const {
        throw PictureError(
            fmt::format("is a PNG file that is cut off or damaged ({})", std::string_view(message_)));
    }

  private:
    std::span<const unsigned char> rest_;
    png_structp png_ = nullptr;
    png_infop info_ = nullptr;
    int passes_ = 1;
    std::jmp_buf back_{};
    char message_[200] = "out of memory";
};

Picture decode_png(std::span<const unsigned char> file, std::vector<unsigned char>& room, std::int64_t most) {
    Png png(file);
    if (!png.read_header()) png.fail();
    check_size(static_cast<std::int64_t>(png.width()), static_cast<std::int64_t>(png.height()), most);
    if (!png.start()) png.fail();
    room.resize(png.height() * png.row_bytes());
    if (!png.read_rows(room.data())) png.fail();
    return {static_cast<int>(png.height()), static_cast<int>(png.width()), room.data(), 3, 1};
}

class Jpeg {
  public:
    explicit Jpeg(std::span<const unsigned char> file) : file_(file) {
        state_.err = jpeg_std_error(&errors_);
        errors_.error_exit = [](j_common_ptr state) {
            state->err->format_message(state, of(state).message_);
            std::longjmp(of(state).back_, 1);
        };
        errors_.emit_message = [](j_common_ptr state, int level) {
            if (level >= 0 || is_harmless(state->err->msg_code)) return;
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
        throw PictureError(fmt::format("is a JPEG file {} ({})",
                                       !is_damaged_ && is_unsupported(errors_.msg_code)
                                           ? "of a kind that is not read"
                                           : "that is cut off or damaged",
                                       std::string_view(message_)));
    }

  private:
    // Warnings that do not concern the pixels: bytes between two parts of the file, what its headers say of
    // its version and colors.
    static bool is_harmless(int code) {
        return code == JWRN_EXTRANEOUS_DATA || code == JWRN_JFIF_MAJOR || code == JWRN_ADOBE_XFORM ||
               code == JWRN_BOGUS_ICC;
    }
    static bool is_unsupported(int code) {
        constexpr std::array kCodes = {JERR_BAD_PRECISION,        JERR_CONVERSION_NOTIMPL,
                                       JERR_SOF_UNSUPPORTED,      JERR_ARITH_NOTIMPL,
                                       JERR_CCIR601_NOTIMPL,      JERR_NOTIMPL,
                                       JERR_FRACT_SAMPLE_NOTIMPL, JERR_NOT_COMPILED};
        return std::find(kCodes.begin(), kCodes.end(), code) != kCodes.end();
    }
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
