// The binary interface through which a program's NVTX calls reach an injected library (NVTX version 3),
// declared here so that no header of the CUDA Toolkit is needed. Numbers and layouts are NVTX's and do not
// change; tests compare them with the Toolkit's headers if those are found.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shardscope::profiler::nvtx {

using Function = void (*)();
using DomainHandle = void*;
using StringHandle = void*;
using ResourceHandle = void*;
using RangeId = std::uint64_t;

// Describes one event. `size` is that of the caller's struct, which may be a longer one.
struct EventAttributes {
    std::uint16_t version;
    std::uint16_t size;
    std::uint32_t category;
    std::int32_t color_type;
    std::uint32_t color;
    std::int32_t payload_type;
    std::int32_t reserved;
    std::uint64_t payload;
    std::int32_t message_type;
    union {
        const char* ascii;
        const wchar_t* unicode;
        StringHandle registered;
    } message;
};
static_assert(sizeof(EventAttributes) == 48 && offsetof(EventAttributes, message) == 40);

inline constexpr std::int32_t kColorArgb = 1;
inline constexpr std::int32_t kMessageAscii = 1, kMessageUnicode = 2, kMessageRegistered = 3;

// The result of push and pop when levels are not tracked.
inline constexpr int kNoPushPopTracking = -2;

// The tables that a module offers to be filled.
inline constexpr std::uint32_t kExportCallbacks = 1;
inline constexpr int kModuleCore = 1, kModuleCore2 = 5;

struct ExportCallbacks {
    std::size_t struct_size;
    int (*get_module_function_table)(int module, Function*** table, unsigned* size);
};
using GetExportTable = const void* (*)(std::uint32_t id);

// Indices into the table of kModuleCore …
enum CoreId : unsigned {
    mark_ex = 1,
    mark_a = 2,
    mark_w = 3,
    range_start_ex = 4,
    range_start_a = 5,
    range_start_w = 6,
    range_end = 7,
    range_push_ex = 8,
    range_push_a = 9,
    range_push_w = 10,
    range_pop = 11,
    name_category_a = 12,
    name_category_w = 13,
    name_os_thread_a = 14,
    name_os_thread_w = 15,
};

// … and of kModuleCore2.
enum Core2Id : unsigned {
    domain_mark_ex = 1,
    domain_range_start_ex = 2,
    domain_range_end = 3,
    domain_range_push_ex = 4,
    domain_range_pop = 5,
    domain_resource_create = 6,
    domain_resource_destroy = 7,
    domain_name_category_a = 8,
    domain_name_category_w = 9,
    domain_register_string_a = 10,
    domain_register_string_w = 11,
    domain_create_a = 12,
    domain_create_w = 13,
    domain_destroy = 14,
    initialize = 15,
};

}  // namespace shardscope::profiler::nvtx
