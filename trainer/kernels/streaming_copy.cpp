#include "trainer/kernels/streaming_copy.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include <unistd.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace shardscope::trainer::kernels {

namespace {

constexpr std::size_t kUnknownCache = std::size_t{32} << 20;

}  // namespace

#if defined(__SSE2__)
void streaming_copy(const void* in, void* out, std::size_t bytes) {
    constexpr std::size_t kLine = 64;
    const auto* from = static_cast<const std::byte*>(in);
    auto* to = static_cast<std::byte*>(out);
    const std::size_t head = std::min(bytes, (kLine - reinterpret_cast<std::uintptr_t>(to) % kLine) % kLine);
    std::memcpy(to, from, head);
    from += head;
    to += head;
    std::size_t left = bytes - head;
    for (; left >= kLine; left -= kLine, from += kLine, to += kLine) {
        const auto* source = reinterpret_cast<const __m128i*>(from);
        auto* target = reinterpret_cast<__m128i*>(to);
        const __m128i a = _mm_loadu_si128(source), b = _mm_loadu_si128(source + 1);
        const __m128i c = _mm_loadu_si128(source + 2), d = _mm_loadu_si128(source + 3);
        _mm_stream_si128(target, a);
        _mm_stream_si128(target + 1, b);
        _mm_stream_si128(target + 2, c);
        _mm_stream_si128(target + 3, d);
    }
    std::memcpy(to, from, left);
    _mm_sfence();  // before anybody is told that it is there
}
#else
void streaming_copy(const void* in, void* out, std::size_t bytes) {
    std::memcpy(out, in, bytes);
}
#endif

std::size_t last_cache_bytes() {
    static const std::size_t known = [] {
        const long bytes = std::max(::sysconf(_SC_LEVEL3_CACHE_SIZE), ::sysconf(_SC_LEVEL2_CACHE_SIZE));
        return bytes > 0 ? static_cast<std::size_t>(bytes) : kUnknownCache;
    }();
    return known;
}

}  // namespace shardscope::trainer::kernels
