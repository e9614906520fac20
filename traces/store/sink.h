// Where events go: the one interface between a source of events (the recorder, an importer) and a place for
// them (the database writer, columns in memory). Not thread safe: one thread feeds a sink.
#pragma once

#include <string_view>

#include "traces/store/rows.h"

namespace shardscope::traces {

class EventSink {
  public:
    virtual ~EventSink() = default;

    // The id of a string in this sink; equal strings give equal ids.
    virtual StringId intern(std::string_view text) = 0;
    // The string of such an id, until the next call; empty where the sink does not keep them.
    virtual std::string_view text(StringId) const { return {}; }

    virtual void add(const KernelRow& row) = 0;
    virtual void add(const MemcpyRow& row) = 0;
    virtual void add(const MemsetRow& row) = 0;
    virtual void add(const RuntimeRow& row) = 0;
    virtual void add(const SynchronizationRow& row) = 0;
    virtual void add(const RangeRow& row) = 0;
    virtual void add(const CollectiveRow& row) = 0;
    virtual void add(const MemoryRow& row) = 0;
    virtual void add(const CounterRow& row) = 0;
    virtual void add(const StepRow& row) = 0;
    virtual void add(const LossRow& row) = 0;

    virtual void add(const RunInfoRow& row) = 0;
    virtual void add(const RankRow& row) = 0;
    virtual void add(const ProcessRow& row) = 0;
    virtual void add(const ThreadRow& row) = 0;
    virtual void add(const StreamRow& row) = 0;
    virtual void add(const ModuleRow& row) = 0;
    virtual void add(const UnitRow& row) = 0;
    virtual void add(const PredictionRow& row) = 0;
    virtual void add(const PredictionPartRow& row) = 0;
    virtual void add(const DiagnosticRow& row) = 0;

    // Details that a database keeps; a sink that has no place for them leaves them out.
    virtual void add(const PayloadSchemaRow&) {}
    virtual void add(const PayloadEnumRow&) {}
    virtual void add(const ScopeRow&) {}
    virtual void add(const CudaEventRow&) {}
    virtual void add(const OverheadRow&) {}
    virtual void add(const GraphTraceRow&) {}
    virtual void add(const CudaMemoryRow&) {}
    virtual void add(const CudaPoolRow&) {}
    virtual void add(const GpuRow&) {}
    virtual void add(const CudaContextRow&) {}
    virtual void add(const CudaStreamRow&) {}
    virtual void add(const NcclCommunicatorRow&) {}
    virtual void add(const NcclOperationRow&) {}

    // What only some sources know; a database and columns both keep it.
    virtual void add(const LinkRow&) {}
    virtual void add(const SegmentRow&) {}
    virtual void add(const FlightRow&) {}
    virtual void add(const ClockRow&) {}
    virtual void add(const StopRow&) {}
    virtual void add(const PlanRow&) {}

    // Everything added so far becomes durable (a database commits).
    virtual void commit() = 0;
};

}  // namespace shardscope::traces
