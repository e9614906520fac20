// The in-memory implementation of EventSink: add rows in any order, then take() the finished columns.
//
//   ColumnSink sink;
//   sink.add(RankRow{.rank = 0, .device = 0, ...});
//   sink.add(KernelRow{...});
//   std::unique_ptr<Trace> trace = sink.take();
//
// It owns everything until take(). One thread at a time. Times in nanoseconds, sizes in bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "traces/store/columns/trace.h"
#include "traces/store/error.h"
#include "traces/store/sink.h"

namespace shardscope::traces {

class NameFacts;
struct PendingRows;

class ColumnSink final : public EventSink {
  public:
    ColumnSink();
    ~ColumnSink() override;

    StringId intern(std::string_view text) override;
    std::string_view text(StringId id) const override;
    void add(const KernelRow& row) override;
    void add(const MemcpyRow& row) override;
    void add(const MemsetRow& row) override;
    void add(const RuntimeRow& row) override;
    void add(const SynchronizationRow& row) override;
    void add(const RangeRow& row) override;
    void add(const CollectiveRow& row) override;
    void add(const MemoryRow& row) override;
    void add(const CounterRow& row) override;
    void add(const StepRow& row) override;
    void add(const LossRow& row) override;
    void add(const RunInfoRow& row) override;
    void add(const RankRow& row) override;
    void add(const ProcessRow& row) override;
    void add(const ThreadRow& row) override;
    void add(const StreamRow& row) override;
    void add(const ModuleRow& row) override;
    void add(const UnitRow& row) override;
    void add(const PredictionRow& row) override;
    void add(const PredictionPartRow& row) override;
    void add(const DiagnosticRow& row) override;
    void add(const LinkRow& row) override;
    void add(const SegmentRow& row) override;
    void add(const FlightRow& row) override;
    void add(const ClockRow& row) override;
    void add(const StopRow& row) override;
    void add(const PlanRow& row) override;
    void commit() override {}

    // Facts about the file that are not in any row.
    void set_path(std::string path);
    void set_schema_version(int version);
    void set_start_utc_ns(std::int64_t ns);
    void set_start_system_ns(std::int64_t ns);
    void set_ended(bool ended);
    void set_dropped(std::int64_t events);

    // Sorts and links everything and returns the trace; the sink is empty afterwards.
    // A rank to which rows refer without a RankRow is made up: its number is its device's.
    // Throws StoreError where a column cannot hold the trace (more than 65,535 ranks, streams or threads).
    std::unique_ptr<Trace> take();

    // For the loader, which fills columns without the rows in between (pending_rows.h).
    PendingRows& pending();
    NameFacts& names();

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace shardscope::traces
