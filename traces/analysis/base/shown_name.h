// A name from a trace within a sentence.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace shardscope::traces::analysis {

// In quotes, and only its start if it is long: names of templates have thousands of bytes.
inline std::string shown(std::string_view name) {
    constexpr std::size_t kMost = 72;  // bytes
    if (name.size() <= kMost) return '"' + std::string(name) + '"';
    std::size_t end = kMost;
    while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xC0) == 0x80) --end;  // whole characters
    return '"' + std::string(name.substr(0, end)) + "\u2026\"";
}

}  // namespace shardscope::traces::analysis
