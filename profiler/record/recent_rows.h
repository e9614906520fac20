// The last seconds of a recording, in memory: what --keep-last writes to a file when something goes wrong.
// Rows of events are kept for the length of the window and within a given number of bytes, and the oldest
// are dropped first; rows that describe the participants (ranks, processes, schemas …) stay. One thread.
//
// "The last" is counted back from the newest event, not from now: a program that hangs is shown as it was
// when it was last active. Counters, which the recorder itself samples, do not count as events.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <variant>
#include <vector>

#include "traces/store/sink.h"

namespace shardscope::profiler {

class RecentRows final : public traces::store::EachRow<RecentRows> {
  public:
    static constexpr std::size_t kMaxBytes = std::size_t{256} << 20;
    static constexpr std::size_t kMaxCounterBytes = std::size_t{16} << 20;
    static constexpr std::size_t kMaxDiagnostics = 4096, kFirstDiagnostics = 64;

    explicit RecentRows(std::int64_t window_ns, std::size_t max_bytes = kMaxBytes);

    // Visits ids that others hold and may still use in rows (RecordConverter::visit_strings). Called when
    // unused strings are removed.
    using Visit = std::function<void(traces::schema::StringId)>;
    void set_other_users(std::function<void(const Visit&)> visit_ids) { visit_ids_ = std::move(visit_ids); }

    // Sets the current trace time (ns): no event can be later.
    void advance(std::int64_t now_ns) { now_ns_ = now_ns; }

    traces::schema::StringId intern(std::string_view text) override;
    std::string_view text(traces::schema::StringId id) const override;  // slow
    template <typename Row>
    void take(const Row& row);

    // Drops rows that are too old. Call it regularly.
    void commit() override;

    // Copies the kept events that ended at `since_ns` or later, and all other rows, to another sink.
    void write_to(traces::store::EventSink& sink, std::int64_t since_ns = INT64_MIN);
    // A sink that takes rows with this one's string ids and passes them on to `sink`. It must not outlive
    // either.
    std::unique_ptr<traces::store::EventSink> translator(traces::store::EventSink& sink);

    std::size_t rows() const;
    std::size_t bytes() const { return bytes_ + counter_bytes_ + string_bytes_; }
    std::size_t strings() const { return strings_.size(); }
    // Rows that were dropped early, because they took too many bytes.
    std::int64_t dropped() const { return dropped_; }
    // When the newest event ended, and how far back the kept rows reach; 0 before the first event.
    std::int64_t newest_ns() const { return newest_ns_; }
    std::int64_t oldest_ns() const;

  private:
    template <typename Row>
    struct Kept {
        std::int64_t time;  // never less than that of the row before
        Row row;
    };
    template <typename Row>
    using Rows = std::deque<Kept<Row>>;
    struct TextHash {
        using is_transparent = void;
        std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
    };

    template <typename Row>
    void drop_front(Rows<Row>& rows);
    void drop_old();
    void drop_for_space();
    void forget_strings();

    std::int64_t window_ns_;
    std::size_t max_bytes_;
    std::function<void(const Visit&)> visit_ids_;
    std::int64_t now_ns_ = INT64_MAX, newest_ns_ = 0;
    std::tuple<
        Rows<traces::schema::KernelRow>, Rows<traces::schema::MemcpyRow>, Rows<traces::schema::MemsetRow>,
        Rows<traces::schema::RuntimeRow>, Rows<traces::schema::SynchronizationRow>,
        Rows<traces::schema::RangeRow>, Rows<traces::schema::CollectiveRow>, Rows<traces::schema::MemoryRow>,
        Rows<traces::schema::StepRow>, Rows<traces::schema::LossRow>, Rows<traces::schema::CudaEventRow>,
        Rows<traces::schema::OverheadRow>, Rows<traces::schema::GraphTraceRow>,
        Rows<traces::schema::CudaMemoryRow>, Rows<traces::schema::CudaPoolRow>,
        Rows<traces::schema::NcclOperationRow>, Rows<traces::schema::SampleRow>>
        events_;
    Rows<traces::schema::CounterRow> counters_;
    std::vector<traces::schema::AnyRow> facts_;               // of the other kinds
    std::vector<traces::schema::DiagnosticRow> diagnostics_;  // the first ones and the last
    std::size_t bytes_ = 0, counter_bytes_ = 0;
    std::int64_t dropped_ = 0;

    // Ids are never reused for another string.
    std::unordered_map<std::string, traces::schema::StringId, TextHash, std::equal_to<>> strings_;
    std::uint32_t next_id_ = 1;
    std::size_t string_bytes_ = 0, forget_above_;
};

}  // namespace shardscope::profiler
