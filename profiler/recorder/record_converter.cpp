// Records to rows. Everything read from a chunk is copied out and checked before it is used.
#include "profiler/recorder/record_converter.h"

#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>

#include "profiler/recorder/record_reading.h"

namespace shardscope::profiler {
namespace {

// Larger ids can only come from a damaged file.
constexpr std::uint32_t kMostNames = 1u << 24;

// Whether a record's value of an enum is one of the enum's values.
template <typename Enum>
bool is_known(Enum value) {
    return static_cast<int>(value) < size_of(value);
}

}  // namespace

RecordConverter::RecordConverter(traces::store::EventSink& sink, const Calibration& clock,
                                 MonotonicTime origin, std::int64_t pid)
    : sink_(sink), clock_(clock), origin_(origin), pid_(pid), names_(1, traces::schema::StringId::empty) {}

void RecordConverter::add_handler(RecordKind first, RecordKind last, std::unique_ptr<RecordHandler> handler) {
    handlers_.push_back({first, last, std::move(handler)});
}

void RecordConverter::define_name(std::uint32_t id, std::string_view text) {
    if (id >= kMostNames) {
        ++damaged_;
        return;
    }
    if (id >= names_.size()) {
        names_.resize(id + 1, traces::schema::StringId::empty);
        texts_.resize(id + 1);
    }
    names_[id] = sink_.intern(text);
    texts_[id] = text;
}

traces::schema::StringId RecordConverter::name(std::uint32_t id) const {
    return id < names_.size() ? names_[id] : traces::schema::StringId::empty;
}

std::string RecordConverter::text(std::uint64_t id) const {
    return id < texts_.size() ? texts_[id] : std::string();
}

void RecordConverter::convert(std::uint32_t log, std::uint32_t tid, std::span<const std::byte> records) {
    if (log != 0) threads_.try_emplace(tid);
    for (std::size_t at = 0; at < records.size();) {
        const auto header = read_record<RecordHeader>(records.data() + at, records.size() - at);
        const std::size_t size = header ? header->bytes : 0;
        if (size < sizeof(RecordHeader) || size % 8 != 0 || size > records.size() - at ||
            !convert_any(log, tid, header->kind, records.data() + at, size)) {
            ++damaged_;
            return;
        }
        at += size;
    }
}

bool RecordConverter::convert_any(std::uint32_t log, std::uint32_t tid, RecordKind kind,
                                  const std::byte* bytes, std::size_t size) {
    if (kind == RecordKind::payload) return convert_payload(log, bytes, size);
    if (kind < RecordKind::cuda_first) {
        const bool understood = convert_one(log, traces::schema::global_tid(pid_, tid), bytes, size);
        if (!payloads_.empty()) payloads_.erase(log);  // they belong to a lost event
        return understood;
    }
    for (const Handled& handled : handlers_) {
        if (kind >= handled.first && kind <= handled.last) {
            return handled.handler->convert(*this, tid, kind, bytes, size);
        }
    }
    return false;
}

// A row with the fields that all rows of device work have.
template <typename Row, typename Times, typename Work>
Row RecordConverter::device_row(const Times& times, const Work& work) const {
    Row row;
    row.start = to_trace_ns(times.start);
    row.end = to_trace_ns(times.end);
    row.device = work.device;
    row.stream = work.stream;
    row.correlation = work.correlation;
    row.global_pid = traces::schema::global_pid(pid_);
    return row;
}

template <typename Fields, typename Make>
bool RecordConverter::convert_as(const std::byte* bytes, std::size_t size, Make make) {
    const auto r = read_record<RecordOf<Fields>>(bytes, size);
    if (!r) return false;
    emit(make(r->fields));
    return true;
}

bool RecordConverter::convert_one(std::uint32_t log, std::int64_t global_tid, const std::byte* bytes,
                                  std::size_t size) {
    switch (static_cast<RecordKind>(bytes[offsetof(RecordHeader, kind)])) {
        case RecordKind::push:
        case RecordKind::mark:
        case RecordKind::range_start:
            return convert_range(log, global_tid, bytes, size);
        case RecordKind::pop: {
            const auto r = read_record<PopRecord>(bytes, size);
            if (!r) return false;
            Log& its = logs_[log];
            Stack& stack = its.stacks[r->header.flags & kDomainStack ? r->domain : 0];
            const std::int64_t now = its.closing(to_trace_ns(r->ticks));
            close_deeper(stack, std::uint64_t{r->depth} + 1, now);
            if (stack.empty() || stack.back().depth != r->depth) return true;
            if (!payloads_.empty()) stack.back().row.binary += take_payload(log);
            close_deeper(stack, r->depth, now);
            return true;
        }
        case RecordKind::range_end: {
            const auto r = read_record<RangeEndRecord>(bytes, size);
            if (!r) return false;
            End end{to_trace_ns(r->ticks), global_tid, take_payload(log)};
            if (auto it = started_.find(r->id); it != started_.end()) {
                Open open{std::move(it->second), 0};
                started_.erase(it);
                end_started(open, end);
            } else {
                early_ends_[r->id] = std::move(end);
            }
            return true;
        }
        case RecordKind::runtime: {
            const auto r = read_record<RecordOf<RuntimeFields>>(bytes, size);
            if (!r) return false;
            traces::schema::RuntimeRow row;
            row.start = logs_[log].calling(to_trace_ns(r->fields.start));
            row.end = std::max(row.start, to_trace_ns(r->fields.end));
            row.global_tid = global_tid;
            row.correlation = r->fields.correlation;
            row.name = name(r->header.name);
            emit(row);
            return true;
        }
        case RecordKind::synchronization:
            return convert_as<SynchronizationFields>(bytes, size, [&](const SynchronizationFields& r) {
                auto row = device_row<traces::schema::SynchronizationRow>(r, r);
                row.sync_type = static_cast<int>(r.sync_type);
                row.event_id = r.event_id;
                return row;
            });
        case RecordKind::kernel:
            return convert_as<WorkFields>(bytes, size, [&](const WorkFields& r) {
                auto row = device_row<traces::schema::KernelRow>(r, r.work);
                row.short_name = row.demangled_name = name(r.work.name);
                return row;
            });
        case RecordKind::memcpy:
            return convert_as<WorkFields>(bytes, size, [&](const WorkFields& r) {
                auto row = device_row<traces::schema::MemcpyRow>(r, r.work);
                row.bytes = r.work.bytes;
                row.copy_kind = r.work.copy_kind;
                row.src_kind = r.work.src_kind;
                row.dst_kind = r.work.dst_kind;
                return row;
            });
        case RecordKind::memset:
            return convert_as<WorkFields>(bytes, size, [&](const WorkFields& r) {
                auto row = device_row<traces::schema::MemsetRow>(r, r.work);
                row.bytes = r.work.bytes;
                row.mem_kind = r.work.dst_kind;
                return row;
            });
        case RecordKind::collective: {
            const auto r = read_record<RecordOf<CollectiveWork>>(bytes, size);
            if (!r || !is_known(r->fields.operation) || !is_known(r->fields.phase)) return false;
            emit(r->fields);
            return true;
        }
        case RecordKind::memory:
            return convert_memory(bytes, size);
        case RecordKind::counter:
            return convert_as<CounterFields>(bytes, size, [&](const CounterFields& r) {
                return traces::schema::CounterRow{to_trace_ns(r.ticks), r.rank, name(r.name), r.value};
            });
        case RecordKind::step:
            return convert_as<StepFields>(bytes, size, [&](const StepFields& r) {
                return traces::schema::StepRow{static_cast<int>(r.rank), r.number, to_trace_ns(r.start),
                                               to_trace_ns(r.end), global_tid};
            });
        case RecordKind::gap: {
            const auto r = read_record<GapRecord>(bytes, size);
            if (!r) return false;
            close_after_loss(log, r->ticks, r->min_depth);
            return true;
        }
        case RecordKind::thread_end: {
            const auto r = read_record<PopRecord>(bytes, size);
            if (!r) return false;
            close_after_loss(log, r->ticks, 0);
            logs_.erase(log);
            return true;
        }
        case RecordKind::payload_schema:
            return convert_schema(bytes, size);
        case RecordKind::payload_enum:
            return convert_enum(bytes, size);
        case RecordKind::scope: {
            const auto r = read_record<ScopeRecord>(bytes, size);
            if (!r) return false;
            sink_.add(traces::schema::ScopeRow{name(static_cast<std::uint32_t>(r->domain)), r->id, r->parent,
                                               text(r->header.name)});
            return true;
        }
        case RecordKind::define_name:
        case RecordKind::thread_start:
        case RecordKind::thread_name:
        case RecordKind::category_name:
            return convert_text(bytes, size);
        default:
            return false;
    }
}

bool RecordConverter::convert_memory(const std::byte* bytes, std::size_t size) {
    const auto r = read_record<RecordOf<MemoryFields>>(bytes, size);
    if (!r) return false;
    const MemoryWork& work = r->fields.work;
    if (!is_known(work.category) || !is_known(work.space) || !is_known(work.phase)) return false;
    traces::schema::MemoryRow row;
    row.time = to_trace_ns(r->fields.ticks);
    row.rank = work.rank;
    row.address = work.address;
    row.bytes = work.bytes;
    row.category = work.category;
    row.space = work.space;
    row.phase = work.phase;
    row.unit = work.unit;
    row.module = work.module;
    row.stream = work.stream;
    row.name = name(work.name);
    emit(row);
    return true;
}

bool RecordConverter::convert_schema(const std::byte* bytes, std::size_t size) {
    const auto r = read_record<SchemaRecord>(bytes, size);
    if (!r || r->entries > (size - sizeof *r) / sizeof(SchemaEntry)) return false;
    traces::schema::PayloadSchemaRow row;
    row.domain = name(static_cast<std::uint32_t>(r->domain));
    row.id = r->id;
    row.name = text(r->header.name);
    row.type = r->type;
    row.flags = r->flags;
    row.size = r->size;
    row.align = r->align;
    for (std::size_t i = 0; i < r->entries; ++i) {
        const std::size_t at = sizeof *r + i * sizeof(SchemaEntry);
        const auto e = read_record<SchemaEntry>(bytes + at, size - at);
        row.entries.push_back({text(e->name), text(e->description), e->type, e->flags, e->detail, e->offset});
    }
    sink_.add(row);
    return true;
}

bool RecordConverter::convert_enum(const std::byte* bytes, std::size_t size) {
    const auto r = read_record<EnumRecord>(bytes, size);
    if (!r || r->entries > (size - sizeof *r) / sizeof(EnumEntry)) return false;
    traces::schema::PayloadEnumRow row;
    row.domain = name(static_cast<std::uint32_t>(r->domain));
    row.id = r->id;
    row.size = r->size;
    row.name = text(r->header.name);
    for (std::size_t i = 0; i < r->entries; ++i) {
        const std::size_t at = sizeof *r + i * sizeof(EnumEntry);
        const auto e = read_record<EnumEntry>(bytes + at, size - at);
        row.entries.push_back({text(e->name), e->value, e->is_flag != 0});
    }
    sink_.add(row);
    return true;
}

bool RecordConverter::convert_text(const std::byte* bytes, std::size_t size) {
    const auto r = read_record<TextRecord>(bytes, size);
    if (!r) return false;
    const std::string_view text = text_after(bytes, sizeof(TextRecord), size);
    if (r->header.kind == RecordKind::define_name) {
        define_name(r->header.name, text);
        return true;
    }
    if (r->header.kind == RecordKind::thread_start) {
        std::string& known = threads_[static_cast<std::uint32_t>(r->owner)];
        if (known.empty()) known = text;  // a name given through NVTX is better
        return true;
    }
    traces::schema::RangeRow row;
    row.start = to_trace_ns(r->ticks);
    row.text = sink_.intern(text);
    if (r->header.kind == RecordKind::thread_name) {
        row.event_type = traces::schema::kNvtxThreadName;
        row.global_tid = traces::schema::global_tid(pid_, static_cast<std::int64_t>(r->owner));
        threads_[static_cast<std::uint32_t>(r->owner)] = text;
    } else {
        row.event_type = traces::schema::kNvtxCategory;
        row.global_tid = traces::schema::global_pid(pid_);
        row.category = r->header.name;
        row.domain = name(static_cast<std::uint32_t>(r->owner));
    }
    emit(row);
    return true;
}

}  // namespace shardscope::profiler
