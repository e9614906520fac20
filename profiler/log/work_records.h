// The records that only a program that links the recorder writes (thread_log.h), as fields that follow a
// record's header: the log holds them as the program gives them. A new kind needs a number (base/record.h),
// its fields here, the function of ThreadLog that writes them, and the row that RecordConverter makes of
// them.
#pragma once

#include <cstdint>
#include <type_traits>

#include "profiler/base/record.h"
#include "traces/schema/rows.h"

namespace shardscope::profiler {

// A name known to the recorder; 0 is the empty name.
enum class NameId : std::uint32_t { none = 0 };

template <typename Fields>
struct RecordOf {
    static_assert(std::is_trivially_copyable_v<Fields> && sizeof(Fields) % 8 == 0);
    RecordHeader header;
    Fields fields;
};

struct RuntimeFields {
    Ticks start, end;
    std::int64_t correlation;
};

struct SynchronizationFields {
    Ticks start, end;
    std::int64_t correlation;
    std::int64_t event_id;
    std::int32_t device, stream;
    std::int64_t sync_type;
};

// What a device event (kernel, memcpy, memset, collective) contains besides its times.
struct DeviceWork {
    std::int64_t correlation = 0;
    std::int64_t bytes = 0;
    NameId name = NameId::none;  // kernel's short name
    int device = 0, stream = 0;
    int copy_kind = 0;               // memcpy: ENUM_CUDA_MEMCPY_OPER
    int src_kind = 0, dst_kind = 2;  // memcpy: ENUM_CUDA_MEM_KIND; memset: dst_kind
};
struct WorkFields {
    Ticks start, end;
    DeviceWork work;
};

using CollectiveWork = traces::schema::CollectiveRow;

struct MemoryWork {
    std::uint64_t address = 0;
    std::int64_t bytes = 0;  // < 0: a free
    int rank = 0;
    int unit = -1, module = -1, stream = -1;
    NameId name = NameId::none;
    traces::schema::MemoryCategory category = traces::schema::MemoryCategory::other;
    traces::schema::MemorySpace space = traces::schema::MemorySpace::device;
    traces::schema::Phase phase = traces::schema::Phase::none;
};
struct MemoryFields {
    Ticks ticks;
    MemoryWork work;
};

struct CounterFields {
    Ticks ticks;
    double value;
    int rank;
    NameId name;
};

struct StepFields {
    Ticks start, end;
    std::int64_t number, rank;
};

}  // namespace shardscope::profiler
