// The database end of EventSink: one SQLite file, written while the job runs.
//
// WAL journal with synchronous=NORMAL, 16 KiB pages, whole arrays of rows per statement, no indexes while
// recording: what was committed survives a kill, and others may read it at any time. finish() makes a sorted,
// indexed, single file of it (finalize.h). The file is created for its owner only.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "traces/store/error.h"
#include "traces/store/sink.h"
#include "traces/store/write/finalize.h"

namespace shardscope::traces {

struct WriterOptions {
    std::string path;
    bool overwrite = false;            // replace an existing file; otherwise its existence is an error
    std::int64_t start_utc_ns = 0;     // wall clock at capture time 0
    std::int64_t start_system_ns = 0;  // CLOCK_MONOTONIC at capture time 0
    std::int64_t first_ns = 0;         // capture time from which on the file tells what happened
    bool on_this_machine = true;       // the run is here: its machine's facts are stored
};

class DatabaseWriter final : public EventSink {
  public:
    // Creates the file with all tables, enums and views. Throws StoreError,
    // whose text is one sentence that names the file.
    explicit DatabaseWriter(const WriterOptions& options);
    ~DatabaseWriter() override;  // without finish(): the file stays as after a crash (open, "did not end")

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
    void add(const ClockRow& row) override;
    void add(const StopRow& row) override;
    void add(const PlanRow& row) override;

    void commit() override;

    // The wall clock at capture time 0, of a source that tells it late.
    void set_start_utc_ns(std::int64_t ns);

    // Tells the run's end, closes the file and finalizes it. `dropped` = events that were lost. Cancelled or
    // failed, the file holds all rows and can be finalized later (finalize_trace).
    FinalizeResult finish(std::int64_t duration_ns, std::int64_t dropped,
                          const FinalizeOptions& options = {});

    // Whether `path` could be created now (or replaced with `overwrite`); throws StoreError with the reason.
    // Touches nothing.
    static void check_output(const std::string& path, bool overwrite);

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace shardscope::traces
