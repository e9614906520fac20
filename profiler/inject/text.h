// Text as NVTX callers hand it over: any length, maybe null, narrow (UTF-8 as it is) or wide. No heap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "profiler/record.h"

namespace shardscope::profiler::inject {

struct Text {
    const char* data;
    std::size_t size;  // without a NUL, less than kMaxText
};

// Bytes that the text takes behind a record, with its NUL.
inline std::size_t padded_size(Text text) {
    return (text.size + 1 + 7) / 8 * 8;
}

// Puts the text there, padded with NULs. Written out because a call of memcpy would be watched by a thread
// sanitizer in the program, which does not see how chunks pass from thread to thread.
inline void copy_text(void* to, Text text) {
    auto* out = static_cast<std::uint64_t*>(to);
    const char* in = text.data;
    std::size_t left = text.size;
    for (; left >= 8; left -= 8, in += 8) {
        std::uint64_t word;
        __builtin_memcpy(&word, in, 8);
        *out++ = word;
    }
    std::uint64_t tail = 0;
    for (std::size_t i = 0; i < left; ++i)
        tail |= std::uint64_t{static_cast<unsigned char>(in[i])} << (8 * i);
    *out = tail;
}

// At most kMaxText-1 bytes, not cut inside a UTF-8 sequence.
inline Text narrow_text(const char* text) {
    if (text == nullptr) return {"", 0};
    std::size_t size = ::strnlen(text, kMaxText);
    if (size == kMaxText) {
        --size;
        while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xC0) == 0x80) --size;
    }
    return {text, size};
}

// UTF-32 to UTF-8 into `buffer`; what is no character becomes '?'.
inline Text wide_text(const wchar_t* text, char (&buffer)[kMaxText]) {
    std::size_t size = 0;
    for (; text != nullptr && *text != 0; ++text) {
        auto c = static_cast<std::uint32_t>(*text);  // NOLINT(bugprone-signed-char-misuse): 32 bits wide
        if (c > 0x10FFFF || (c >= 0xD800 && c < 0xE000)) c = U'?';
        const std::size_t bytes = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
        if (size + bytes >= kMaxText) break;
        if (bytes == 1) {
            buffer[size++] = static_cast<char>(c);
            continue;
        }
        constexpr unsigned char kLead[] = {0, 0, 0xC0, 0xE0, 0xF0};
        buffer[size++] = static_cast<char>(kLead[bytes] | (c >> (6 * (bytes - 1))));
        for (std::size_t rest = bytes - 1; rest-- > 0;) {
            buffer[size++] = static_cast<char>(0x80 | ((c >> (6 * rest)) & 0x3F));
        }
    }
    return {buffer, size};
}

}  // namespace shardscope::profiler::inject
