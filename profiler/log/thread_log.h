// One thread's event log: the hot path of the recorder. Only the owning thread calls these members. They are
// inline: a time stamp, the stores of a record (record.h), and one store that publishes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "profiler/base/clock.h"
#include "profiler/log/log_writer.h"
#include "traces/schema/enums.h"

namespace shardscope::profiler {

// A name known to the recorder; 0 is the empty name.
enum class NameId : std::uint32_t { none = 0 };

// What a device event (kernel, memcpy, memset, collective) contains besides its times.
struct DeviceWork {
    NameId name = NameId::none;  // kernel's short name
    int device = 0, stream = 0;
    std::int64_t correlation = 0;
    std::int64_t bytes = 0;
    int copy_kind = 0;               // memcpy: ENUM_CUDA_MEMCPY_OPER
    int src_kind = 0, dst_kind = 2;  // memcpy: ENUM_CUDA_MEM_KIND; memset: dst_kind
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
    // Made by Recorder::attach_thread, on the thread that is going to use it.
    ThreadLog(ChunkArena* arena, std::uint32_t log, std::uint32_t tid) {
        writer_.init(arena, log, tid, clock_source());
    }
    ThreadLog(const ThreadLog&) = delete;
    ThreadLog& operator=(const ThreadLog&) = delete;

    // Ranges nest per thread: pop() closes the latest push(). `module` is a ModuleRow::id, -1 for none.
    void push(NameId name, int module = -1, NameId domain = NameId::none) {
        const std::uint32_t depth = depth_++;
        auto* r = writer_.begin<PlainRangeRecord>(RecordKind::push, id(name));
        if (r == nullptr) return;
        r->domain = id(domain);
        r->depth = depth;
        r->module = module;
        r->color = 0;
        r->ticks = writer_.now();
        writer_.publish();
    }

    // For use before a push(): the range's payload, bytes in the layout of a schema
    // (traces::PayloadSchemaRow::id).
    void payload(std::uint64_t schema, const void* bytes, std::size_t size) {
        const std::size_t padded = (size + 7) / 8 * 8;
        auto* r = writer_.begin<PayloadRecord>(RecordKind::payload, 0, sizeof(PayloadRecord) + padded);
        if (r == nullptr) return;
        r->schema = schema;
        r->size = size;
        std::memcpy(r + 1, bytes, size);
        writer_.publish();
    }

    // Does nothing without an open range.
    void pop() {
        if (depth_ == 0) return;
        const std::uint64_t now = writer_.now();
        const std::uint32_t depth = --depth_;
        auto* r = writer_.begin<PopRecord>(RecordKind::pop, 0, sizeof(PopRecord), depth);
        if (r == nullptr) return;
        r->ticks = now;
        r->domain = 0;
        r->depth = depth;
        writer_.publish();
    }

    void mark(NameId name) {
        auto* r = writer_.begin<PlainRangeRecord>(RecordKind::mark, id(name));
        if (r == nullptr) return;
        r->domain = 0;
        r->depth = depth_;
        r->module = -1;
        r->color = 0;
        r->ticks = writer_.now();
        writer_.publish();
    }

    // Events with both times known: raw ticks from ticks().
    void runtime(NameId name, std::uint64_t start, std::uint64_t end, std::int64_t correlation) {
        auto* r = writer_.begin<RuntimeRecord>(RecordKind::runtime, id(name));
        if (r == nullptr) return;
        r->start = start;
        r->end = end;
        r->correlation = correlation;
        writer_.publish();
    }

    void synchronization(std::uint64_t start, std::uint64_t end, int device, int stream, int sync_type,
                         std::int64_t event_id, std::int64_t correlation) {
        auto* r = writer_.begin<SynchronizationRecord>(RecordKind::synchronization, 0);
        if (r == nullptr) return;
        r->start = start;
        r->end = end;
        r->correlation = correlation;
        r->event_id = event_id;
        r->device = device;
        r->stream = stream;
        r->sync_type = sync_type;
        writer_.publish();
    }

    void kernel(std::uint64_t start, std::uint64_t end, const DeviceWork& work) {
        device_work(RecordKind::kernel, start, end, work);
    }
    void memcpy(std::uint64_t start, std::uint64_t end, const DeviceWork& work) {
        device_work(RecordKind::memcpy, start, end, work);
    }
    void memset(std::uint64_t start, std::uint64_t end, const DeviceWork& work) {
        device_work(RecordKind::memset, start, end, work);
    }

    // Joins its kernel() by correlation.
    void collective(const CollectiveWork& work) {
        auto* r = writer_.begin<CollectiveRecord>(RecordKind::collective, 0);
        if (r == nullptr) return;
        r->correlation = work.correlation;
        r->bytes = work.bytes;
        r->padding = work.padding;
        r->group = work.group;
        r->sequence = work.sequence;
        r->rank = work.rank;
        r->group_size = work.group_size;
        r->unit = work.unit;
        r->operation = static_cast<std::uint8_t>(work.operation);
        r->phase = static_cast<std::uint8_t>(work.phase);
        writer_.publish();
    }

    // Stamped now.
    void memory(const MemoryWork& work) {
        auto* r = writer_.begin<MemoryRecord>(RecordKind::memory, id(work.name));
        if (r == nullptr) return;
        r->address = work.address;
        r->bytes = work.bytes;
        r->rank = work.rank;
        r->unit = work.unit;
        r->module = work.module;
        r->stream = work.stream;
        r->category = static_cast<std::uint8_t>(work.category);
        r->space = static_cast<std::uint8_t>(work.space);
        r->phase = static_cast<std::uint8_t>(work.phase);
        r->ticks = writer_.now();
        writer_.publish();
    }

    void counter(int rank, NameId name, double value) {
        auto* r = writer_.begin<CounterRecord>(RecordKind::counter, id(name));
        if (r == nullptr) return;
        r->value = value;
        r->rank = rank;
        r->ticks = writer_.now();
        writer_.publish();
    }

    void step(int rank, std::int64_t number, std::uint64_t start, std::uint64_t end) {
        auto* r = writer_.begin<StepRecord>(RecordKind::step, 0);
        if (r == nullptr) return;
        r->start = start;
        r->end = end;
        r->number = number;
        r->rank = rank;
        writer_.publish();
    }

    // Events lost for lack of space. Any thread.
    std::uint64_t dropped() const { return writer_.dropped(); }

  private:
    static std::uint32_t id(NameId name) { return static_cast<std::uint32_t>(name); }

    void device_work(RecordKind kind, std::uint64_t start, std::uint64_t end, const DeviceWork& work) {
        auto* r = writer_.begin<WorkRecord>(kind, id(work.name));
        if (r == nullptr) return;
        r->start = start;
        r->end = end;
        r->correlation = work.correlation;
        r->bytes = work.bytes;
        r->device = work.device;
        r->stream = work.stream;
        r->copy_kind = work.copy_kind;
        r->src_kind = static_cast<std::int16_t>(work.src_kind);
        r->dst_kind = static_cast<std::int16_t>(work.dst_kind);
        writer_.publish();
    }

    LogWriter writer_;
    std::uint32_t depth_ = 0;  // open ranges
};

}  // namespace shardscope::profiler
