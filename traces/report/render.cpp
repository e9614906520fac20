// One result, three formats; see report.h.
#include <fmt/core.h>

#include "traces/report/formats.h"
#include "traces/report/text_table.h"

namespace shardscope::traces {
namespace {

template <typename Result>
std::string render_as(const Result& result, Format format, std::size_t width) {
    switch (format) {
        case Format::table:
            return table_text(result, width);
        case Format::json:
            return json_text(result);
        case Format::csv:
            return csv_text(result);
    }
    return {};
}

}  // namespace

std::string render(const ExecutionSummary& summary, Format format, std::size_t width) {
    return render_as(summary, format, width);
}
std::string render(const ModuleView& view, Format format, std::size_t width) {
    return render_as(view, format, width);
}
std::string render(const MemoryReport& report, Format format, std::size_t width) {
    return render_as(report, format, width);
}
std::string render(const MemoryExplanation& explanation, Format format, std::size_t width) {
    return render_as(explanation, format, width);
}
std::string render(const AllocationsReport& report, Format format, std::size_t width) {
    return render_as(report, format, width);
}
std::string render(const CollectivesReport& report, Format format, std::size_t width) {
    return render_as(report, format, width);
}
std::string render(const Comparison& comparison, Format format, std::size_t width) {
    return render_as(comparison, format, width);
}
std::string render(const PartsComparison& comparison, Format format, std::size_t width) {
    return render_as(comparison, format, width);
}
std::string render(const CriticalPathReport& report, Format format, std::size_t width) {
    return render_as(report, format, width);
}
std::string render(const AdviceReport& report, Format format, std::size_t width) {
    return render_as(report, format, width);
}
std::string render(const FlightReport& report, Format format, std::size_t width) {
    return render_as(report, format, width);
}
std::string render(const TraceInfo& info, Format format, std::size_t width) {
    return render_as(info, format, width);
}
std::string render(const DistributedReport& report, Format format, std::size_t width) {
    return render_as(report, format, width);
}
std::string render(const StragglersReport& report, Format format, std::size_t width) {
    return render_as(report, format, width);
}
std::string render(const ScalingReport& report, Format format, std::size_t width) {
    return render_as(report, format, width);
}
std::string render(const UnitsReport& report, Format format, std::size_t width) {
    return render_as(report, format, width);
}
std::string render(const OverlapReport& report, Format format, std::size_t width) {
    return render_as(report, format, width);
}
std::string render(const TemporalReport& report, Format format, std::size_t width) {
    return render_as(report, format, width);
}
std::string render(const IdleReport& report, Format format, std::size_t width) {
    return render_as(report, format, width);
}
std::string render(const StepsReport& report, Format format, std::size_t width) {
    return render_as(report, format, width);
}
std::string render(const KernelsReport& report, Format format, std::size_t width) {
    return render_as(report, format, width);
}
std::string render(const OperatorsReport& report, Format format, std::size_t width) {
    return render_as(report, format, width);
}

std::string render_rows(const std::vector<Column>& columns, const std::vector<std::vector<Cell>>& rows,
                        Format format) {
    switch (format) {
        case Format::table:
            return table_text(columns, rows);
        case Format::json:
            return json_text(columns, rows);
        case Format::csv:
            return csv_text(columns, rows);
    }
    return {};
}

std::string render_check(const std::string& file, const std::vector<std::string>& faults,
                         const std::vector<std::string>& notes, Format format) {
    switch (format) {
        case Format::json:
            return check_json(file, faults, notes);
        case Format::csv: {
            std::vector<std::vector<Cell>> rows;
            rows.reserve(faults.size());
            for (const std::string& fault : faults) rows.push_back({file, fault});
            return csv_text({{"file"}, {"fault"}}, rows);
        }
        case Format::table:
            break;
    }
    std::string text;
    if (faults.empty()) text = fmt::format("{}: whole.\n", printable(file));
    for (const std::string& fault : faults)
        text += printable(fault.starts_with(file) ? fault : file + ": " + fault) + "\n";
    for (const std::string& note : notes)
        text += fmt::format("{}: note: {}\n", printable(file), printable(note));
    return text;
}

}  // namespace shardscope::traces
