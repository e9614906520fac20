// Text as NVTX callers pass it: any length, maybe null, narrow (UTF-8 as it is) or wide. No heap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include "profiler/base/record.h"

namespace shardscope::profiler::inject {

struct Text {
    const char* data;
    std::size_t size;  // without a NUL, less than kMaxText
};

// Bytes that the text takes after a record, with its NUL.
inline std::size_t padded_size(Text text) {
    return (text.size + 1 + 7) / 8 * 8;
}

// Copies a number of bytes known at compile time: loads and stores, no call.
template <std::size_t kBytes>
inline void copy_fixed(char* to, const char* from) {
    char bytes[kBytes];
    __builtin_memcpy(bytes, from, kBytes);
    __builtin_memcpy(to, bytes, kBytes);
}

// Copies the text, padded with NULs to padded_size(). Does not call memcpy, which a thread sanitizer in the
// program would check without seeing how chunks pass from thread to thread. It is also faster for texts of
// this length: the last part of each size overlaps the previous one.
[[gnu::always_inline]] inline void copy_text(void* to, Text text) {
    char* out = static_cast<char*>(to);
    const char* in = text.data;
    const std::size_t size = text.size;
    const std::uint64_t zeros = 0;
    __builtin_memcpy(out + (padded_size(text) - 8), &zeros, 8);
    if (size >= 16) {
        for (std::size_t at = 0; at + 16 <= size; at += 16) copy_fixed<16>(out + at, in + at);
        copy_fixed<16>(out + size - 16, in + size - 16);
    } else if (size >= 8) {
        copy_fixed<8>(out, in);
        copy_fixed<8>(out + size - 8, in + size - 8);
    } else if (size >= 4) {
        copy_fixed<4>(out, in);
        copy_fixed<4>(out + size - 4, in + size - 4);
    } else if (size != 0) {
        out[0] = in[0];
        out[size / 2] = in[size / 2];
        out[size - 1] = in[size - 1];
    }
}

// The number of bytes before the NUL, at most `most`. Reads aligned blocks of 16, which never reach into a
// page without text; a call of strnlen costs more than this does for most texts.
inline std::size_t text_length(const char* text, std::size_t most) {
#if defined(__x86_64__)
    const std::size_t skew = reinterpret_cast<std::uintptr_t>(text) & 15;
    const char* block = text - skew;
    const __m128i zero = _mm_setzero_si128();
    for (std::size_t at = 0; at < most + skew; at += 16) {
        const __m128i bytes = _mm_load_si128(reinterpret_cast<const __m128i*>(block + at));
        auto nuls = static_cast<std::uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, zero)));
        if (at == 0) nuls = nuls >> skew << skew;  // the bytes before the text
        if (nuls == 0) continue;
        const std::size_t size = at + static_cast<std::size_t>(__builtin_ctz(nuls)) - skew;
        return size < most ? size : most;
    }
    return most;
#else
    return ::strnlen(text, most);
#endif
}

// At most kMaxText-1 bytes, not cut inside a UTF-8 sequence.
inline Text narrow_text(const char* text) {
    if (text == nullptr) return {"", 0};
    std::size_t size = text_length(text, kMaxText);
    if (size == kMaxText) {
        --size;
        while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xC0) == 0x80) --size;
    }
    return {text, size};
}

// UTF-32 to UTF-8 into `buffer`; invalid characters become '?'.
[[gnu::noinline]] inline Text wide_text(const wchar_t* text, char (&buffer)[kMaxText]) {
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
