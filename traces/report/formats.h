// Helpers that the printers of results share. Internal to traces/report.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "traces/analysis/advice/advice.h"
#include "traces/analysis/communication/collectives.h"
#include "traces/analysis/communication/distributed.h"
#include "traces/analysis/communication/flight.h"
#include "traces/analysis/communication/stragglers.h"
#include "traces/analysis/compare/compare.h"
#include "traces/analysis/compare/compare_parts.h"
#include "traces/analysis/compare/scaling.h"
#include "traces/analysis/facts/info.h"
#include "traces/analysis/fsdp/units.h"
#include "traces/analysis/memory/allocations_report.h"
#include "traces/analysis/memory/memory.h"
#include "traces/analysis/memory/memory_explanation.h"
#include "traces/analysis/modules/modules.h"
#include "traces/analysis/modules/operators.h"
#include "traces/analysis/path/critical_path.h"
#include "traces/analysis/time/idle.h"
#include "traces/analysis/time/kernels.h"
#include "traces/analysis/time/overlap.h"
#include "traces/analysis/time/steps.h"
#include "traces/analysis/time/summary.h"
#include "traces/analysis/time/temporal.h"
#include "traces/report/report.h"
#include "traces/report/units.h"

namespace shardscope::traces {

// A cell of CSV; empty if the value is 0, which means "not known".
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

inline constexpr std::string_view kNothingSelected = "The current selection has no rank of this trace.\n";

// Calls the printer that `format` asks for.
template <class Table, class JsonText, class Csv>
std::string render_as(Format format, Table table, JsonText json, Csv csv) {
    return format == Format::table ? table() : format == Format::json ? json() : csv();
}

inline std::vector<Column> csv_columns(std::initializer_list<const char*> names) {
    std::vector<Column> columns;
    for (const char* name : names) columns.push_back({name});
    return columns;
}
std::string rows_csv(const std::vector<Column>& columns, const std::vector<std::vector<Cell>>& rows);

}  // namespace shardscope::traces
