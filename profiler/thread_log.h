// One thread's event buffer: the hot path of the recorder. Only the owning thread calls these members.
#pragma once

#include <atomic>
#include <cstdint>

#include "profiler/clock.h"
#include "traces/schema/enums.h"

namespace shardscope::profiler {

// A name known to the recorder; 0 is the empty name.
enum class NameId : std::uint32_t { none = 0 };

// What a device event (kernel, memcpy, memset, collective) tells beside its times.
struct DeviceWork {
    NameId name = NameId::none;  // kernel's short name
    int device = 0, stream = 0;
    std::int64_t correlation = 0;
    std::int64_t bytes = 0;
    int copy_kind = 0;                // memcpy: ENUM_CUDA_MEMCPY_OPER
    int src_kind = 0, dst_kind = 2;   // memcpy: ENUM_CUDA_MEM_KIND; memset: dst_kind
};

struct CollectiveWork {
    int rank = 0;
    std::int64_t correlation = 0;
    traces::Operation operation = traces::Operation::other;
    std::int64_t bytes = 0, padding = 0;
    std::int64_t group = 0;
    int group_size = 0;
    std::int64_t sequence = 0;
    int unit = -1;
    traces::Phase phase = traces::Phase::none;
};

struct MemoryWork {
    int rank = 0;
    std::uint64_t address = 0;
    std::int64_t bytes = 0;  // < 0: a free
    traces::MemoryCategory category = traces::MemoryCategory::other;
    traces::MemorySpace space = traces::MemorySpace::device;
    traces::Phase phase = traces::Phase::none;
    int unit = -1, module = -1, stream = -1;
    NameId name = NameId::none;
};

class ThreadLog {
  public:
    virtual ~ThreadLog() = default;

    // Ranges nest per thread: pop() closes the latest push(). `module` is a ModuleRow::id, -1 for none.
    void push(NameId name, int module = -1, NameId domain = NameId::none);
    void pop();
    void mark(NameId name);

    // Events with both times known: raw ticks from ticks().
    void runtime(NameId name, std::uint64_t start, std::uint64_t end, std::int64_t correlation);
    void synchronization(std::uint64_t start, std::uint64_t end, int device, int stream, int sync_type,
                         std::int64_t event_id, std::int64_t correlation);
    void kernel(std::uint64_t start, std::uint64_t end, const DeviceWork& work);
    void memcpy(std::uint64_t start, std::uint64_t end, const DeviceWork& work);
    void memset(std::uint64_t start, std::uint64_t end, const DeviceWork& work);
    void collective(const CollectiveWork& work);  // joins its kernel() by correlation
    void memory(const MemoryWork& work);          // stamped now
    void counter(int rank, NameId name, double value);
    void step(int rank, std::int64_t number, std::uint64_t start, std::uint64_t end);
};

}  // namespace shardscope::profiler
