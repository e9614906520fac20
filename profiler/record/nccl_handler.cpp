// An operation's row is made of up to four records: start and end of the call, start and end of what NCCL
// enqueued for it. They may come from different threads, whose logs are read one after the other, so any of
// them can be the first to arrive.
#include <cstring>
#include <deque>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "profiler/inject/nccl_records.h"
#include "profiler/record/handlers.h"
#include "profiler/recorder/record_reading.h"

namespace shardscope::profiler {
namespace {

// The limit for each of: the latest calls, kept for their operations; operations that wait for their call;
// ends of unknown events.
constexpr std::size_t kMostKept = 1u << 14;

template <std::size_t N>
std::string text(const char (&field)[N]) {
    return {field, ::strnlen(field, N)};
}

traces::schema::Operation operation(std::string_view function) {
    for (std::size_t i = 0; i < traces::schema::kOperationNcclNames.size(); ++i) {
        if (function == traces::schema::kOperationNcclNames[i])
            return static_cast<traces::schema::Operation>(i);
    }
    return traces::schema::Operation::other;
}

class NcclHandler final : public RecordHandler {
  public:
    bool convert(RecordConverter& converter, std::uint32_t tid, RecordKind kind, const std::byte* bytes,
                 std::size_t size) override {
        if (kind == kNcclCommunicator) return convert_communicator(converter, bytes, size);
        if (kind == kNcclStart) {
            const auto r = read_record<NcclStartRecord>(bytes, size);
            if (r) begin(converter, *r, tid);
            return r.has_value();
        }
        if (kind == kNcclStop) {
            const auto r = read_record<NcclStopRecord>(bytes, size);
            if (r) end(converter, r->id, converter.to_trace_ns(r->ticks));
            return r.has_value();
        }
        return false;
    }

    void close(RecordConverter& converter, std::int64_t) override {
        for (auto& [id, event] : operations_) emit(converter, event);
        for (const auto& [parent, event] : orphans_) converter.emit(event.row);
        for (const auto& [id, event] : calls_) {
            if (!event.used) converter.emit(event.row);
        }
        orphans_.clear();
        operations_.clear();
        calls_.clear();
        call_order_.clear();
        early_ends_.clear();
    }

    void write_open(const RecordConverter&, traces::store::EventSink& sink, std::int64_t) const override {
        for (const auto& [id, event] : operations_) sink.add(event.row);
        for (const auto& [parent, event] : orphans_) sink.add(event.row);
        for (const auto& [id, event] : calls_) {
            if (!event.used) sink.add(event.row);
        }
    }

  private:
    struct Event {
        traces::schema::NcclOperationRow row;
        std::uint64_t parent = 0;
        bool used = false;  // a call that became part of an operation's row
    };
    using Events = std::unordered_map<std::uint64_t, Event>;

    bool convert_communicator(RecordConverter& converter, const std::byte* bytes, std::size_t size) {
        const auto r = read_record<NcclCommunicatorRecord>(bytes, size);
        if (!r) return false;
        traces::schema::NcclCommunicatorRow row;
        row.communicator = r->communicator;
        row.global_pid = traces::schema::global_pid(converter.pid());
        row.rank = r->rank;
        row.ranks = r->ranks;
        row.nodes = r->nodes;
        const char* name = reinterpret_cast<const char*>(bytes) + sizeof *r;
        row.name.assign(name, ::strnlen(name, size - sizeof *r));
        converter.emit(row);
        return true;
    }

    void begin(RecordConverter& converter, const NcclStartRecord& r, std::uint32_t tid) {
        Event event;
        event.parent = r.parent;
        traces::schema::NcclOperationRow& row = event.row;
        row.communicator = r.communicator;
        row.global_pid = traces::schema::global_pid(converter.pid());
        row.global_tid = traces::schema::global_tid(converter.pid(), tid);
        row.rank = r.rank;
        row.operation = operation(text(r.function));
        row.sequence = r.sequence;
        row.start = converter.to_trace_ns(r.ticks);
        row.count = r.count;
        row.data_type = text(r.data_type);
        row.algorithm = text(r.algorithm);
        row.protocol = text(r.protocol);
        row.root = r.root;
        row.channels = r.channels;
        row.warps = r.warps;
        if (const auto early = early_ends_.find(r.id); early != early_ends_.end()) {
            row.end = early->second;
            early_ends_.erase(early);
        }
        if (r.event == NcclEvent::call) return begin_call(converter, r.id, event);
        if (row.end) return emit(converter, event);
        operations_.insert_or_assign(r.id, event);
    }

    void begin_call(RecordConverter& converter, std::uint64_t id, const Event& event) {
        while (calls_.size() >= kMostKept && !call_order_.empty()) {
            if (const auto oldest = calls_.find(call_order_.front()); oldest != calls_.end()) {
                if (!oldest->second.used) converter.emit(oldest->second.row);
                calls_.erase(oldest);
            }
            call_order_.pop_front();
        }
        calls_.insert_or_assign(id, event);
        call_order_.push_back(id);
        const auto [first, last] = orphans_.equal_range(id);
        for (auto orphan = first; orphan != last; ++orphan) emit(converter, orphan->second);
        orphans_.erase(first, last);
    }

    void end(RecordConverter& converter, std::uint64_t id, std::int64_t end_ns) {
        if (const auto call = calls_.find(id); call != calls_.end()) {
            call->second.row.end = end_ns;
        } else if (const auto found = operations_.find(id); found != operations_.end()) {
            found->second.row.end = end_ns;
            emit(converter, found->second);
            operations_.erase(found);
        } else {
            // The start of this event is still in another log, or the event was emitted long ago.
            if (early_ends_.size() >= kMostKept) early_ends_.clear();
            early_ends_[id] = end_ns;
        }
    }

    // The first operation of a call began with the call, on the calling thread. Later operations are replays
    // of a graph, or further parts.
    void emit(RecordConverter& converter, Event& event) {
        if (event.parent == 0) return converter.emit(event.row);
        const auto call = calls_.find(event.parent);
        if (call == calls_.end()) {
            if (orphans_.size() >= kMostKept) return converter.emit(event.row);
            orphans_.emplace(event.parent, event);
            return;
        }
        if (!call->second.used) {
            event.row.start = call->second.row.start;
            event.row.global_tid = call->second.row.global_tid;
        }
        call->second.used = true;
        converter.emit(event.row);
    }

    Events operations_;  // that have not ended
    Events calls_;       // the latest
    std::deque<std::uint64_t> call_order_;
    std::unordered_multimap<std::uint64_t, Event>
        orphans_;  // ended, by the call that is still in another log
    std::unordered_map<std::uint64_t, std::int64_t> early_ends_;
};

}  // namespace

std::unique_ptr<RecordHandler> make_nccl_handler() {
    return std::make_unique<NcclHandler>();
}

}  // namespace shardscope::profiler
