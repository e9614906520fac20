// Writes pickles for tests, opcode by opcode, as PyTorch's pickler would write the same data.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardscope::traces::pickled {

// The bytes of one value; whole() makes a file of it.
using Bytes = std::string;

inline Bytes little_endian(std::uint64_t value, int bytes) {
    Bytes result;
    for (int i = 0; i < bytes; ++i) result += static_cast<char>(value >> (8 * i) & 0xFF);
    return result;
}

inline Bytes none() {
    return "N";
}
inline Bytes boolean(bool value) {
    return value ? "\x88" : "\x89";
}
inline Bytes integer(std::int64_t value) {  // LONG1 of 8 bytes
    return "\x8a\x08" + little_endian(static_cast<std::uint64_t>(value), 8);
}
inline Bytes text(std::string_view value) {  // BINUNICODE
    return "X" + little_endian(value.size(), 4) + Bytes(value);
}
inline Bytes list(const std::vector<Bytes>& items) {
    Bytes result = "](";
    for (const Bytes& item : items) result += item;
    return result + "e";
}
inline Bytes tuple(const std::vector<Bytes>& items) {
    Bytes result = "(";
    for (const Bytes& item : items) result += item;
    return result + "t";
}
inline Bytes dictionary(const std::vector<std::pair<std::string_view, Bytes>>& entries) {
    Bytes result = "}(";
    for (const auto& [key, value] : entries) result += text(key) + value;
    return result + "u";
}
inline Bytes whole(const Bytes& value) {  // protocol 2
    return "\x80\x02" + value + ".";
}

}  // namespace shardscope::traces::pickled
