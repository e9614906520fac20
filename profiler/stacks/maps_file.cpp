// Reads "7f10-7f20 r-xp 00001000 08:01 77   /usr/lib/libc.so.6", a line for each mapping.
#include "profiler/stacks/maps_file.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <fstream>
#include <string_view>

namespace shardscope::profiler {
namespace {

// Takes a hexadecimal number and the character after it from the front of a text; false if it begins
// otherwise.
bool take_number(std::string_view& text, char after, std::uint64_t& number) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, 16);
    const auto digits = static_cast<std::size_t>(end - text.data());
    if (error != std::errc() || digits == text.size() || *end != after) return false;
    text.remove_prefix(digits + 1);
    return true;
}

void skip_to(std::string_view& text, std::size_t at) {
    text.remove_prefix(std::min(at, text.size()));
}

}  // namespace

std::vector<CodeMapping> read_maps_file(const std::string& path, std::int32_t pid, MonotonicTime time) {
    std::vector<CodeMapping> mappings;
    std::ifstream file(path);
    std::string line;
    while (std::getline(file, line)) {
        std::string_view rest = line;
        std::uint64_t start = 0, end = 0, offset = 0;
        if (!take_number(rest, '-', start) || !take_number(rest, ' ', end) || rest.size() < 5 ||
            rest[2] != 'x' || end <= start)
            continue;
        rest.remove_prefix(5);
        if (!take_number(rest, ' ', offset)) continue;
        skip_to(rest, rest.find(' '));  // the device
        skip_to(rest, rest.find_first_not_of(' '));
        skip_to(rest, rest.find(' '));  // the inode
        skip_to(rest, rest.find_first_not_of(' '));
        constexpr std::string_view kDeleted = " (deleted)";
        if (rest.ends_with(kDeleted)) rest.remove_suffix(kDeleted.size());
        mappings.push_back({time, pid, start, end - start, offset, std::string(rest)});
    }
    return mappings;
}

}  // namespace shardscope::profiler
