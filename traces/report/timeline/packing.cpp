// See packing.h.
#include "traces/report/timeline/packing.h"

#include <algorithm>
#include <array>
#include <limits>
#include <stdexcept>

#include <zlib.h>

namespace shardscope::traces::report {
namespace {

void append_length(std::string& to, std::size_t length) {
    for (int byte = 0; byte < 4; ++byte) to += static_cast<char>(length >> 8 * byte & 0xFF);
}

// A deflate stream that is always closed.
class Deflater {
  public:
    Deflater() {
        if (deflateInit(&stream_, Z_DEFAULT_COMPRESSION) != Z_OK)
            throw std::runtime_error("zlib cannot start: there is not enough memory.");
    }
    ~Deflater() { deflateEnd(&stream_); }
    Deflater(const Deflater&) = delete;
    Deflater& operator=(const Deflater&) = delete;
    z_stream& stream() { return stream_; }

  private:
    z_stream stream_{};
};

}  // namespace

void NumberColumn::add(std::uint64_t number) {
    for (std::size_t plane = 0; plane == 0 || number > 0; ++plane) {
        if (plane == planes_.size()) planes_.emplace_back();
        const std::uint64_t low = number & 0x7F;
        number >>= 7;
        planes_[plane] += static_cast<char>(number > 0 ? low | 0x80 : low);
    }
}

std::string NumberColumn::bytes() const {
    std::string bytes;
    append_length(bytes, planes_.size());
    for (const std::string& plane : planes_) append_block(bytes, plane);
    return bytes;
}

void append_block(std::string& to, std::string_view text) {
    append_length(to, text.size());
    to += text;
}

std::optional<std::string> compressed(std::string_view bytes, std::size_t most) {
    Deflater deflater;
    z_stream& stream = deflater.stream();
    std::string out;
    std::array<char, 1 << 16> buffer;
    constexpr std::size_t kPiece = 1 << 20;
    for (std::size_t at = 0; at < bytes.size() || at == 0; at += kPiece) {
        const std::string_view piece = bytes.substr(at, kPiece);
        // zlib does not change its input, but takes it by a pointer that is not const.
        stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(piece.data()));
        stream.avail_in = static_cast<uInt>(piece.size());
        const int flush = at + kPiece >= bytes.size() ? Z_FINISH : Z_NO_FLUSH;
        do {
            stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
            stream.avail_out = static_cast<uInt>(buffer.size());
            deflate(&stream, flush);
            out.append(buffer.data(), buffer.size() - stream.avail_out);
            if (out.size() > most) return std::nullopt;
        } while (stream.avail_out == 0);
    }
    return out;
}

std::string base64(std::string_view bytes) {
    static constexpr std::string_view kDigits =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string text;
    text.reserve((bytes.size() + 2) / 3 * 4);
    for (std::size_t at = 0; at < bytes.size(); at += 3) {
        std::uint32_t three = 0;
        const std::size_t count = std::min<std::size_t>(3, bytes.size() - at);
        for (std::size_t i = 0; i < 3; ++i)
            three = three << 8 | (i < count ? static_cast<unsigned char>(bytes[at + i]) : 0U);
        for (std::size_t digit = 0; digit < 4; ++digit)
            text += digit <= count ? kDigits[three >> (18 - 6 * digit) & 0x3F] : '=';
    }
    return text;
}

}  // namespace shardscope::traces::report
