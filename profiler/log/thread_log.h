// One thread's event log: the hot path of the recorder. Only the owning thread calls these members. They are
// inline: a time stamp, the stores of a record (record.h), and one store that publishes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "profiler/base/clock.h"
#include "profiler/log/log_writer.h"
#include "profiler/log/work_records.h"

namespace shardscope::profiler {

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
        write_range(RecordKind::push, name, domain, depth_++, module);
    }
    void mark(NameId name) { write_range(RecordKind::mark, name, NameId::none, depth_, -1); }

    // Call it before push(): the payload of that range, as bytes in the layout of a schema
    // (traces::schema::PayloadSchemaRow::id).
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
        const Ticks now = writer_.now();
        const std::uint32_t depth = --depth_;
        auto* r = writer_.begin<PopRecord>(RecordKind::pop, 0, sizeof(PopRecord), depth);
        if (r == nullptr) return;
        r->ticks = now;
        r->domain = 0;
        r->depth = depth;
        writer_.publish();
    }

    // Events with both times known.
    void runtime(NameId name, Ticks start, Ticks end, std::int64_t correlation) {
        write(RecordKind::runtime, RuntimeFields{start, end, correlation}, name);
    }
    void synchronization(Ticks start, Ticks end, int device, int stream, int sync_type, std::int64_t event_id,
                         std::int64_t correlation) {
        write(RecordKind::synchronization,
              SynchronizationFields{start, end, correlation, event_id, device, stream, sync_type});
    }
    void kernel(Ticks start, Ticks end, const DeviceWork& work) {
        write(RecordKind::kernel, WorkFields{start, end, work});
    }
    void memcpy(Ticks start, Ticks end, const DeviceWork& work) {
        write(RecordKind::memcpy, WorkFields{start, end, work});
    }
    void memset(Ticks start, Ticks end, const DeviceWork& work) {
        write(RecordKind::memset, WorkFields{start, end, work});
    }
    void step(int rank, std::int64_t number, Ticks start, Ticks end) {
        write(RecordKind::step, StepFields{start, end, number, rank});
    }

    // Joins its kernel() by correlation.
    void collective(const CollectiveWork& work) { write(RecordKind::collective, work); }

    // Stamped with the current time.
    void memory(const MemoryWork& work) { write(RecordKind::memory, MemoryFields{writer_.now(), work}); }
    void counter(int rank, NameId name, double value) {
        write(RecordKind::counter, CounterFields{writer_.now(), value, rank, name});
    }

    // Events lost for lack of space. Any thread.
    std::uint64_t dropped() const { return writer_.dropped(); }

  private:
    static std::uint32_t id(NameId name) { return static_cast<std::uint32_t>(name); }

    [[gnu::always_inline]] void write_range(RecordKind kind, NameId name, NameId domain, std::uint32_t depth,
                                            int module) {
        auto* r = writer_.begin<PlainRangeRecord>(kind, id(name));
        if (r == nullptr) return;
        r->domain = id(domain);
        r->depth = depth;
        r->module = module;
        r->color = 0;
        r->ticks = writer_.now();
        writer_.publish();
    }

    // Inline, so that the fields go from the caller's registers into the log.
    template <typename Fields>
    [[gnu::always_inline]] void write(RecordKind kind, const Fields& fields, NameId name = NameId::none) {
        auto* r = writer_.begin<RecordOf<Fields>>(kind, id(name));
        if (r == nullptr) return;
        r->fields = fields;
        writer_.publish();
    }

    LogWriter writer_;
    std::uint32_t depth_ = 0;  // open ranges
};

}  // namespace shardscope::profiler
