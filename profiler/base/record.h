// The record format: what a recording thread writes, in memory (recorder.h) or in a file mapped by an
// injected program and by shardscope-record (inject/). Plain data, native byte order, 8-byte aligned, no
// pointers. Times are raw ticks (clock.h).
//
// A log is one thread's records in order, cut into chunks. A chunk is a header and then whole records. Its
// owner appends and publishes with one release store to `used`; the reader frees a sealed chunk.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "profiler/base/clock.h"

namespace shardscope::profiler {

// Changes with any change of the structs below: the tool and the injected library must agree.
inline constexpr std::uint32_t kRecordFormat = 3;

enum class RecordKind : std::uint8_t {
    none = 0,
    push,             // RangeRecord or PlainRangeRecord
    pop,              // PopRecord
    mark,             // RangeRecord or PlainRangeRecord
    range_start,      // RangeRecord, `id` set
    range_end,        // RangeEndRecord
    runtime,          // RuntimeFields (log/work_records.h)
    synchronization,  // SynchronizationFields
    kernel,           // WorkFields
    memcpy,           // WorkFields
    memset,           // WorkFields
    collective,       // CollectiveWork
    memory,           // MemoryFields
    counter,          // CounterFields
    step,             // StepFields
    gap,              // GapRecord
    define_name,      // TextRecord: header.name = id
    thread_name,      // TextRecord: owner = tid
    category_name,    // TextRecord: header.name = category, owner = domain
    thread_end,       // PopRecord: the thread has ended its log
    thread_start,     // TextRecord: owner = tid, text = the system's name for the thread
    payload,          // PayloadRecord: belongs to the next range, mark, pop or end in this log
    payload_schema,   // SchemaRecord
    payload_enum,     // EnumRecord
    scope,            // ScopeRecord

    // Kinds of sources that have a RecordHandler of their own; their structs are declared next to the source.
    cuda_first = 64,  // cupti/records.h
    cuda_last = 95,
    nccl_first = 96,  // inject/nccl_records.h
    nccl_last = 127,
};

struct RecordHeader {
    std::uint16_t bytes;  // of the whole record, a multiple of 8
    RecordKind kind;
    std::uint8_t flags;
    std::uint32_t name;  // id of a name; 0: none, or the text that follows
};

// RecordHeader::flags of a RangeRecord.
inline constexpr std::uint8_t kHasColor = 1;
inline constexpr std::uint8_t kHasCategory = 2;
inline constexpr std::uint8_t kHasText = 4;  // NUL-terminated text follows the struct
inline constexpr std::uint8_t kDomainStack =
    8;                                       // NVTX: one stack per thread and domain; ours: one per thread
inline constexpr std::uint8_t kIsLong = 16;  // a RangeRecord; else a PlainRangeRecord

// Longest text that a record holds, with its NUL; longer ones are cut.
inline constexpr std::size_t kMaxText = 4096;

// A push or mark without further fields: the hot case, and the first part of a RangeRecord.
struct PlainRangeRecord {
    RecordHeader header;
    Ticks ticks;
    std::uint32_t domain;  // name id of the domain; 0: the default domain
    std::uint32_t depth;   // push: how many ranges of this thread and domain are open around it
    std::int32_t module;   // ModuleRow::id or -1
    std::uint32_t color;
};

struct RangeRecord {  // push, mark, range_start
    RecordHeader header;
    Ticks ticks;
    std::uint32_t domain, depth;
    std::int32_t module;
    std::uint32_t color;
    std::uint64_t id;  // range_start: unique in the process
    std::uint32_t category;
    std::uint32_t value_type;  // of an NVTX payload value: traces::schema::RangePayload::Type
    std::uint64_t value;       // its bytes, at the low end
};
static_assert(sizeof(PlainRangeRecord) == 32 && offsetof(RangeRecord, id) == sizeof(PlainRangeRecord));

struct PopRecord {
    RecordHeader header;
    Ticks ticks;
    std::uint32_t domain;  // with kDomainStack: the domain that owns the stack
    std::uint32_t depth;   // the depth of the push that it closes
};

struct RangeEndRecord {
    RecordHeader header;
    Ticks ticks;
    std::uint64_t id;
};

// Records were lost between the previous one and the next, because no chunk was free.
struct GapRecord {
    RecordHeader header;
    Ticks ticks;              // when the first was lost
    std::uint64_t count;      // how many
    std::uint64_t min_depth;  // open ranges of this depth or deeper may have lost their end
};

struct TextRecord {
    RecordHeader header;
    Ticks ticks;
    std::uint64_t owner;
    // text follows
};

// --- NVTX payloads (the payload extension): bytes, and the layouts that the program registered -----------

// Bytes in the layout of a schema. Several may precede one event.
struct PayloadRecord {
    RecordHeader header;
    std::uint64_t schema;
    std::uint64_t size;  // of the bytes that follow, padded
};

struct SchemaRecord {
    RecordHeader header;   // name: the schema's
    std::uint64_t domain;  // name id
    std::uint64_t id, type, flags, size, align;
    std::uint64_t entries;  // the number of SchemaEntry that follow
};
struct SchemaEntry {
    std::uint32_t name, description;  // name ids
    std::uint64_t type, flags, detail, offset;
};

struct EnumRecord {
    RecordHeader header;
    std::uint64_t domain;
    std::uint64_t id, size;
    std::uint64_t entries;  // the number of EnumEntry that follow
};
struct EnumEntry {
    std::uint32_t name;
    std::uint32_t is_flag;
    std::uint64_t value;
};

struct ScopeRecord {
    RecordHeader header;  // name: the path relative to the parent
    std::uint64_t domain;
    std::uint64_t id, parent;
};

// --- chunks ------------------------------------------------------------------------------------------

enum class ChunkState : std::uint32_t { free = 0, active = 1, sealed = 2 };

struct ChunkHeader {
    std::atomic<ChunkState> state;
    std::uint32_t log;  // number of the log in its process; 0: names
    std::uint32_t tid;
    std::uint32_t reserved;
    std::uint64_t sequence;           // 0, 1, 2 … in the log
    std::atomic<std::uint64_t> used;  // bytes of published records
    // The log's losses so far. While records are being lost, the chunk is full and the gap is open.
    std::atomic<std::uint64_t> dropped;
    std::atomic<std::uint64_t> gap_ticks;  // 0: no gap is open
    std::atomic<std::uint64_t> gap_min_depth;
    std::uint64_t reserved_too;
};
static_assert(sizeof(ChunkHeader) == 64);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "chunks are shared between processes");

inline std::byte* chunk_data(ChunkHeader* chunk) {
    return reinterpret_cast<std::byte*>(chunk + 1);
}
inline const std::byte* chunk_data(const ChunkHeader* chunk) {
    return reinterpret_cast<const std::byte*>(chunk + 1);
}

// What the writers and the reader of a set of chunks share.
struct ArenaControl {
    std::atomic<std::uint32_t> chunks;    // how many exist; the number never shrinks
    std::atomic<std::uint32_t> released;  // counts chunks that the reader freed (wraps)
    std::atomic<std::uint64_t> lost;      // records of threads that never got a chunk
};

}  // namespace shardscope::profiler
