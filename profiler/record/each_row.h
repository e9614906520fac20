// An EventSink that treats all rows alike: derive as `class X : public EachRow<X>` and write one template,
// `template <typename Row> void take(const Row& row)`.
#pragma once

#include "traces/store/sink.h"

namespace shardscope::profiler {

template <typename Self>
class EachRow : public traces::EventSink {
  public:
    void add(const traces::KernelRow& row) override { self().take(row); }
    void add(const traces::MemcpyRow& row) override { self().take(row); }
    void add(const traces::MemsetRow& row) override { self().take(row); }
    void add(const traces::RuntimeRow& row) override { self().take(row); }
    void add(const traces::SynchronizationRow& row) override { self().take(row); }
    void add(const traces::RangeRow& row) override { self().take(row); }
    void add(const traces::CollectiveRow& row) override { self().take(row); }
    void add(const traces::MemoryRow& row) override { self().take(row); }
    void add(const traces::CounterRow& row) override { self().take(row); }
    void add(const traces::StepRow& row) override { self().take(row); }
    void add(const traces::LossRow& row) override { self().take(row); }
    void add(const traces::RunInfoRow& row) override { self().take(row); }
    void add(const traces::RankRow& row) override { self().take(row); }
    void add(const traces::ProcessRow& row) override { self().take(row); }
    void add(const traces::ThreadRow& row) override { self().take(row); }
    void add(const traces::StreamRow& row) override { self().take(row); }
    void add(const traces::ModuleRow& row) override { self().take(row); }
    void add(const traces::UnitRow& row) override { self().take(row); }
    void add(const traces::PredictionRow& row) override { self().take(row); }
    void add(const traces::PredictionPartRow& row) override { self().take(row); }
    void add(const traces::DiagnosticRow& row) override { self().take(row); }
    void add(const traces::PayloadSchemaRow& row) override { self().take(row); }
    void add(const traces::PayloadEnumRow& row) override { self().take(row); }
    void add(const traces::ScopeRow& row) override { self().take(row); }
    void add(const traces::CudaEventRow& row) override { self().take(row); }
    void add(const traces::OverheadRow& row) override { self().take(row); }
    void add(const traces::GraphTraceRow& row) override { self().take(row); }
    void add(const traces::CudaMemoryRow& row) override { self().take(row); }
    void add(const traces::CudaPoolRow& row) override { self().take(row); }
    void add(const traces::GpuRow& row) override { self().take(row); }
    void add(const traces::CudaContextRow& row) override { self().take(row); }
    void add(const traces::CudaStreamRow& row) override { self().take(row); }
    void add(const traces::NcclCommunicatorRow& row) override { self().take(row); }
    void add(const traces::NcclOperationRow& row) override { self().take(row); }

  private:
    Self& self() { return static_cast<Self&>(*this); }
};

}  // namespace shardscope::profiler
