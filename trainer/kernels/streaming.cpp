#include "trainer/kernels/streaming.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include <unistd.h>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "trainer/kernels/elements.h"
#include "trainer/kernels/elementwise.h"
#include "trainer/kernels/vectorize.h"

namespace shardscope::trainer::kernels {

namespace {

constexpr std::size_t kUnknownCache = std::size_t{32} << 20;

}  // namespace

#if defined(__SSE2__)
namespace {

constexpr std::size_t kLine = 64, kPage = 4096;

bool wide() {
    static const bool has = __builtin_cpu_supports("avx512f") != 0;
    return has;
}

// What remains of a copy whose output begins at a cache line.
struct Lines {
    const std::byte* from;
    std::byte* to;
    std::size_t bytes;

    void skip(std::size_t done) {
        from += done;
        to += done;
        bytes -= done;
    }
};

// Works on several pages at a time, because the processor prefetches within a page, but for several pages. A
// line that is stored whole is not read first.
__attribute__((target("avx512f"))) void copy_pages(Lines& lines) {
    constexpr std::size_t kPages = 4, kGroup = 4 * kLine;
    for (; lines.bytes >= kPages * kPage; lines.skip(kPages * kPage)) {
        for (std::size_t group = 0; group < kPage; group += kGroup) {
            for (std::size_t at = group; at < kPages * kPage; at += kPage) {
                const std::byte* from = lines.from + at;
                std::byte* to = lines.to + at;
                const __m512i a = _mm512_loadu_si512(from), b = _mm512_loadu_si512(from + kLine);
                const __m512i c = _mm512_loadu_si512(from + 2 * kLine),
                              d = _mm512_loadu_si512(from + 3 * kLine);
                _mm512_stream_si512(reinterpret_cast<__m512i*>(to), a);
                _mm512_stream_si512(reinterpret_cast<__m512i*>(to + kLine), b);
                _mm512_stream_si512(reinterpret_cast<__m512i*>(to + 2 * kLine), c);
                _mm512_stream_si512(reinterpret_cast<__m512i*>(to + 3 * kLine), d);
            }
        }
    }
}

void copy_lines(Lines& lines) {
    for (; lines.bytes >= kLine; lines.skip(kLine)) {
        const auto* source = reinterpret_cast<const __m128i*>(lines.from);
        auto* target = reinterpret_cast<__m128i*>(lines.to);
        const __m128i a = _mm_loadu_si128(source), b = _mm_loadu_si128(source + 1);
        const __m128i c = _mm_loadu_si128(source + 2), d = _mm_loadu_si128(source + 3);
        _mm_stream_si128(target, a);
        _mm_stream_si128(target + 1, b);
        _mm_stream_si128(target + 2, c);
        _mm_stream_si128(target + 3, d);
    }
}

}  // namespace

void streaming_copy(const void* in, void* out, std::size_t bytes) {
    Lines lines{static_cast<const std::byte*>(in), static_cast<std::byte*>(out), bytes};
    const std::size_t head = std::min(bytes, (kLine - reinterpret_cast<std::uintptr_t>(out) % kLine) % kLine);
    std::memcpy(lines.to, lines.from, head);
    lines.skip(head);
    if (wide()) copy_pages(lines);
    copy_lines(lines);
    std::memcpy(lines.to, lines.from, lines.bytes);
    _mm_sfence();  // the stores must be visible before another thread learns of them
}
#else
void streaming_copy(const void* in, void* out, std::size_t bytes) {
    std::memcpy(out, in, bytes);
}
#endif

namespace {

// Sums block by block in the L1 cache: the method for types that have no faster one.
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
// Sums `Pages` pages of each input side by side, as many as the processor can prefetch. Returns how many
// elements are done; the output begins at a cache line.
template <std::size_t Pages>
__attribute__((target("avx512f"))) std::size_t sum_pages(const float* const* inputs, int ranks, float* out,
                                                         std::size_t n, float factor) {
    constexpr std::size_t kFloats = kPage / sizeof(float), kAhead = 64;  // elements
    const __m512 factors = _mm512_set1_ps(factor);
    std::size_t first = 0;
    for (; first + Pages * kFloats <= n; first += Pages * kFloats) {
        for (std::size_t pair = 0; pair < kFloats; pair += 2 * kLanes) {
            for (std::size_t page = 0; page < Pages; ++page) {
                const std::size_t at = first + page * kFloats + pair;
                __m512 a = _mm512_setzero_ps(), b = a;
                for (int r = 0; r < ranks; ++r) {
                    const float* input = inputs[r] + at;
                    __builtin_prefetch(input + kAhead);
                    __builtin_prefetch(input + kAhead + kLanes);
                    const __m512 next_a = _mm512_loadu_ps(input), next_b = _mm512_loadu_ps(input + kLanes);
                    a = r == 0 ? next_a : _mm512_add_ps(a, next_a);
                    b = r == 0 ? next_b : _mm512_add_ps(b, next_b);
                }
                _mm512_stream_ps(out + at, _mm512_mul_ps(a, factors));
                _mm512_stream_ps(out + at + kLanes, _mm512_mul_ps(b, factors));
            }
        }
    }
    return first;
}

std::size_t sum_pages(const float* const* inputs, int ranks, float* out, std::size_t n, float factor) {
    if (!wide()) return 0;
    if (ranks <= 2) return sum_pages<4>(inputs, ranks, out, n, factor);
    if (ranks <= 4) return sum_pages<2>(inputs, ranks, out, n, factor);
    return sum_pages<1>(inputs, ranks, out, n, factor);
}

// Sums whole cache lines; the output begins at one.
SHARDSCOPE_VECTOR_CLONES void sum_lines(const float* const* inputs, int ranks, float* out, std::size_t n,
                                        float factor) {
    // Uses a vector type of the compiler: a loop over the lanes would go through memory.
    typedef float Lanes __attribute__((vector_size(kLanes * sizeof(float))));
    constexpr std::size_t kAhead = 128;  // elements; the processor's own prefetches end at each page
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
    const std::size_t pages = sum_pages(at.data(), ranks, out + head, lines, static_cast<float>(factor));
    skip(pages);
    sum_lines(at.data(), ranks, out + head + pages, lines - pages, static_cast<float>(factor));
    skip(lines - pages);
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
template void streaming_sum(const Fp16* const*, int, Fp16*, std::size_t, double);
template void streaming_sum(const double* const*, int, double*, std::size_t, double);

std::size_t cached_bytes() {
    static const std::size_t known = [] {
        const long bytes = std::max(::sysconf(_SC_LEVEL3_CACHE_SIZE), ::sysconf(_SC_LEVEL2_CACHE_SIZE));
        return (bytes > 0 ? static_cast<std::size_t>(bytes) : kUnknownCache) / 4;
    }();
    return known;
}

}  // namespace shardscope::trainer::kernels
