// Source: SQLite's documentation "Database File Format", 4 (the write-ahead log).
#include "traces/store/sqlite/wal_damage.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <span>
#include <vector>

#include <fmt/core.h>

#include "traces/store/sqlite/in_use.h"

namespace shardscope::traces::store {

namespace {

constexpr std::size_t kHeader = 32, kFrameHeader = 24;
constexpr std::uint32_t kMagic = 0x377F0682;  // the last bit says that the checksums are of big-endian words
constexpr std::uint32_t kMostPage = 65536;

std::uint32_t word(std::span<const unsigned char> bytes, std::size_t at, bool big_endian = true) {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < 4; ++i) value = value << 8 | bytes[at + (big_endian ? i : 3 - i)];
    return value;
}

struct WalSum {
    bool big_endian;
    std::uint32_t first = 0, second = 0;

    void add(std::span<const unsigned char> bytes) {
        for (std::size_t at = 0; at + 8 <= bytes.size(); at += 8) {
            first += word(bytes, at, big_endian) + second;
            second += word(bytes, at + 4, big_endian) + first;
        }
    }
    bool stands_at(std::span<const unsigned char> bytes, std::size_t at) const {
        return word(bytes, at) == first && word(bytes, at + 4) == second;
    }
};

// Whether the header and the first changed page are what SQLite wrote.
bool begins_well(std::istream& file) {
    const auto read = [&](std::span<unsigned char> into) {
        file.read(reinterpret_cast<char*>(into.data()), static_cast<std::streamsize>(into.size()));
        return static_cast<std::size_t>(file.gcount()) == into.size();
    };
    std::array<unsigned char, kHeader> header{};
    if (!read(header) || (word(header, 0) & ~1U) != kMagic) return false;
    WalSum sum{.big_endian = (word(header, 0) & 1) != 0};
    sum.add(std::span(header).first(24));
    const std::uint32_t page = word(header, 8);
    if (!sum.stands_at(header, 24) || page < 512 || page > kMostPage) return false;
    std::vector<unsigned char> frame(kFrameHeader + page);
    if (!read(frame)) return file.gcount() == 0;  // restarted, with nothing written since
    // The frame belongs to an earlier generation of the log, which was checkpointed completely.
    if (word(frame, 8) != word(header, 16) || word(frame, 12) != word(header, 20)) return true;
    sum.add(std::span(frame).first(8));
    sum.add(std::span(frame).subspan(kFrameHeader));
    return sum.stands_at(frame, 16);
}

}  // namespace

std::string damage_of_wal(const std::string& path) {
    std::ifstream file(path + "-wal", std::ios::binary);
    if (!file || file.peek() == std::ifstream::traits_type::eof() || begins_well(file)) return "";
    if (process_that_uses(path) != 0) return "";  // the journal is being restarted right now
    return fmt::format(
        "{0}-wal, the journal of the newest events, is damaged and cannot be read; only what is in {0} "
        "itself is shown;"
        " copy both again from where they were recorded",
        path);
}

}  // namespace shardscope::traces::store
