// Records to rows. Everything read from a chunk is copied out and checked before it is used.
#include "profiler/record_converter.h"

#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>

#include <fmt/format.h>

namespace shardscope::profiler {
namespace {

// A record as it lies in the chunk; std::nullopt if it is cut short.
template <typename Record>
std::optional<Record> read(const std::byte* bytes, std::size_t size) {
    if (size < sizeof(Record)) return std::nullopt;
    Record record;
    std::memcpy(&record, bytes, sizeof record);
    return record;
}

// The NUL-terminated text behind a struct.
std::string_view text_after(const std::byte* bytes, std::size_t struct_size, std::size_t size) {
    if (size <= struct_size) return {};
    const char* text = reinterpret_cast<const char*>(bytes) + struct_size;
    return {text, ::strnlen(text, size - struct_size)};
}

// Ids that could only come from a damaged file.
constexpr std::uint32_t kMostNames = 1u << 24;

}  // namespace

RecordConverter::RecordConverter(traces::EventSink& sink, const Calibration& clock, std::int64_t origin_ns,
                                 std::int64_t pid)
    : sink_(sink), clock_(clock), origin_ns_(origin_ns), pid_(pid), names_(1, traces::StringId::empty) {}

void RecordConverter::add_handler(RecordKind first, RecordKind last, std::unique_ptr<RecordHandler> handler) {
    handlers_.push_back({first, last, std::move(handler)});
}

void RecordConverter::define_name(std::uint32_t id, std::string_view text) {
    if (id >= kMostNames) {
        ++damaged_;
        return;
    }
    if (id >= names_.size()) {
        names_.resize(id + 1, traces::StringId::empty);
        texts_.resize(id + 1);
    }
    names_[id] = sink_.intern(text);
    texts_[id] = text;
}

traces::StringId RecordConverter::name(std::uint32_t id) const {
    return id < names_.size() ? names_[id] : traces::StringId::empty;
}

std::string RecordConverter::text(std::uint64_t id) const {
    return id < texts_.size() ? texts_[id] : std::string();
}

void RecordConverter::convert(std::uint32_t log, std::uint32_t tid, std::span<const std::byte> records) {
    if (log != 0) threads_.try_emplace(tid);
    for (std::size_t at = 0; at < records.size();) {
        const auto header = read<RecordHeader>(records.data() + at, records.size() - at);
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
        const bool understood = convert_one(log, traces::global_tid(pid_, tid), bytes, size);
        if (!payloads_.empty()) payloads_.erase(log);  // of an event that was lost
        return understood;
    }
    for (const Handled& handled : handlers_) {
        if (kind >= handled.first && kind <= handled.last) {
            return handled.handler->convert(*this, tid, kind, bytes, size);
        }
    }
    return false;
}

bool RecordConverter::convert_one(std::uint32_t log, std::int64_t global_tid, const std::byte* bytes,
                                  std::size_t size) {
    const std::int64_t global_pid = traces::global_pid(pid_);
    switch (static_cast<RecordKind>(bytes[offsetof(RecordHeader, kind)])) {
        case RecordKind::push:
        case RecordKind::mark:
        case RecordKind::range_start:
            return convert_range(log, global_tid, bytes, size);
        case RecordKind::pop: {
            const auto r = read<PopRecord>(bytes, size);
            if (!r) return false;
            Stack& stack = logs_[log][r->header.flags & kDomainStack ? r->domain : 0];
            const std::int64_t now = to_trace_ns(r->ticks);
            close_deeper(stack, std::uint64_t{r->depth} + 1, now);
            if (stack.empty() || stack.back().depth != r->depth) return true;
            if (!payloads_.empty()) stack.back().row.binary += take_payload(log);
            close_deeper(stack, r->depth, now);
            return true;
        }
        case RecordKind::range_end: {
            const auto r = read<RangeEndRecord>(bytes, size);
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
            const auto r = read<RuntimeRecord>(bytes, size);
            if (!r) return false;
            traces::RuntimeRow row;
            row.start = to_trace_ns(r->start);
            row.end = to_trace_ns(r->end);
            row.global_tid = global_tid;
            row.correlation = r->correlation;
            row.name = name(r->header.name);
            emit(row);
            return true;
        }
        case RecordKind::synchronization: {
            const auto r = read<SynchronizationRecord>(bytes, size);
            if (!r) return false;
            traces::SynchronizationRow row;
            row.start = to_trace_ns(r->start);
            row.end = to_trace_ns(r->end);
            row.device = r->device;
            row.stream = r->stream;
            row.correlation = r->correlation;
            row.global_pid = global_pid;
            row.sync_type = r->sync_type;
            row.event_id = r->event_id;
            emit(row);
            return true;
        }
        case RecordKind::kernel: {
            const auto r = read<WorkRecord>(bytes, size);
            if (!r) return false;
            traces::KernelRow row;
            row.start = to_trace_ns(r->start);
            row.end = to_trace_ns(r->end);
            row.device = r->device;
            row.stream = r->stream;
            row.correlation = r->correlation;
            row.global_pid = global_pid;
            row.short_name = row.demangled_name = name(r->header.name);
            emit(row);
            return true;
        }
        case RecordKind::memcpy: {
            const auto r = read<WorkRecord>(bytes, size);
            if (!r) return false;
            traces::MemcpyRow row;
            row.start = to_trace_ns(r->start);
            row.end = to_trace_ns(r->end);
            row.device = r->device;
            row.stream = r->stream;
            row.correlation = r->correlation;
            row.global_pid = global_pid;
            row.bytes = r->bytes;
            row.copy_kind = r->copy_kind;
            row.src_kind = r->src_kind;
            row.dst_kind = r->dst_kind;
            emit(row);
            return true;
        }
        case RecordKind::memset: {
            const auto r = read<WorkRecord>(bytes, size);
            if (!r) return false;
            traces::MemsetRow row;
            row.start = to_trace_ns(r->start);
            row.end = to_trace_ns(r->end);
            row.device = r->device;
            row.stream = r->stream;
            row.correlation = r->correlation;
            row.global_pid = global_pid;
            row.bytes = r->bytes;
            row.mem_kind = r->dst_kind;
            emit(row);
            return true;
        }
        case RecordKind::collective: {
            const auto r = read<CollectiveRecord>(bytes, size);
            if (!r || r->operation >= traces::kOperations || r->phase >= traces::kPhases) return false;
            traces::CollectiveRow row;
            row.rank = r->rank;
            row.correlation = r->correlation;
            row.operation = static_cast<traces::Operation>(r->operation);
            row.bytes = r->bytes;
            row.padding = r->padding;
            row.group = r->group;
            row.group_size = r->group_size;
            row.sequence = r->sequence;
            row.unit = r->unit;
            row.phase = static_cast<traces::Phase>(r->phase);
            emit(row);
            return true;
        }
        case RecordKind::memory: {
            const auto r = read<MemoryRecord>(bytes, size);
            if (!r || r->category >= traces::kMemoryCategories || r->space >= traces::kMemorySpaces ||
                r->phase >= traces::kPhases) {
                return false;
            }
            traces::MemoryRow row;
            row.time = to_trace_ns(r->ticks);
            row.rank = r->rank;
            row.address = r->address;
            row.bytes = r->bytes;
            row.category = static_cast<traces::MemoryCategory>(r->category);
            row.space = static_cast<traces::MemorySpace>(r->space);
            row.phase = static_cast<traces::Phase>(r->phase);
            row.unit = r->unit;
            row.module = r->module;
            row.stream = r->stream;
            row.name = name(r->header.name);
            emit(row);
            return true;
        }
        case RecordKind::counter: {
            const auto r = read<CounterRecord>(bytes, size);
            if (!r) return false;
            emit(traces::CounterRow{to_trace_ns(r->ticks), static_cast<int>(r->rank), name(r->header.name),
                                    r->value});
            return true;
        }
        case RecordKind::step: {
            const auto r = read<StepRecord>(bytes, size);
            if (!r) return false;
            emit(traces::StepRow{static_cast<int>(r->rank), r->number, to_trace_ns(r->start),
                                 to_trace_ns(r->end), global_tid});
            return true;
        }
        case RecordKind::gap: {
            const auto r = read<GapRecord>(bytes, size);
            if (!r) return false;
            close_after_loss(log, r->ticks, r->min_depth);
            return true;
        }
        case RecordKind::thread_end: {
            const auto r = read<PopRecord>(bytes, size);
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
            const auto r = read<ScopeRecord>(bytes, size);
            if (!r) return false;
            sink_.add(traces::ScopeRow{name(static_cast<std::uint32_t>(r->domain)), r->id, r->parent,
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

bool RecordConverter::convert_range(std::uint32_t log, std::int64_t global_tid, const std::byte* bytes,
                                    std::size_t size) {
    const auto r = read<PlainRangeRecord>(bytes, size);
    if (!r) return false;
    const std::uint8_t flags = r->header.flags;
    std::optional<RangeRecord> full;
    if (flags & kIsLong) {
        full = read<RangeRecord>(bytes, size);
        if (!full) return false;
    }
    Open open;
    open.depth = r->depth;
    traces::RangeRow& row = open.row;
    row.start = to_trace_ns(r->ticks);
    row.domain = name(r->domain);
    row.global_tid = global_tid;
    row.module = r->module;
    row.text = flags & kHasText ? sink_.intern(text_after(bytes, full ? sizeof *full : sizeof *r, size))
                                : name(r->header.name);
    if (flags & kHasColor) row.color = r->color;
    if (full) {
        if (flags & kHasCategory) row.category = full->category;
        if (full->value_type <= static_cast<std::uint32_t>(traces::RangePayload::Type::real32)) {
            row.payload = {static_cast<traces::RangePayload::Type>(full->value_type), full->value};
        }
    }
    if (!payloads_.empty()) row.binary = take_payload(log);

    switch (r->header.kind) {
        case RecordKind::mark:
            row.event_type = traces::kNvtxMark;
            emit(row);
            return true;
        case RecordKind::push: {
            Stack& stack = logs_[log][flags & kDomainStack ? r->domain : 0];
            close_deeper(stack, open.depth, row.start);  // whose ends were lost
            stack.push_back(std::move(open));
            return true;
        }
        default: {
            if (!full) return false;
            row.event_type = traces::kNvtxStartEnd;
            if (auto known = early_ends_.find(full->id); known != early_ends_.end()) {
                End end = std::move(known->second);
                early_ends_.erase(known);
                end_started(open, end);
            } else {
                started_[full->id] = std::move(row);
            }
            return true;
        }
    }
}

// The end of a start/end range, which may be another thread's doing.
void RecordConverter::end_started(Open& open, End& end) {
    if (end.global_tid != open.row.global_tid) open.row.end_global_tid = end.global_tid;
    open.row.binary += end.payload;
    close(open, end.ns);
}

bool RecordConverter::convert_payload(std::uint32_t log, const std::byte* bytes, std::size_t size) {
    const auto r = read<PayloadRecord>(bytes, size);
    if (!r || r->size > size - sizeof *r) return false;
    const char* data = reinterpret_cast<const char*>(bytes) + sizeof *r;
    payloads_[log] += traces::binary_payload(r->schema, {data, r->size});
    return true;
}

std::string RecordConverter::take_payload(std::uint32_t log) {
    const auto found = payloads_.find(log);
    if (found == payloads_.end()) return {};
    std::string payload = std::move(found->second);
    payloads_.erase(found);
    return payload;
}

bool RecordConverter::convert_schema(const std::byte* bytes, std::size_t size) {
    const auto r = read<SchemaRecord>(bytes, size);
    if (!r || r->entries > (size - sizeof *r) / sizeof(SchemaEntry)) return false;
    traces::PayloadSchemaRow row;
    row.domain = name(static_cast<std::uint32_t>(r->domain));
    row.id = r->id;
    row.name = text(r->header.name);
    row.type = r->type;
    row.flags = r->flags;
    row.size = r->size;
    row.align = r->align;
    for (std::size_t i = 0; i < r->entries; ++i) {
        const std::size_t at = sizeof *r + i * sizeof(SchemaEntry);
        const auto e = read<SchemaEntry>(bytes + at, size - at);
        row.entries.push_back({text(e->name), text(e->description), e->type, e->flags, e->detail, e->offset});
    }
    sink_.add(row);
    return true;
}

bool RecordConverter::convert_enum(const std::byte* bytes, std::size_t size) {
    const auto r = read<EnumRecord>(bytes, size);
    if (!r || r->entries > (size - sizeof *r) / sizeof(EnumEntry)) return false;
    traces::PayloadEnumRow row;
    row.domain = name(static_cast<std::uint32_t>(r->domain));
    row.id = r->id;
    row.size = r->size;
    row.name = text(r->header.name);
    for (std::size_t i = 0; i < r->entries; ++i) {
        const std::size_t at = sizeof *r + i * sizeof(EnumEntry);
        const auto e = read<EnumEntry>(bytes + at, size - at);
        row.entries.push_back({text(e->name), e->value, e->is_flag != 0});
    }
    sink_.add(row);
    return true;
}

bool RecordConverter::convert_text(const std::byte* bytes, std::size_t size) {
    const auto r = read<TextRecord>(bytes, size);
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
    traces::RangeRow row;
    row.start = to_trace_ns(r->ticks);
    row.text = sink_.intern(text);
    if (r->header.kind == RecordKind::thread_name) {
        row.event_type = traces::kNvtxThreadName;
        row.global_tid = traces::global_tid(pid_, static_cast<std::int64_t>(r->owner));
        threads_[static_cast<std::uint32_t>(r->owner)] = text;
    } else {
        row.event_type = traces::kNvtxCategory;
        row.global_tid = traces::global_pid(pid_);
        row.category = r->header.name;
        row.domain = name(static_cast<std::uint32_t>(r->owner));
    }
    emit(row);
    return true;
}

void RecordConverter::close(Open& open, std::int64_t end_ns) {
    open.row.end = std::max(open.row.start, end_ns);
    emit(open.row);
}

// Ends the ranges of that depth or deeper, innermost first.
void RecordConverter::close_deeper(Stack& stack, std::uint64_t min_depth, std::int64_t end_ns) {
    while (!stack.empty() && stack.back().depth >= min_depth) {
        close(stack.back(), end_ns);
        stack.pop_back();
    }
}

void RecordConverter::close_after_loss(std::uint32_t log, std::uint64_t ticks, std::uint64_t min_depth) {
    const std::int64_t now = to_trace_ns(ticks);
    for (auto& [domain, stack] : logs_[log]) close_deeper(stack, min_depth, now);
}

void RecordConverter::close_open_ranges(std::int64_t end_ns) {
    const std::int64_t before = rows_;
    end_open_ranges(end_ns);
    if (const std::int64_t closed = rows_ - before; closed > 0) {
        sink_.add(traces::DiagnosticRow{
            end_ns, traces::Severity::warning,
            fmt::format("{} of process {} {} still open when the recording ended, and closed there",
                        closed == 1 ? "1 range" : fmt::format("{} ranges", closed), pid_,
                        closed == 1 ? "was" : "were")});
    }
    for (const Handled& handled : handlers_) handled.handler->close(*this, end_ns);
}

void RecordConverter::end_open_ranges(std::int64_t end_ns) {
    for (auto& [number, log] : logs_) {
        for (auto& [domain, stack] : log) close_deeper(stack, 0, end_ns);
    }
    for (auto& [id, row] : started_) {
        Open open{row, 0};
        close(open, end_ns);
    }
    started_.clear();
    early_ends_.clear();
}

void RecordConverter::visit_open(const std::function<void(const traces::RangeRow&)>& visit) const {
    std::vector<const traces::RangeRow*> open;
    for (const auto& [number, log] : logs_) {
        for (const auto& [domain, stack] : log) {
            for (const Open& range : stack) open.push_back(&range.row);
        }
    }
    for (const auto& [id, row] : started_) open.push_back(&row);
    std::stable_sort(open.begin(), open.end(), [](const auto* a, const auto* b) {
        return std::tie(a->global_tid, a->start) < std::tie(b->global_tid, b->start);
    });
    for (const traces::RangeRow* row : open) visit(*row);
}

void RecordConverter::write_open(traces::EventSink& sink, std::int64_t now_ns) const {
    visit_open([&](const traces::RangeRow& open) {
        traces::RangeRow row = open;
        row.end = std::max(row.start, now_ns);
        sink.add(row);
    });
    for (const Handled& handled : handlers_) handled.handler->write_open(*this, sink, now_ns);
}

void RecordConverter::visit_strings(const std::function<void(traces::StringId)>& visit) const {
    for (const traces::StringId id : names_) visit(id);
    visit_open([&](const traces::RangeRow& row) {
        visit(row.text);
        visit(row.domain);
    });
    for (const Handled& handled : handlers_) handled.handler->visit_strings(visit);
}

}  // namespace shardscope::profiler
