#include "trainer/world/frame.h"

#include <algorithm>
#include <string_view>

namespace shardscope::trainer::world {

namespace {

constexpr std::string_view kMagic = "ShdWorld";
constexpr std::size_t kKindBytes = 2, kLengthBytes = 6;

void put(char* to, std::uint64_t value, std::size_t bytes) {
    for (std::size_t byte = 0; byte < bytes; ++byte) {
        to[byte] = static_cast<char>(static_cast<unsigned char>(value >> (8 * byte)));
    }
}

std::uint64_t get(const char* from, std::size_t bytes) {
    std::uint64_t value = 0;
    for (std::size_t byte = 0; byte < bytes; ++byte) {
        value |= static_cast<std::uint64_t>(static_cast<unsigned char>(from[byte])) << (8 * byte);
    }
    return value;
}

}  // namespace

FrameHeaderBytes encode(const FrameHeader& header) {
    FrameHeaderBytes bytes{};
    std::copy(kMagic.begin(), kMagic.end(), bytes.begin());
    put(bytes.data() + kMagic.size(), static_cast<std::uint64_t>(header.kind), kKindBytes);
    put(bytes.data() + kMagic.size() + kKindBytes, header.bytes, kLengthBytes);
    return bytes;
}

std::optional<FrameHeader> decode(const FrameHeaderBytes& bytes) {
    if (!std::string_view(bytes.data(), bytes.size()).starts_with(kMagic)) return std::nullopt;
    const std::uint64_t kind = get(bytes.data() + kMagic.size(), kKindBytes);
    if (kind < static_cast<std::uint64_t>(FrameKind::hello) ||
        kind > static_cast<std::uint64_t>(FrameKind::farewell)) {
        return std::nullopt;
    }
    return FrameHeader{static_cast<FrameKind>(kind),
                       get(bytes.data() + kMagic.size() + kKindBytes, kLengthBytes)};
}

}  // namespace shardscope::trainer::world
