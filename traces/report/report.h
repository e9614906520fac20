// Prints analysis results: a table for people, JSON or CSV for programs. Every text ends with a newline.
// It only prints: every number comes from the result struct. JSON and CSV carry full precision.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "traces/analysis/base/result_table.h"

namespace shardscope::traces::analysis {
struct AdviceReport;
struct AllocationsReport;
struct AllocatorReport;
struct AnswersReport;
struct BusBandwidthReport;
struct CollectivesReport;
struct Comparison;
struct CriticalPathReport;
struct DistributedReport;
struct ExecutionSummary;
struct FlightReport;
struct IdleReport;
struct KernelsReport;
struct MemoryExplanation;
struct MemoryReport;
struct MetricsReport;
struct ModuleView;
struct OperatorsReport;
struct OverlapReport;
struct PartsComparison;
struct PipelineReport;
struct ScalingReport;
struct SamplesReport;
struct StepsReport;
struct StragglersReport;
struct TemporalReport;
struct TraceInfo;
struct UnitsReport;
struct UtilizationReport;
}  // namespace shardscope::traces::analysis

namespace shardscope::traces::report {

enum class Format { table, json, csv };

// The width of a table, in terminal columns, if the caller gives none.
inline constexpr std::size_t kTableWidth = 120;

// JSON shapes: docs and --help name them by the verb ("summary", "modules" ...). Times are in us unless the
// key says otherwise, sizes in bytes. CSV has one header line and one line per row of the result. `width`:
// how wide a table may be; to fit, headers are folded, texts are shortened, and columns continue below.
std::string render(const analysis::ExecutionSummary& summary, Format format, std::size_t width = kTableWidth);
std::string render(const analysis::ModuleView& view, Format format, std::size_t width = kTableWidth);
std::string render(const analysis::MemoryReport& report, Format format, std::size_t width = kTableWidth);
// JSON: the keys of MemoryReport and others. CSV: its rows and others, with two more columns.
std::string render(const analysis::MemoryExplanation& explanation, Format format,
                   std::size_t width = kTableWidth);
std::string render(const analysis::AllocationsReport& report, Format format, std::size_t width = kTableWidth);
std::string render(const analysis::AllocatorReport& report, Format format, std::size_t width = kTableWidth);
std::string render(const analysis::CollectivesReport& report, Format format, std::size_t width = kTableWidth);
std::string render(const analysis::BusBandwidthReport& report, Format format,
                   std::size_t width = kTableWidth);
std::string render(const analysis::Comparison& comparison, Format format, std::size_t width = kTableWidth);
// JSON: the keys of Comparison and others.
std::string render(const analysis::PartsComparison& comparison, Format format,
                   std::size_t width = kTableWidth);
std::string render(const analysis::CriticalPathReport& report, Format format,
                   std::size_t width = kTableWidth);
std::string render(const analysis::AdviceReport& report, Format format, std::size_t width = kTableWidth);
std::string render(const analysis::AnswersReport& report, Format format, std::size_t width = kTableWidth);
std::string render(const analysis::FlightReport& report, Format format, std::size_t width = kTableWidth);
std::string render(const analysis::TraceInfo& info, Format format, std::size_t width = kTableWidth);
std::string render(const analysis::DistributedReport& report, Format format, std::size_t width = kTableWidth);
std::string render(const analysis::StragglersReport& report, Format format, std::size_t width = kTableWidth);
std::string render(const analysis::ScalingReport& report, Format format, std::size_t width = kTableWidth);
std::string render(const analysis::UnitsReport& report, Format format, std::size_t width = kTableWidth);
std::string render(const analysis::OverlapReport& report, Format format, std::size_t width = kTableWidth);
std::string render(const analysis::TemporalReport& report, Format format, std::size_t width = kTableWidth);
std::string render(const analysis::IdleReport& report, Format format, std::size_t width = kTableWidth);
std::string render(const analysis::StepsReport& report, Format format, std::size_t width = kTableWidth);
// JSON: the job, its hosts with their devices and adapters, its ranks. CSV is of devices.
std::string render(const analysis::UtilizationReport& report, Format format, std::size_t width = kTableWidth);
// One metric that was asked for by name: a row for each point. JSON has the points of all, CSV is of points.
std::string render(const analysis::MetricsReport& report, Format format, std::size_t width = kTableWidth);
std::string render(const analysis::SamplesReport& report, Format format, std::size_t width = kTableWidth);
std::string render(const analysis::PipelineReport& report, Format format, std::size_t width = kTableWidth);
std::string render(const analysis::KernelsReport& report, Format format, std::size_t width = kTableWidth);
std::string render(const analysis::OperatorsReport& report, Format format, std::size_t width = kTableWidth);

// A list of rows per rank, printed without any other text. JSON: {"ranks":[{"rank":0,KEY:[...]},...]}.
struct RankRows {
    std::string_view key, nothing;  // `nothing`: the sentence where no rank has a row
    std::vector<int> ranks;
    analysis::ResultTable table;  // by_rank()
};
template <class Row, class Rank>
RankRows rank_rows(std::string_view key, std::string_view nothing, analysis::Fields<Row> fields,
                   const std::vector<Rank>& ranks, std::vector<Row> Rank::*rows) {
    RankRows result{key, nothing, {}, analysis::by_rank(fields, ranks, rows)};
    for (const Rank& rank : ranks) result.ranks.push_back(rank.rank);
    return result;
}
std::string render(const RankRows& rows, Format format, std::size_t width = kTableWidth);

struct Column {
    std::string name;
};

// A free-form result such as a query's. Table: texts are not shortened, numbers are right-aligned, NULL is an
// empty cell. JSON: {"columns":["a",...],"rows":[[1,"x"],...]}.
std::string render_rows(const std::vector<Column>& columns, const std::vector<std::vector<store::Cell>>& rows,
                        Format format);

// What check_trace and check_notes found. Table: one sentence per line, or that the trace is complete. JSON:
// {"file":"...","whole":true,"faults":[...],"notes":[...]}. CSV: the faults.
std::string render_check(const std::string& file, const std::vector<std::string>& faults,
                         const std::vector<std::string>& notes, Format format);

// The text of docs/results.md.
std::string results_markdown();
// The keys of the rows that a verb of shardscope-trace prints as CSV, one line each; "" if they are not
// fixed.
std::string result_keys(std::string_view verb);

}  // namespace shardscope::traces::report
