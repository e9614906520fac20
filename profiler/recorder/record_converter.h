// Turns the records of one process (record.h) into rows of a sink: ticks into trace time, ids into names,
// pushes and pops into closed ranges. One thread. The only place that knows what a record means, whether it
// came from the recorder's own logs or from a file that an injected program mapped.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "profiler/base/record.h"
#include "profiler/log/work_records.h"
#include "profiler/recorder/calibration.h"
#include "traces/store/sink.h"

namespace shardscope::profiler {

class RecordConverter;

// Converts the records of one source (RecordKind's later ranges) in one process.
class RecordHandler {
  public:
    virtual ~RecordHandler() = default;
    // `size` is the record's own, within the bytes that were read. Returns false for a damaged record.
    virtual bool convert(RecordConverter& converter, std::uint32_t tid, RecordKind kind,
                         const std::byte* bytes, std::size_t size) = 0;
    // No more records follow; `end_ns` (trace time) is the latest time that the process can have recorded.
    virtual void close(RecordConverter& converter, std::int64_t end_ns) = 0;
    // Adds rows for what has begun and not ended by `now_ns`, as close() would, to another sink with the
    // same string ids. Changes nothing: the process continues.
    virtual void write_open(const RecordConverter&, traces::store::EventSink&,
                            std::int64_t /*now_ns*/) const {}
    // Visits the strings whose ids the handler keeps between records (see visit_strings()).
    virtual void visit_strings(const std::function<void(traces::schema::StringId)>&) const {}
};

class RecordConverter {
  public:
    // Trace time begins at `origin`. References must outlive the converter.
    RecordConverter(traces::store::EventSink& sink, const Calibration& clock, MonotonicTime origin,
                    std::int64_t pid);

    // Records of kinds first to last go to this handler.
    void add_handler(RecordKind first, RecordKind last, std::unique_ptr<RecordHandler> handler);

    // Gives a name to an id that records carry; ids are small and dense.
    void define_name(std::uint32_t id, std::string_view text);

    // Converts whole records of one log, in order. Stops at a damaged one; the rest is counted as damage.
    void convert(std::uint32_t log, std::uint32_t tid, std::span<const std::byte> records);

    // Ends a log's open ranges of that depth or deeper at `ticks`, the time from which its records were lost.
    void close_after_loss(std::uint32_t log, Ticks ticks, std::uint64_t min_depth);

    // Ends the process, and the ranges still open, at trace time end_ns; a diagnostic gives their number.
    void close_open_ranges(std::int64_t end_ns);
    // Ends only the open ranges: recording pauses, and more records may follow.
    void end_open_ranges(std::int64_t end_ns);

    // Visits the ranges that are open now, which have no end yet; in each thread, the outer before the
    // inner.
    void visit_open(const std::function<void(const traces::schema::RangeRow&)>& visit) const;
    // Writes everything that is open, as rows that end at now_ns, to another sink with the same string ids.
    void write_open(traces::store::EventSink& sink, std::int64_t now_ns) const;
    // Visits all ids of strings that later rows may carry without interning the text again: a sink that drops
    // strings must keep these.
    void visit_strings(const std::function<void(traces::schema::StringId)>& visit) const;

    std::int64_t to_trace_ns(Ticks ticks) const { return clock_.to_monotonic(ticks) - origin_; }
    std::int64_t rows() const { return rows_; }  // added to the sink so far
    std::int64_t pid() const { return pid_; }
    traces::store::EventSink& sink() { return sink_; }
    traces::schema::StringId name(std::uint32_t id) const;
    traces::schema::StringId name(NameId id) const { return name(static_cast<std::uint32_t>(id)); }
    std::string text(std::uint64_t id) const;  // of a name; empty if it was not defined
    template <typename Row>
    void emit(const Row& row) {
        sink_.add(row);
        ++rows_;
    }
    std::int64_t damaged() const { return damaged_; }
    // The names, by tid, of all threads that wrote: set through NVTX, else the system's.
    const std::map<std::uint32_t, std::string>& threads() const { return threads_; }

  private:
    struct Open {
        traces::schema::RangeRow row;
        std::uint32_t depth = 0;
    };
    using Stack = std::vector<Open>;
    // Some clocks tick only every 10 ns. If a range opened and closed in the same tick as the range around
    // it, their nesting would be ambiguous. So times within a log never decrease, and no two ranges open at
    // the same nanosecond.
    class Log {
      public:
        std::unordered_map<std::uint32_t, Stack> stacks;  // by domain (0 for logs that have one stack)

        std::int64_t opening(std::int64_t ns) {
            ticked_ = ns;
            return opened_ = latest_ = std::max({ns, latest_, opened_ + 1});
        }
        std::int64_t closing(std::int64_t ns) { return latest_ = std::max(ns, latest_); }
        // The time of a call; if the call is after the latest push, it lies inside that range.
        std::int64_t calling(std::int64_t ns) const { return ns >= ticked_ ? std::max(ns, opened_) : ns; }

      private:
        static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::min();
        std::int64_t latest_ = kNever, opened_ = kNever;
        std::int64_t ticked_ = kNever;  // the latest opening, by the clock
    };

    struct Handled {
        RecordKind first, last;
        std::unique_ptr<RecordHandler> handler;
    };
    bool convert_any(std::uint32_t log, std::uint32_t tid, RecordKind kind, const std::byte* bytes,
                     std::size_t size);
    bool convert_one(std::uint32_t log, std::int64_t global_tid, const std::byte* bytes, std::size_t size);
    bool convert_range(std::uint32_t log, std::int64_t global_tid, const std::byte* bytes, std::size_t size);
    // Adds the row that `make` makes of a record's fields.
    template <typename Fields, typename Make>
    bool convert_as(const std::byte* bytes, std::size_t size, Make make);
    template <typename Row, typename Times, typename Work>
    Row device_row(const Times& times, const Work& work) const;
    bool convert_memory(const std::byte* bytes, std::size_t size);
    bool convert_payload(std::uint32_t log, const std::byte* bytes, std::size_t size);
    bool convert_schema(const std::byte* bytes, std::size_t size);
    bool convert_enum(const std::byte* bytes, std::size_t size);
    std::string take_payload(std::uint32_t log);
    bool convert_text(const std::byte* bytes, std::size_t size);
    void close(Open& open, std::int64_t end_ns);
    void close_deeper(Stack& stack, std::uint64_t min_depth, std::int64_t end_ns);

    traces::store::EventSink& sink_;
    const Calibration& clock_;
    MonotonicTime origin_;
    std::int64_t pid_;
    std::int64_t rows_ = 0, damaged_ = 0;
    std::vector<traces::schema::StringId> names_;  // by id …
    std::vector<std::string> texts_;               // … and their texts
    std::unordered_map<std::uint32_t, Log> logs_;
    std::unordered_map<std::uint64_t, traces::schema::RangeRow> started_;  // start/end ranges, by id
    struct End {
        std::int64_t ns, global_tid;
        std::string payload;
    };
    void end_started(Open& open, End& end);
    std::unordered_map<std::uint64_t, End> early_ends_;        // their starts are still in another log
    std::unordered_map<std::uint32_t, std::string> payloads_;  // by log: for the next event
    std::map<std::uint32_t, std::string> threads_;
    std::vector<Handled> handlers_;
};

}  // namespace shardscope::profiler
