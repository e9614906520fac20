// Collects rows; the work of sorting and linking them is in build_columns.cpp.
#include "traces/store/column_sink.h"

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <utility>

#include "traces/store/names.h"
#include "traces/store/pending_rows.h"

namespace shardscope::traces {

namespace {

// Values beyond these come from damaged files only; within them no difference or sum of sizes overflows.
constexpr std::int64_t kLatest = 4'000'000'000'000'000'000;  // ns, 126 years
constexpr std::int64_t kLargest = std::int64_t{1} << 56;     // bytes

bool is_size(std::int64_t bytes) {
    return bytes >= 0 && bytes <= kLargest;
}

}  // namespace

struct ColumnSink::Impl {
    std::unique_ptr<Trace> trace = std::make_unique<Trace>();
    PendingRows rows;
    std::unordered_map<StringId, StringId> api_names;       // with -> without the version suffix
    std::unordered_map<StringId, DeviceKind> kernel_kinds;  // by short name
    std::int64_t first = std::numeric_limits<std::int64_t>::max();
    std::int64_t last = std::numeric_limits<std::int64_t>::min();

    bool refuse() {
        ++trace->invalid_events;
        return false;
    }

    // False (and counted) for a row that ends before it starts, or at times that no capture has.
    bool accept(std::int64_t start, std::int64_t end) {
        if (end < start || start < -kLatest || end > kLatest) return refuse();
        first = std::min(first, start);
        last = std::max(last, end);
        return true;
    }

    StringId api_name(StringId name) {
        if (const auto it = api_names.find(name); it != api_names.end()) return it->second;
        const std::string_view text = trace->strings[name];
        const std::string_view plain = without_version_suffix(text);
        const StringId id = plain.size() == text.size() ? name : trace->strings.intern(plain);
        api_names.emplace(name, id);
        return id;
    }

    DeviceKind kernel_kind(StringId name) {
        if (const auto it = kernel_kinds.find(name); it != kernel_kinds.end()) return it->second;
        const auto kind =
            is_communication_kernel(trace->strings[name]) ? DeviceKind::communication : DeviceKind::kernel;
        kernel_kinds.emplace(name, kind);
        return kind;
    }
};

ColumnSink::ColumnSink() : impl_(std::make_unique<Impl>()) {}
ColumnSink::~ColumnSink() = default;

StringId ColumnSink::intern(std::string_view text) {
    return impl_->trace->strings.intern(text);
}
std::string_view ColumnSink::text(StringId id) const {
    return impl_->trace->strings[id];
}

void ColumnSink::add(const KernelRow& row) {
    if (!impl_->accept(row.start, row.end)) return;
    const StringId name = row.short_name != StringId::empty ? row.short_name : row.demangled_name;
    impl_->rows.device.push_back({.start = row.start,
                                  .end = row.end,
                                  .correlation = row.correlation,
                                  .global_pid = row.global_pid,
                                  .name = name,
                                  .device = row.device,
                                  .stream = row.stream,
                                  .kind = impl_->kernel_kind(name),
                                  .external_id = row.external_id,
                                  .blocks_per_sm = row.blocks_per_sm,
                                  .occupancy = row.occupancy});
}

void ColumnSink::add(const MemcpyRow& row) {
    if (!impl_->accept(row.start, row.end)) return;
    const bool known = row.copy_kind >= 0 && row.copy_kind <= std::numeric_limits<std::uint8_t>::max();
    impl_->rows.device.push_back({.start = row.start,
                                  .end = row.end,
                                  .correlation = row.correlation,
                                  .global_pid = row.global_pid,
                                  .bytes = row.bytes,
                                  .name = intern(memcpy_name(row.copy_kind)),
                                  .device = row.device,
                                  .stream = row.stream,
                                  .kind = DeviceKind::memcpy,
                                  .copy_kind = static_cast<std::uint8_t>(known ? row.copy_kind : 0),
                                  .external_id = row.external_id});
}

void ColumnSink::add(const MemsetRow& row) {
    if (!impl_->accept(row.start, row.end)) return;
    impl_->rows.device.push_back({.start = row.start,
                                  .end = row.end,
                                  .correlation = row.correlation,
                                  .global_pid = row.global_pid,
                                  .bytes = row.bytes,
                                  .name = intern("Memset"),
                                  .device = row.device,
                                  .stream = row.stream,
                                  .kind = DeviceKind::memset,
                                  .external_id = row.external_id});
}

void ColumnSink::add(const RuntimeRow& row) {
    if (!impl_->accept(row.start, row.end)) return;
    impl_->rows.runtime.push_back(row);
    impl_->rows.runtime.back().name = impl_->api_name(row.name);
}

void ColumnSink::add(const SynchronizationRow& row) {
    if (impl_->accept(row.start, row.end)) impl_->rows.synchronizations.push_back(row);
}

void ColumnSink::add(const RangeRow& row) {
    if (!impl_->accept(row.start, row.end.value_or(row.start))) return;
    if (row.end) {
        impl_->rows.ranges.push_back(row);
    } else if (row.event_type == kNvtxMark) {
        impl_->rows.marks.push_back(row);
    }
}

void ColumnSink::add(const CollectiveRow& row) {
    impl_->rows.collectives.push_back(row);
}

void ColumnSink::add(const MemoryRow& row) {
    if (row.bytes < -kLargest || row.bytes > kLargest) {
        impl_->refuse();
    } else if (impl_->accept(row.time, row.time)) {
        impl_->rows.memory.push_back(row);
    }
}

void ColumnSink::add(const CounterRow& row) {
    if (impl_->accept(row.time, row.time)) impl_->rows.counters.push_back(row);
}

void ColumnSink::add(const StepRow& row) {
    if (impl_->accept(row.start, row.end)) impl_->rows.steps.push_back(row);
}

void ColumnSink::add(const LinkRow& row) {
    impl_->rows.links.push_back(row);
}

void ColumnSink::add(const SegmentRow& row) {
    if (row.bytes < -kLargest || row.bytes > kLargest) {
        impl_->refuse();
    } else if (impl_->accept(row.time, row.time)) {
        impl_->rows.segments.push_back(row);
    }
}

void ColumnSink::add(const FlightRow& row) {
    if (impl_->accept(row.created, row.completed.value_or(row.created))) impl_->rows.flight.push_back(row);
}

void ColumnSink::add(const LossRow& row) {
    impl_->rows.losses.push_back(row);
}
void ColumnSink::add(const RunInfoRow& row) {
    impl_->trace->config.emplace_back(row.key, row.value);
}
void ColumnSink::add(const RankRow& row) {
    impl_->rows.ranks.push_back(row);
}
void ColumnSink::add(const ProcessRow&) {}  // a trace in memory knows processes by their ranks and threads
void ColumnSink::add(const ThreadRow& row) {
    impl_->rows.threads.push_back(row);
}
void ColumnSink::add(const StreamRow& row) {
    impl_->rows.streams.push_back(row);
}
void ColumnSink::add(const ModuleRow& row) {
    impl_->trace->modules.push_back(row);
}
void ColumnSink::add(const UnitRow& row) {
    impl_->trace->units.push_back(row);
}
void ColumnSink::add(const PredictionRow& row) {
    if (!is_size(row.peak_bytes) || !std::all_of(std::begin(row.at_peak), std::end(row.at_peak), is_size)) {
        impl_->refuse();
    } else {
        impl_->trace->predictions.push_back(row);
    }
}
void ColumnSink::add(const PredictionPartRow& row) {
    if (!is_size(row.bytes)) {
        impl_->refuse();
    } else {
        impl_->trace->prediction_parts.push_back(row);
    }
}
void ColumnSink::add(const DiagnosticRow& row) {
    impl_->trace->diagnostics.push_back(row);
}

void ColumnSink::set_path(std::string path) {
    impl_->trace->path = std::move(path);
}
void ColumnSink::set_schema_version(int version) {
    impl_->trace->schema_version = version;
}
void ColumnSink::set_start_utc_ns(std::int64_t ns) {
    impl_->trace->start_utc_ns = ns;
}
void ColumnSink::set_ended(bool ended) {
    impl_->trace->ended = ended;
}
void ColumnSink::set_dropped(std::int64_t events) {
    impl_->trace->dropped = events;
}

std::unique_ptr<Trace> ColumnSink::take() {
    auto done = std::exchange(impl_, std::make_unique<Impl>());
    if (done->first <= done->last) {
        done->trace->first_ns = done->first;
        done->trace->last_ns = done->last;
    }
    build_columns(std::move(done->rows), *done->trace);
    return std::move(done->trace);
}

}  // namespace shardscope::traces
