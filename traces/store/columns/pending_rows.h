// What a ColumnSink has collected before take(): columns in the order in which rows arrived, which become
// those of the trace. Internal to the store. Threads, streams, domains and ranks are slots (slots.h);
// correlations are still unresolved. The loader writes here directly, without the row structs of rows.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <memory>
#include <vector>

#include "traces/store/columns/slots.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::store {

// Appends to a column that few traces fill: it stays empty until the first row that has a value.
template <typename Values, typename T = typename Values::value_type>
void put_rare(Values& column, std::size_t row, T value, T none) {
    if (column.empty() && value == none) return;
    column.resize(row, none);
    column.push_back(value);
}
// At the end: fills the rows after the last one that had a value.
template <typename Values, typename T = typename Values::value_type>
void fill_rare(Values& column, std::size_t rows, T none) {
    if (!column.empty()) column.resize(rows, none);
}

// Kernels, memcpys, memsets.
struct PendingDevice {
    std::vector<std::int64_t> start, end, correlation, bytes;
    std::vector<schema::StringId> name;
    std::vector<std::uint32_t> lane;  // slot of `lanes`
    std::vector<DeviceKind> kind;
    std::vector<std::uint8_t> copy_kind;
    std::vector<std::int64_t> external_id;        // rare; the RangeRow::external_id of its operator
    std::vector<float> blocks_per_sm, occupancy;  // rare
    Slots lanes;                                  // process; device and stream
    std::size_t size() const { return start.size(); }

    std::uint32_t lane_of(std::int64_t pid, int device, int on_stream) {
        return lanes.of(pid, std::int64_t{device} << 32 | static_cast<std::uint32_t>(on_stream));
    }
    static int device_of(const SlotKey& key) { return static_cast<int>(key.b >> 32); }
    static int stream_of(const SlotKey& key) { return static_cast<int>(key.b); }
};

struct PendingCalls {
    std::vector<std::int64_t> start, end, correlation;
    std::vector<schema::StringId> name;  // already without its suffix
    std::vector<std::uint32_t> thread;   // slot of PendingRows::threads
    std::size_t size() const { return start.size(); }
};

struct PendingRanges {  // those with an end
    std::vector<std::int64_t> start, end;
    std::vector<schema::StringId> name;
    std::vector<std::int32_t> module;
    std::vector<std::uint32_t> thread;      // slot of PendingRows::threads
    std::vector<std::uint32_t> domain;      // slot of PendingRows::domains
    std::vector<std::int64_t> external_id;  // rare; meaningful in the domains of Kineto's operators only
    std::vector<schema::StringId> detail;   // rare
    std::size_t size() const { return start.size(); }
};

struct PendingMarks {
    std::vector<std::int64_t> time;
    std::vector<schema::StringId> name;
    std::vector<std::uint32_t> thread;
    std::size_t size() const { return time.size(); }
};

// The trace's own columns, which have no ranks yet; `device` comes from the stream (device_streams.h).
struct PendingMemory : MemoryEvents {
    std::vector<std::uint32_t> rank_slot;                   // of PendingRows::memory_ranks
    std::vector<std::int64_t> global_tid, total, reserved;  // rare columns
};

struct PendingRows {
    PendingDevice device;
    PendingCalls runtime;
    PendingRanges ranges;
    PendingMarks marks;
    PendingMemory memory;
    Slots threads;  // serialized ids
    Slots domains;  // (process, number) from a database; (-1, StringId) from other sources
    std::vector<schema::StringId> domain_names;  // by slot, as far as known
    Slots memory_ranks;                          // rank numbers
    std::vector<schema::SynchronizationRow> synchronizations;
    std::vector<schema::CollectiveRow> collectives;
    std::vector<schema::CounterRow> counters;
    std::vector<schema::SampleRow> samples;
    std::vector<schema::StepRow> steps;
    std::vector<schema::LossRow> losses;
    std::vector<schema::RankRow> ranks;
    std::vector<schema::ThreadRow> thread_rows;
    std::vector<schema::StreamRow> streams;
    std::vector<schema::LinkRow> links;
    std::vector<schema::SegmentRow> segments;

    std::int64_t first = std::numeric_limits<std::int64_t>::max();
    std::int64_t last = std::numeric_limits<std::int64_t>::min();
    std::int64_t refused = 0;
    std::int64_t lasting = 0;  // ns, sum over all accepted rows
    std::int64_t moved = 0;    // bytes, sum over the same rows, freed bytes included

    // Values beyond these limits occur in damaged files only; within them no difference and no sum overflows.
    static constexpr std::int64_t kLatest = 4'000'000'000'000'000'000;       // ns, 126 years
    static constexpr std::int64_t kAllTogether = 9'000'000'000'000'000'000;  // ns, over all rows: 285 years
    static constexpr std::int64_t kLargest = std::int64_t{1} << 56;          // bytes
    static constexpr std::int64_t kMovedTogether = std::int64_t{1} << 62;    // bytes, sum over all rows

    // False (and counted) for a row that ends before it starts, or has times that no capture can have; also
    // if the total duration of all rows would become so long that sums could overflow.
    bool accept(std::int64_t start, std::int64_t end) {
        if (end < start || start < -kLatest || end > kLatest || end - start > kAllTogether - lasting)
            return refuse();
        lasting += end - start;
        first = std::min(first, start);
        last = std::max(last, end);
        return true;
    }
    // The same for bytes that were allocated (positive) or freed (negative).
    bool accept_bytes(std::int64_t bytes) {
        if (bytes < -kLargest || bytes > kLargest || std::abs(bytes) > kMovedTogether - moved)
            return refuse();
        moved += std::abs(bytes);
        return true;
    }
    // Copies, fills and collectives cannot move a negative number of bytes.
    bool accept_moved(std::int64_t bytes) { return bytes < 0 ? refuse() : accept_bytes(bytes); }
    bool accept(const schema::CollectiveRow& row) {
        return accept_moved(row.bytes) && accept_moved(row.padding);
    }
    // The same for the times of a row that is kept as it is.
    template <typename Row>
    bool has_possible_times(const Row& row) {
        std::int64_t earliest = -kLatest;
        bool possible = true;
        schema::visit_times(row, [&](std::int64_t time) {
            possible = possible && time >= earliest && time <= kLatest;
            earliest = time;
        });
        return possible || refuse();
    }
    bool refuse() {
        ++refused;
        return false;
    }

    // An allocator's total, -1 if the value is implausible.
    static std::int64_t known_total(std::int64_t bytes) {
        return bytes >= 0 && bytes <= kLargest ? bytes : -1;
    }

    schema::StringId domain_name(std::uint32_t slot) const {
        return slot < domain_names.size() ? domain_names[slot] : schema::StringId::empty;
    }
    void name_domain(std::uint32_t slot, schema::StringId name) {
        if (slot >= domain_names.size()) domain_names.resize(slot + 1, schema::StringId::empty);
        domain_names[slot] = name;
    }

    void add_device(std::int64_t start, std::int64_t end, std::uint32_t lane, std::int64_t correlation,
                    schema::StringId name, DeviceKind kind, std::int64_t bytes = 0,
                    std::uint8_t copy_kind = 0) {
        device.start.push_back(start);
        device.end.push_back(end);
        device.lane.push_back(lane);
        device.correlation.push_back(correlation);
        device.name.push_back(name);
        device.kind.push_back(kind);
        device.bytes.push_back(bytes);
        device.copy_kind.push_back(copy_kind);
    }
    // Adds details to the event that was added last.
    void detail_device(std::int64_t external_id, float blocks_per_sm, float occupancy) {
        const std::size_t row = device.size() - 1;
        put_rare(device.external_id, row, external_id, std::int64_t{0});
        put_rare(device.blocks_per_sm, row, blocks_per_sm, -1.0F);
        put_rare(device.occupancy, row, occupancy, -1.0F);
    }
    void add_call(std::int64_t start, std::int64_t end, std::int64_t global_tid, std::int64_t correlation,
                  schema::StringId name) {
        runtime.start.push_back(start);
        runtime.end.push_back(end);
        runtime.thread.push_back(threads.of(global_tid));
        runtime.correlation.push_back(correlation);
        runtime.name.push_back(name);
    }
    void add_range(std::int64_t start, std::int64_t end, std::int64_t global_tid, schema::StringId name,
                   std::uint32_t domain, std::int32_t module, std::int64_t external_id,
                   schema::StringId detail) {
        const std::size_t row = ranges.size();
        ranges.start.push_back(start);
        ranges.end.push_back(end);
        ranges.thread.push_back(threads.of(global_tid));
        ranges.name.push_back(name);
        ranges.domain.push_back(domain);
        ranges.module.push_back(module);
        put_rare(ranges.external_id, row, external_id, std::int64_t{0});
        put_rare(ranges.detail, row, detail, schema::StringId::empty);
    }
    void add_mark(std::int64_t time, std::int64_t global_tid, schema::StringId name) {
        marks.time.push_back(time);
        marks.thread.push_back(threads.of(global_tid));
        marks.name.push_back(name);
    }
};

// Sorts and links `rows` and fills the columns of `trace`, which already contains the strings.
void build_columns(PendingRows&& rows, Trace& trace);
// Puts into order what it keeps as rows; the end of build_columns().
void put_kept_in_order(Trace& trace);

}  // namespace shardscope::traces::store
