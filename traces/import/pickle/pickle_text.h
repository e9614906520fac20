// Writes Python pickles of protocol 2: each function returns the opcodes of one value, whole() a file.
// Source: Python's documentation of the module pickletools.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardscope::traces::pickled {

using Bytes = std::string;  // of one value

inline std::string little_endian(std::uint64_t value, int bytes) {
    std::string text;
    for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> 8 * i & 0xFF);
    return text;
}

inline std::string none() {
    return "N";
}
inline std::string boolean(bool value) {
    return value ? "\x88" : "\x89";
}
inline std::string integer(std::int64_t value) {
    const auto bits = static_cast<std::uint64_t>(value);
    if (value >= 0 && value < 0x100) return "K" + little_endian(bits, 1);
    if (value >= 0 && value < 0x10000) return "M" + little_endian(bits, 2);
    if (value >= INT32_MIN && value <= INT32_MAX) return "J" + little_endian(bits, 4);
    return "\x8a\x08" + little_endian(bits, 8);
}
inline std::string real(double value) {
    std::string text = little_endian(std::bit_cast<std::uint64_t>(value), 8);
    return "G" + std::string(text.rbegin(), text.rend());
}
inline std::string text(std::string_view value) {
    return "X" + little_endian(value.size(), 4) + std::string(value);
}
inline std::string global(const std::string& module, const std::string& name) {
    return "c" + module + "\n" + name + "\n";
}
inline std::string tuple(const std::vector<std::string>& items) {
    std::string all = "(";
    for (const std::string& item : items) all += item;
    return all + "t";
}
inline std::string list(const std::vector<std::string>& items) {
    std::string all = "](";
    for (const std::string& item : items) all += item;
    return all + "e";
}
using Entries = std::vector<std::pair<std::string, std::string>>;
inline std::string dictionary(const Entries& entries) {
    std::string all = "}(";
    for (const auto& [key, value] : entries) all += key + value;
    return all + "u";
}
// A dictionary whose keys are these texts.
inline std::string members(const std::vector<std::pair<std::string_view, std::string>>& entries) {
    std::string all = "}(";
    for (const auto& [key, value] : entries) all += text(key) + value;
    return all + "u";
}
inline std::string integers(const std::vector<std::int64_t>& values) {
    std::vector<std::string> items;
    items.reserve(values.size());
    for (const std::int64_t value : values) items.push_back(integer(value));
    return tuple(items);
}
inline std::string call(const std::string& function, const std::vector<std::string>& arguments) {
    return function + tuple(arguments) + "R";
}
// An object that is made without arguments and then given its state.
inline std::string object(const std::string& type, const std::string& state) {
    return type + ")\x81" + state + "b";
}
inline std::string whole(const std::string& value) {
    return "\x80\x02" + value + ".";
}

}  // namespace shardscope::traces::pickled
