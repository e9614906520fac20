#include "trainer/kernels/streaming.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include <unistd.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "trainer/kernels/bf16.h"
#include "trainer/kernels/elementwise.h"
#include "trainer/kernels/vectorize.h"

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

namespace {

// Blocks that stay in the first cache, where there is no better way.
template <class T>
void sum_blocks(const T* const* inputs, int ranks, T* out, std::size_t n, double factor) {
    constexpr std::size_t kBlock = 16384 / sizeof(T);
    std::array<T, kBlock> block;
    std::vector<const T*> at(inputs, inputs + ranks);
    for (std::size_t first = 0; first < n; first += kBlock) {
        const std::size_t count = std::min(kBlock, n - first);
        sum_ranks(at.data(), ranks, block.data(), count, factor);
        streaming_copy(block.data(), out + first, count * sizeof(T));
        for (const T*& input : at) input += count;
    }
}

#if defined(__SSE2__)
// Whole lines of an output that begins with one.
SHARDSCOPE_VECTOR_CLONES void sum_lines(const float* const* inputs, int ranks, float* out, std::size_t n,
                                        float factor) {
    // A vector type of the compiler: a loop over the lanes would go through memory.
    typedef float Lanes __attribute__((vector_size(kLanes * sizeof(float))));
    constexpr std::size_t kAhead = 128;  // elements: the processor's own prefetches end with each page
    for (std::size_t first = 0; first < n; first += kLanes) {
        Lanes sum;
        Lanes next;
        std::memcpy(&sum, inputs[0] + first, sizeof sum);
        __builtin_prefetch(inputs[0] + first + kAhead);
        for (int r = 1; r < ranks; ++r) {
            std::memcpy(&next, inputs[r] + first, sizeof next);
            __builtin_prefetch(inputs[r] + first + kAhead);
            sum += next;
        }
        sum *= factor;
        __m128 parts[kLanes / 4];
        std::memcpy(parts, &sum, sizeof sum);
        for (std::size_t part = 0; part < kLanes / 4; ++part)
            _mm_stream_ps(out + first + 4 * part, parts[part]);
    }
    _mm_sfence();
}

void sum(const float* const* inputs, int ranks, float* out, std::size_t n, double factor) {
    const std::size_t past = reinterpret_cast<std::uintptr_t>(out) / sizeof(float) % kLanes;
    const std::size_t head = std::min(n, (kLanes - past) % kLanes), lines = (n - head) / kLanes * kLanes;
    std::vector<const float*> at(inputs, inputs + ranks);
    const auto skip = [&](std::size_t count) {
        for (const float*& input : at) input += count;
    };
    sum_ranks(at.data(), ranks, out, head, factor);
    skip(head);
    sum_lines(at.data(), ranks, out + head, lines, static_cast<float>(factor));
    skip(lines);
    sum_ranks(at.data(), ranks, out + head + lines, n - head - lines, factor);
}
#else
void sum(const float* const* inputs, int ranks, float* out, std::size_t n, double factor) {
    sum_blocks(inputs, ranks, out, n, factor);
}
#endif

}  // namespace

template <class T>
void streaming_sum(const T* const* inputs, int ranks, T* out, std::size_t n, double factor) {
    if constexpr (std::is_same_v<T, float>) {
        sum(inputs, ranks, out, n, factor);
    } else {
        sum_blocks(inputs, ranks, out, n, factor);
    }
}
template void streaming_sum(const float* const*, int, float*, std::size_t, double);
template void streaming_sum(const Bf16* const*, int, Bf16*, std::size_t, double);
template void streaming_sum(const double* const*, int, double*, std::size_t, double);

std::size_t last_cache_bytes() {
    static const std::size_t known = [] {
        const long bytes = std::max(::sysconf(_SC_LEVEL3_CACHE_SIZE), ::sysconf(_SC_LEVEL2_CACHE_SIZE));
        return bytes > 0 ? static_cast<std::size_t>(bytes) : kUnknownCache;
    }();
    return known;
}

}  // namespace shardscope::trainer::kernels
