// The three ways to print each result; report.h chooses between them. Inside the room only.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "traces/analysis/advice/advice.h"
#include "traces/analysis/memory/allocations_report.h"
#include "traces/analysis/communication/collectives.h"
#include "traces/analysis/compare/compare.h"
#include "traces/analysis/compare/compare_parts.h"
#include "traces/analysis/path/critical_path.h"
#include "traces/analysis/communication/distributed.h"
#include "traces/analysis/communication/flight.h"
#include "traces/analysis/time/idle.h"
#include "traces/analysis/facts/info.h"
#include "traces/analysis/time/kernels.h"
#include "traces/analysis/memory/memory.h"
#include "traces/analysis/memory/memory_explanation.h"
#include "traces/analysis/modules/modules.h"
#include "traces/analysis/modules/operators.h"
#include "traces/analysis/time/overlap.h"
#include "traces/analysis/compare/scaling.h"
#include "traces/analysis/time/steps.h"
#include "traces/analysis/communication/stragglers.h"
#include "traces/analysis/time/summary.h"
#include "traces/analysis/time/temporal.h"
#include "traces/analysis/fsdp/units.h"
#include "traces/report/report.h"
#include "traces/report/units.h"

namespace shardscope::traces {

// A cell of CSV; empty where 0 is "not known".
template <typename Number>
Cell known(Number value) {
    return value > 0 ? Cell(value) : Cell();
}

inline double micro(std::int64_t ns) {
    return static_cast<double>(ns) * 1e-3;
}
inline std::string mean_us(std::int64_t ns, std::int64_t count) {
    return count > 0 ? us(micro(ns) / static_cast<double>(count)) : "-";
}

inline constexpr std::string_view kNothingSelected = "No rank of this trace is selected, or it has none.\n";

std::string table_text(const ExecutionSummary& summary, std::size_t width);
std::string table_text(const ModuleView& view, std::size_t width);
std::string table_text(const MemoryReport& report, std::size_t width);
std::string table_text(const MemoryExplanation& explanation, std::size_t width);
std::string table_text(const AllocationsReport& report, std::size_t width);
std::string table_text(const CollectivesReport& report, std::size_t width);
std::string table_text(const Comparison& comparison, std::size_t width);
std::string table_text(const PartsComparison& comparison, std::size_t width);
std::string table_text(const CriticalPathReport& report, std::size_t width);
std::string table_text(const AdviceReport& report, std::size_t width);
std::string table_text(const FlightReport& report, std::size_t width);
std::string table_text(const TraceInfo& info, std::size_t width);
std::string table_text(const DistributedReport& report, std::size_t width);
std::string table_text(const StragglersReport& report, std::size_t width);
std::string table_text(const ScalingReport& report, std::size_t width);
std::string table_text(const UnitsReport& report, std::size_t width);
std::string table_text(const OverlapReport& report, std::size_t width);
std::string table_text(const TemporalReport& report, std::size_t width);
std::string table_text(const IdleReport& report, std::size_t width);
std::string table_text(const StepsReport& report, std::size_t width);
std::string table_text(const KernelsReport& report, std::size_t width);
std::string table_text(const OperatorsReport& report, std::size_t width);
std::string table_text(const std::vector<Column>& columns, const std::vector<std::vector<Cell>>& rows);

std::string json_text(const ExecutionSummary& summary);
std::string json_text(const ModuleView& view);
std::string json_text(const MemoryReport& report);
std::string json_text(const MemoryExplanation& explanation);
std::string json_text(const AllocationsReport& report);
std::string json_text(const CollectivesReport& report);
std::string json_text(const Comparison& comparison);
std::string json_text(const PartsComparison& comparison);
std::string json_text(const CriticalPathReport& report);
std::string json_text(const AdviceReport& report);
std::string json_text(const FlightReport& report);
std::string json_text(const TraceInfo& info);
std::string json_text(const DistributedReport& report);
std::string json_text(const StragglersReport& report);
std::string json_text(const ScalingReport& report);
std::string json_text(const UnitsReport& report);
std::string json_text(const OverlapReport& report);
std::string json_text(const TemporalReport& report);
std::string json_text(const IdleReport& report);
std::string json_text(const StepsReport& report);
std::string json_text(const KernelsReport& report);
std::string json_text(const OperatorsReport& report);
std::string json_text(const std::vector<Column>& columns, const std::vector<std::vector<Cell>>& rows);
std::string check_json(const std::string& file, const std::vector<std::string>& faults,
                       const std::vector<std::string>& notes);

std::string csv_text(const ExecutionSummary& summary);
std::string csv_text(const ModuleView& view);
std::string csv_text(const MemoryReport& report);
std::string csv_text(const MemoryExplanation& explanation);
std::string csv_text(const AllocationsReport& report);
std::string csv_text(const CollectivesReport& report);
std::string csv_text(const Comparison& comparison);
std::string csv_text(const PartsComparison& comparison);
std::string csv_text(const CriticalPathReport& report);
std::string csv_text(const AdviceReport& report);
std::string csv_text(const FlightReport& report);
std::string csv_text(const TraceInfo& info);
std::string csv_text(const DistributedReport& report);
std::string csv_text(const StragglersReport& report);
std::string csv_text(const ScalingReport& report);
std::string csv_text(const UnitsReport& report);
std::string csv_text(const OverlapReport& report);
std::string csv_text(const TemporalReport& report);
std::string csv_text(const IdleReport& report);
std::string csv_text(const StepsReport& report);
std::string csv_text(const KernelsReport& report);
std::string csv_text(const OperatorsReport& report);
std::string csv_text(const std::vector<Column>& columns, const std::vector<std::vector<Cell>>& rows);

}  // namespace shardscope::traces
