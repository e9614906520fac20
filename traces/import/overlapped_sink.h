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

#include "traces/store/sink.h"

namespace shardscope::traces {

class OverlappedSink final : public EventSink {
  public:
    explicit OverlappedSink(EventSink& to);
    ~OverlappedSink() override;  // without finish(): what waits is dropped
    OverlappedSink(const OverlappedSink&) = delete;
    OverlappedSink& operator=(const OverlappedSink&) = delete;

    void finish();

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
    void add(const PayloadSchemaRow& row) override;
    void add(const PayloadEnumRow& row) override;
    void add(const ScopeRow& row) override;
    void add(const CudaEventRow& row) override;
    void add(const OverheadRow& row) override;
    void add(const GraphTraceRow& row) override;
    void add(const CudaMemoryRow& row) override;
    void add(const CudaPoolRow& row) override;
    void add(const GpuRow& row) override;
    void add(const CudaContextRow& row) override;
    void add(const CudaStreamRow& row) override;
    void add(const NcclCommunicatorRow& row) override;
    void add(const NcclOperationRow& row) override;
    void add(const LinkRow& row) override;
    void add(const SegmentRow& row) override;
    void add(const FlightRow& row) override;
    void commit() override;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace shardscope::traces
