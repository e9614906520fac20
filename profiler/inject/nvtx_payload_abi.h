// The binary interface of NVTX's payload extension (module 2), declared here like the core's (nvtx_abi.h). A
// module of the program hands its slots to InitializeInjectionNvtxExtension at its first call of the
// extension. Source: NVTX 3's nvToolsExtPayload.h and nvtxExtTypes.h, with which tests compare this if
// they are found.
#pragma once

#include <cstddef>
#include <cstdint>

#include "profiler/inject/nvtx_abi.h"

namespace shardscope::profiler::nvtx {

// EventAttributes::payload_type of payloads of a schema: `payload` is then a PayloadData*, `reserved` their
// number.
inline constexpr auto kPayloadTypeExtended = static_cast<std::int32_t>(0xDFBD0009u);
// Greatest payload_type of a plain value (1 u64, 2 i64, 3 double, 4 u32, 5 i32, 6 float).
inline constexpr std::int32_t kPayloadTypeLast = 6;

struct PayloadData {
    std::uint64_t schema;
    std::size_t size;  // SIZE_MAX: that of the schema
    const void* data;
};

struct SchemaEntry {
    std::uint64_t flags, type;
    const char *name, *description;  // may be null
    std::uint64_t detail;            // length of an array or a string …
    std::uint64_t offset;
    const void *semantics, *reserved;
};

struct SchemaAttributes {
    std::uint64_t fields;  // which of the following are set: kSchema…
    const char* name;
    std::uint64_t type, flags;
    const SchemaEntry* entries;
    std::size_t entry_count, static_size, align;
    std::uint64_t id;
    void* extension;
};
inline constexpr std::uint64_t kSchemaName = 1 << 1, kSchemaType = 1 << 2, kSchemaFlags = 1 << 3,
                               kSchemaEntries = 1 << 4, kSchemaEntryCount = 1 << 5, kSchemaSize = 1 << 6,
                               kSchemaAlign = 1 << 7, kSchemaId = 1 << 8;

struct EnumEntry {
    const char* name;
    std::uint64_t value;
    std::int8_t is_flag;
};

struct EnumAttributes {
    std::uint64_t fields;  // kEnum…
    const char* name;
    const EnumEntry* entries;
    std::size_t entry_count, size;
    std::uint64_t id;
    void* extension;
};
inline constexpr std::uint64_t kEnumName = 1 << 1, kEnumEntries = 1 << 2, kEnumEntryCount = 1 << 3,
                               kEnumSize = 1 << 4, kEnumId = 1 << 5;

struct ScopeAttributes {
    std::size_t struct_size;
    const char* path;
    std::uint64_t parent, id;
};

struct TimeDomainAttributes {
    std::uint64_t scope, timestamp_type, id, flags;
    std::int64_t resolution;
    std::uint64_t start;
};

// SchemaEntry::flags, and types, of an entry that is the event's message.
inline constexpr std::uint64_t kEntryPointer = 1 << 1, kEntryArrayFixed = 1 << 4, kEntryMessage = 1 << 10;
inline constexpr std::uint64_t kEntryArrayMask = 7 << 4;
inline constexpr std::uint64_t kTypeChar = 1, kTypeCString = 75, kTypeCStringUtf8 = 76,
                               kTypeRegisteredString = 80;

// Ids not chosen by the program start here.
inline constexpr std::uint64_t kDynamicIds = std::uint64_t{1} << 32;

inline constexpr std::uint16_t kPayloadModule = 2;

struct ExtensionSegment {
    std::size_t id;
    std::size_t slot_count;
    std::intptr_t* slots;  // the program's function pointers
};
struct ExtensionModule {
    std::uint16_t nvtx_version, struct_size, module, compatibility;
    std::size_t segment_count;
    ExtensionSegment* segments;
    std::intptr_t (*get_export_function)(std::uint32_t);
    const void* information;
};

// Indices into the slots of kPayloadModule.
enum PayloadId : unsigned {
    payload_schema_register = 0,
    payload_enum_register = 1,
    mark_payload = 2,
    range_push_payload = 3,
    range_pop_payload = 4,
    range_start_payload = 5,
    range_end_payload = 6,
    domain_is_enabled = 7,
    timestamp_get = 8,
    time_domain_register = 9,
    timer_source = 10,
    timer_source_with_data = 11,
    scope_register = 12,
    time_sync_point = 13,
    time_sync_point_table = 14,
    timestamp_conversion_factor = 15,
    event_submit = 16,
    event_batch_submit = 17,
};

}  // namespace shardscope::profiler::nvtx
