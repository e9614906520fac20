// A sink that hands its rows to another one on a thread of its own, so that reading and writing overlap:
// whoever adds rows only fills a batch; a bounded queue of batches keeps the memory small. What the other
// sink throws is thrown by the next call here, or by finish().
//
//   OverlappedSink sink(writer);
//   read_file(input, format, sink, request);
//   sink.finish();  // all rows are in the writer now
#pragma once

#include <memory>
#include <string_view>
#include <variant>

#include "traces/store/sink.h"

namespace shardscope::traces {

// Every kind of row that a sink takes.
using AnyRow =
    std::variant<KernelRow, MemcpyRow, MemsetRow, RuntimeRow, SynchronizationRow, RangeRow, CollectiveRow,
                 MemoryRow, CounterRow, StepRow, LossRow, RunInfoRow, RankRow, ProcessRow, ThreadRow,
                 StreamRow, ModuleRow, UnitRow, PredictionRow, PredictionPartRow, DiagnosticRow,
                 PayloadSchemaRow, PayloadEnumRow, ScopeRow, CudaEventRow, OverheadRow, GraphTraceRow,
                 CudaMemoryRow, CudaPoolRow, GpuRow, CudaContextRow, CudaStreamRow, NcclCommunicatorRow,
                 NcclOperationRow, LinkRow, SegmentRow, FlightRow, ClockRow, StopRow, PlanRow>;

// Hands add() of every kind of row to Self::take(). Self is what derives from it.
template <typename Self, typename Rows>
class EachAdd;
template <typename Self>
class EachAdd<Self, std::variant<>> : public EventSink {
  public:
    using EventSink::add;
};
template <typename Self, typename First, typename... Rest>
class EachAdd<Self, std::variant<First, Rest...>> : public EachAdd<Self, std::variant<Rest...>> {
  public:
    using EachAdd<Self, std::variant<Rest...>>::add;
    void add(const First& row) final { static_cast<Self*>(this)->take(AnyRow(row)); }
};

class OverlappedSink final : public EachAdd<OverlappedSink, AnyRow> {
  public:
    explicit OverlappedSink(EventSink& to);
    ~OverlappedSink() override;  // without finish(): what waits is dropped
    OverlappedSink(const OverlappedSink&) = delete;
    OverlappedSink& operator=(const OverlappedSink&) = delete;

    void finish();

    StringId intern(std::string_view text) override;
    std::string_view text(StringId id) const override;
    void take(AnyRow row);  // behind every add()
    void commit() override;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace shardscope::traces
