#include "trainer/checkpoint/crc32c.h"

#include <array>
#include <cstring>

namespace shardscope::trainer::checkpoint {

namespace {

constexpr std::array<std::uint32_t, 256> make_table() {
    constexpr std::uint32_t kReflectedPolynomial = 0x82F63B78;
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
        std::uint32_t rest = byte;
        for (int bit = 0; bit < 8; ++bit) rest = (rest >> 1) ^ ((rest & 1) != 0 ? kReflectedPolynomial : 0);
        table[byte] = rest;
    }
    return table;
}

constexpr std::array<std::uint32_t, 256> kTable = make_table();

#if defined(__x86_64__) && defined(__GNUC__)
__attribute__((target("sse4.2"))) std::uint32_t crc32c_sse42(std::span<const std::byte> bytes,
                                                             std::uint32_t before) {
    std::uint64_t rest = ~before;
    const std::byte* at = bytes.data();
    std::size_t left = bytes.size();
    for (; left >= sizeof(std::uint64_t); at += sizeof(std::uint64_t), left -= sizeof(std::uint64_t)) {
        std::uint64_t word = 0;
        std::memcpy(&word, at, sizeof word);
        rest = __builtin_ia32_crc32di(rest, word);
    }
    auto rest32 = static_cast<std::uint32_t>(rest);
    for (; left > 0; ++at, --left) {
        rest32 = __builtin_ia32_crc32qi(rest32, std::to_integer<std::uint8_t>(*at));
    }
    return ~rest32;
}
#endif

}  // namespace

std::uint32_t crc32c_plain(std::span<const std::byte> bytes, std::uint32_t before) {
    std::uint32_t rest = ~before;
    for (const std::byte byte : bytes) {
        rest = (rest >> 8) ^ kTable[(rest ^ std::to_integer<std::uint32_t>(byte)) & 0xFF];
    }
    return ~rest;
}

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before) {
#if defined(__x86_64__) && defined(__GNUC__)
    static const bool has_instruction = __builtin_cpu_supports("sse4.2") != 0;
    if (has_instruction) return crc32c_sse42(bytes, before);
#endif
    return crc32c_plain(bytes, before);
}

}  // namespace shardscope::trainer::checkpoint
