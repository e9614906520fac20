// Reads records from memory that another program may have corrupted: they are copied, and never trusted
// beyond their bounds.
#pragma once

#include <cstddef>
#include <cstring>
#include <optional>
#include <string_view>

namespace shardscope::profiler {

// A copy of a record in the chunk; std::nullopt if it is cut short.
template <typename Record>
std::optional<Record> read_record(const std::byte* bytes, std::size_t size) {
    if (size < sizeof(Record)) return std::nullopt;
    Record record;
    std::memcpy(&record, bytes, sizeof record);
    return record;
}

// The NUL-terminated text after a struct.
inline std::string_view text_after(const std::byte* bytes, std::size_t struct_size, std::size_t size) {
    if (size <= struct_size) return {};
    const char* text = reinterpret_cast<const char*>(bytes) + struct_size;
    return {text, ::strnlen(text, size - struct_size)};
}

}  // namespace shardscope::profiler
