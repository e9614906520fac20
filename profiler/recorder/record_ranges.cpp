// The converter's ranges: which are open on which thread, what ends them, and what is reported about those
// that never ended.
#include <algorithm>
#include <tuple>
#include <utility>

#include <fmt/core.h>

#include "profiler/recorder/record_converter.h"
#include "profiler/recorder/record_reading.h"
#include "traces/schema/sort_rows.h"

namespace shardscope::profiler {

bool RecordConverter::convert_range(std::uint32_t log, std::int64_t global_tid, const std::byte* bytes,
                                    std::size_t size) {
    const auto r = read_record<PlainRangeRecord>(bytes, size);
    if (!r) return false;
    const std::uint8_t flags = r->header.flags;
    std::optional<RangeRecord> full;
    if (flags & kIsLong) {
        full = read_record<RangeRecord>(bytes, size);
        if (!full) return false;
    }
    Open open;
    open.depth = r->depth;
    traces::schema::RangeRow& row = open.row;
    row.start = to_trace_ns(r->ticks);
    row.domain = name(r->domain);
    row.global_tid = global_tid;
    row.module = r->module;
    row.text = flags & kHasText ? sink_.intern(text_after(bytes, full ? sizeof *full : sizeof *r, size))
                                : name(r->header.name);
    if (flags & kHasColor) row.color = r->color;
    if (full) {
        if (flags & kHasCategory) row.category = full->category;
        if (full->value_type <= static_cast<std::uint32_t>(traces::schema::RangePayload::Type::real32)) {
            row.payload = {static_cast<traces::schema::RangePayload::Type>(full->value_type), full->value};
        }
    }
    if (!payloads_.empty()) row.binary = take_payload(log);

    switch (r->header.kind) {
        case RecordKind::mark:
            row.event_type = traces::schema::kNvtxMark;
            emit(row);
            return true;
        case RecordKind::push: {
            Log& its = logs_[log];
            Stack& stack = its.stacks[flags & kDomainStack ? r->domain : 0];
            row.start = its.opening(row.start);
            close_deeper(stack, open.depth, row.start);  // whose ends were lost
            stack.push_back(std::move(open));
            return true;
        }
        default: {
            if (!full) return false;
            row.event_type = traces::schema::kNvtxStartEnd;
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

// The end of a start/end range, which may come from another thread.
void RecordConverter::end_started(Open& open, End& end) {
    if (end.global_tid != open.row.global_tid) open.row.end_global_tid = end.global_tid;
    open.row.binary += end.payload;
    close(open, end.ns);
}

bool RecordConverter::convert_payload(std::uint32_t log, const std::byte* bytes, std::size_t size) {
    const auto r = read_record<PayloadRecord>(bytes, size);
    if (!r || r->size > size - sizeof *r) return false;
    const char* data = reinterpret_cast<const char*>(bytes) + sizeof *r;
    payloads_[log] += traces::schema::binary_payload(r->schema, {data, r->size});
    return true;
}

std::string RecordConverter::take_payload(std::uint32_t log) {
    const auto found = payloads_.find(log);
    if (found == payloads_.end()) return {};
    std::string payload = std::move(found->second);
    payloads_.erase(found);
    return payload;
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

void RecordConverter::close_after_loss(std::uint32_t log, Ticks ticks, std::uint64_t min_depth) {
    Log& its = logs_[log];
    const std::int64_t now = its.closing(to_trace_ns(ticks));
    for (auto& [domain, stack] : its.stacks) close_deeper(stack, min_depth, now);
}

void RecordConverter::close_open_ranges(std::int64_t end_ns) {
    const std::int64_t before = rows_;
    end_open_ranges(end_ns);
    if (const std::int64_t closed = rows_ - before; closed > 0) {
        sink_.add(traces::schema::DiagnosticRow{
            end_ns, traces::schema::Severity::warning,
            fmt::format("{} of process {} {} still open when the recording ended, and closed there",
                        closed == 1 ? "1 range" : fmt::format("{} ranges", closed), pid_,
                        closed == 1 ? "was" : "were")});
    }
    for (const Handled& handled : handlers_) handled.handler->close(*this, end_ns);
}

void RecordConverter::end_open_ranges(std::int64_t end_ns) {
    for (auto& [number, log] : logs_) {
        for (auto& [domain, stack] : log.stacks) close_deeper(stack, 0, end_ns);
    }
    for (auto& [id, row] : started_) {
        Open open{row, 0};
        close(open, end_ns);
    }
    started_.clear();
    early_ends_.clear();
}

void RecordConverter::visit_open(const std::function<void(const traces::schema::RangeRow&)>& visit) const {
    std::vector<const traces::schema::RangeRow*> open;
    for (const auto& [number, log] : logs_) {
        for (const auto& [domain, stack] : log.stacks) {
            for (const Open& range : stack) open.push_back(&range.row);
        }
    }
    for (const auto& [id, row] : started_) open.push_back(&row);
    traces::schema::sort_rows(open, [](const auto* a, const auto* b) {
        return std::tie(a->global_tid, a->start) < std::tie(b->global_tid, b->start);
    });
    for (const traces::schema::RangeRow* row : open) visit(*row);
}

void RecordConverter::write_open(traces::store::EventSink& sink, std::int64_t now_ns) const {
    visit_open([&](const traces::schema::RangeRow& open) {
        traces::schema::RangeRow row = open;
        row.end = std::max(row.start, now_ns);
        sink.add(row);
    });
    for (const Handled& handled : handlers_) handled.handler->write_open(*this, sink, now_ns);
}

void RecordConverter::visit_strings(const std::function<void(traces::schema::StringId)>& visit) const {
    for (const traces::schema::StringId id : names_) visit(id);
    visit_open([&](const traces::schema::RangeRow& row) {
        visit(row.text);
        visit(row.domain);
    });
    for (const Handled& handled : handlers_) handled.handler->visit_strings(visit);
}

}  // namespace shardscope::profiler
