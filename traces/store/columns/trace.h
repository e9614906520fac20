// A trace in memory: columns (structure of arrays), loaded once and then read by analyses and the viewer.
// Plain data. All times are nanoseconds since the start of the capture; device events and ranges are sorted
// by start. `rank` columns of 16 bits hold rank indexes (index.h).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "traces/schema/enums.h"
#include "traces/schema/rows.h"
#include "traces/store/columns/column.h"
#include "traces/store/columns/index.h"
#include "traces/store/columns/index_column.h"
#include "traces/store/trace_identity.h"

namespace shardscope::traces::store {

class StringTable {
  public:
    StringTable() { intern(""); }
    StringTable(StringTable&&) = default;
    StringTable& operator=(StringTable&&) = default;
    StringTable(const StringTable&) = delete;
    StringTable& operator=(const StringTable&) = delete;

    schema::StringId intern(std::string_view text) {
        if (auto it = ids_.find(text); it != ids_.end()) return it->second;
        const auto id = static_cast<schema::StringId>(texts_.size());
        texts_.emplace_back(text);
        ids_.emplace(texts_.back(), id);
        return id;
    }
    std::string_view operator[](schema::StringId id) const { return texts_[static_cast<std::size_t>(id)]; }
    std::optional<schema::StringId> find(std::string_view text) const {
        auto it = ids_.find(text);
        return it == ids_.end() ? std::nullopt : std::optional(it->second);
    }
    std::size_t size() const { return texts_.size(); }

  private:
    std::deque<std::string> texts_;  // a deque never moves its strings, so the map's views stay valid
    std::unordered_map<std::string_view, schema::StringId> ids_;
};

// docs/definitions: communication takes precedence over the table that an event came from.
enum class DeviceKind : std::uint8_t { kernel = 0, memcpy = 1, memset = 2, communication = 3 };
inline constexpr int kDeviceKinds = 4;
inline constexpr std::array<std::string_view, kDeviceKinds> kDeviceKindNames = {"Kernel", "Memcpy", "Memset",
                                                                                "Communication"};

// Kernels, memcpys, memsets of all devices, in one set of columns sorted by (start, end, order in the file).
struct DeviceEvents {
    Column<std::int64_t> start, end;
    Column<std::int64_t> correlation;  // of the launch; 0 none
    Column<std::int64_t> bytes;        // memcpy, memset and collectives; 0 otherwise
    Column<schema::StringId> name;     // a kernel's (name_facts.h), or "Memcpy HtoD", "Memset"
    IndexColumn launch;                // index into RuntimeCalls, -1 none
    IndexColumn collective;            // index into Collectives, -1 none
    Column<std::uint16_t> rank;
    Column<std::uint16_t> stream;  // index into Trace::streams
    Column<DeviceKind> kind;
    Column<std::uint8_t> copy_kind;  // ENUM_CUDA_MEMCPY_OPER for memcpys, else 0
    // The host range that launched it: the innermost one around the launching call or, if no call is
    // known, the operator that the source names. -1 none.
    IndexColumn range;
    // Empty if no event of the trace has them; negative: unknown for this one.
    Column<float> blocks_per_sm, occupancy;  // occupancy in percent
    std::size_t size() const { return start.size(); }
};

// The kind of a host range, decided once when it is loaded (docs/definitions: kinds of event).
enum class RangeKind : std::uint8_t {
    annotation = 0,  // any other range: counts as CPU Exec
    module = 1,      // "nn.Module: Class_n"
    backward = 2,    // the backward of a module: ours, linked by RangeRow::module
    step = 3,        // "ProfilerStep#N"
    data_loader = 4,
    communication = 5,  // ranges of the NCCL domain
    function = 6,       // frames of the host program (Python functions)
    operation = 7,      // an operator: Kineto's cpu_op, "aten::mm"; counts as CPU Exec
};

// NVTX ranges with an end, sorted by (start, longer first).
struct HostRanges {
    Column<std::int64_t> start, end;
    Column<schema::StringId> name;
    Column<std::int32_t> module;   // ModuleRow::id, -1 unknown
    Column<std::int32_t> parent;   // index of the innermost enclosing range of the thread, -1 none
    Column<std::uint16_t> thread;  // index into Trace::threads
    Column<std::uint16_t> depth;   // nesting on the thread, 0 outermost
    Column<RangeKind> kind;
    // Empty if no range of the trace has them.
    Column<schema::StringId> detail;  // RangeRow::detail
    Column<std::int32_t> forward;     // of a backward operator: the forward operator's row, -1 none
    std::size_t size() const { return start.size(); }
};

// NVTX marks, sorted by time.
struct Marks {
    Column<std::int64_t> time;
    Column<schema::StringId> name;
    Column<std::uint16_t> thread;  // index into Trace::threads
    std::size_t size() const { return time.size(); }
};

// Where threads were when a profiler looked at them, sorted by time. The fields are SampleRow's.
struct Samples {
    Column<std::int64_t> time;
    Column<std::int64_t> weight;  // at least 0
    Column<schema::StringId> event, stack;
    Column<std::int32_t> cpu;
    Column<std::uint16_t> thread;  // index into Trace::threads
    std::size_t size() const { return time.size(); }
};

struct RuntimeCalls {
    Column<std::int64_t> start, end;
    Column<std::int64_t> correlation;
    Column<schema::StringId> name;  // without CUDA's version suffix: "cudaLaunchKernel"
    Column<std::uint16_t> thread;
    Column<std::int32_t> range;  // the innermost HostRanges row around the call's start, -1 none
    std::size_t size() const { return start.size(); }
};

// Waiting for events, streams and devices, sorted by (start, end).
struct Synchronizations {
    Column<std::int64_t> start, end;
    Column<std::int32_t> call;    // index into RuntimeCalls, -1 none
    Column<std::int32_t> stream;  // index into Trace::streams, -1 not applicable or not known
    Column<std::uint16_t> rank;
    Column<std::uint8_t> type;  // ENUM_CUPTI_SYNC_TYPE
    std::size_t size() const { return start.size(); }
};

struct Collectives {
    Column<std::int64_t> correlation, bytes, padding, group, sequence;
    Column<std::int32_t> group_size, unit, event;  // event: index into DeviceEvents, -1 none
    Column<std::uint16_t> rank;
    Column<schema::Operation> operation;
    Column<schema::Phase> phase;
    std::size_t size() const { return bytes.size(); }
};

// Allocations and frees, sorted by (time, order in the file).
struct MemoryEvents {
    Column<std::int64_t> time;
    Column<std::int64_t> bytes;  // > 0 allocation, < 0 free
    Column<std::uint64_t> address;
    Column<std::int32_t> unit, module;  // -1 none
    Column<schema::StringId> name;
    Column<std::uint16_t> rank;
    Column<schema::MemoryCategory> category;
    Column<schema::MemorySpace> space;
    Column<schema::Phase> phase;
    // Empty if no event of the trace has them.
    Column<schema::StringId> annotation, stack;  // as in MemoryRow
    // The index of the device among the rank's; empty: the events of each rank belong to one device.
    Column<std::uint16_t> device;
    Column<std::int32_t> stream;  // as in MemoryRow; empty if no event of the trace has one
    std::size_t size() const { return time.size(); }
};

// Memory that the caching allocator reserves, sorted by time: > 0 taken from the device, < 0 returned to it.
struct Segments {
    Column<std::int64_t> time, bytes;
    Column<std::uint64_t> address;
    Column<std::int32_t> stream;  // the id, -1 unknown
    Column<std::uint16_t> rank;
    std::size_t size() const { return time.size(); }
};

// In the column of a counter whose process is not a rank.
inline constexpr std::uint16_t kNoRank = RankIndex().column();

struct Counters {
    Column<std::int64_t> time;
    Column<double> value;
    Column<schema::StringId> name;
    Column<std::uint16_t> rank;     // or kNoRank
    Column<schema::StringId> host;  // as in CounterRow
    Column<std::int32_t> device;
    std::size_t size() const { return time.size(); }
};

struct Step {
    RankIndex rank{0};
    std::int64_t number = 0;
    std::int64_t start = 0, end = 0;
    std::optional<double> loss;
};

struct Rank {
    int number = 0;
    int device = 0;
    std::int64_t global_pid = 0, global_tid = 0;
    std::string host, device_name;
    std::int64_t device_memory = 0;                     // the device's total memory in bytes; 0 unknown
    std::array<int, schema::kMeshAxes.size()> place{};  // in the mesh, by axis
    int local_rank = -1;                                // -1 unknown
    std::string cpus;                                   // as in RankRow
};

struct HostThread {
    std::int64_t global_tid = 0;
    std::string name;
    RankIndex rank;
};

struct DeviceStream {
    RankIndex rank{0};
    int id = 0;
    std::string name;
};

// Whether a trace keeps the rows of a kind as they are (rows.h).
template <typename Row>
concept KeptRow = requires {
    typename Row::Kept;
};

template <typename Row>
struct KeptOf {};
template <KeptRow Row>
struct KeptOf<Row> : Row::Kept {};

// The vectors of all kept kinds, under the names that the structs give them; in order().
template <typename Rows>
struct KeptRows;
template <typename... Rows>
struct KeptRows<std::variant<Rows...>> : KeptOf<Rows>... {
    template <KeptRow Row>
    std::vector<Row>& kept() {
        auto& [rows] = static_cast<typename Row::Kept&>(*this);
        return rows;
    }
    template <KeptRow Row>
    const std::vector<Row>& kept() const {
        const auto& [rows] = static_cast<const typename Row::Kept&>(*this);
        return rows;
    }
    // Calls `visit` with a null pointer to a row of each kind.
    template <typename Visit>
    static void each_kind(const Visit& visit) {
        const auto visit_kept = [&visit]([[maybe_unused]] auto* none) {
            if constexpr (KeptRow<std::remove_pointer_t<decltype(none)>>) visit(none);
        };
        (visit_kept(static_cast<Rows*>(nullptr)), ...);
    }
};

class ColumnFile;

struct Trace : KeptRows<schema::AnyRow> {
    std::string path;
    std::optional<TraceIdentity> identity;  // of the database that was read, if it was alone and at rest
    std::shared_ptr<const ColumnFile>
        beside;              // the file that has its columns; nullptr: they were read from rows
    int schema_version = 0;  // PRAGMA user_version; 0: not written by Shardscope
    bool ended = true;       // false: the run was killed or still runs
    std::int64_t dropped = 0;
    std::int64_t start_utc_ns = 0;
    std::int64_t start_system_ns = 0;        // CLOCK_MONOTONIC at that moment; 0 unknown
    std::int64_t first_ns = 0, last_ns = 0;  // extent of all events
    std::int64_t invalid_events = 0;         // rows with end < start, omitted

    StringTable strings;
    std::vector<std::pair<std::string, std::string>> config;  // SHARD_RUN in file order
    std::vector<Rank> ranks;                                  // sorted by number
    std::vector<HostThread> threads;
    std::vector<DeviceStream> streams;
    std::vector<Step> steps;  // sorted by (rank, start)
    std::vector<schema::ModuleRow> modules;
    std::vector<schema::UnitRow> units;  // sorted by id
    std::vector<schema::PredictionRow> predictions;
    std::vector<schema::PredictionPartRow> prediction_parts;  // none in traces of schema 1
    std::vector<schema::DiagnosticRow> diagnostics;

    DeviceEvents device;
    HostRanges ranges;
    Marks marks;
    Samples samples;
    RuntimeCalls runtime;
    Synchronizations synchronizations;
    Collectives collectives;
    MemoryEvents memory;
    Segments segments;
    Counters counters;

    // The number that the viewer gives as the trace's.
    std::size_t events() const { return device.size() + ranges.size() + runtime.size() + memory.size(); }
    // Not known() if the trace does not contain the rank.
    RankIndex rank_of_number(int number) const {
        for (std::size_t r = 0; r < ranks.size(); ++r)
            if (ranks[r].number == number) return RankIndex(r);
        return {};
    }
    // Not known() if no unit has the id (UnitRow::id).
    UnitIndex unit_of_id(std::int64_t id) const {
        const auto at = std::partition_point(units.begin(), units.end(),
                                             [id](const schema::UnitRow& unit) { return unit.id < id; });
        return at != units.end() && at->id == id ? UnitIndex(at - units.begin()) : UnitIndex();
    }
    // The value of a configuration key, or "" if the run has none.
    std::string_view config_value(std::string_view key) const {
        for (const auto& [k, v] : config) {
            if (k == key) return v;
        }
        return {};
    }
};

}  // namespace shardscope::traces::store
