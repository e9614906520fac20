// Functions by processor time, from a profiler's samples.
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "traces/analysis/samples/flame.h"
#include "traces/report/print.h"

namespace shardscope::traces::report {
namespace {

using Json = nlohmann::ordered_json;

std::string table_text(const analysis::SamplesReport& report, std::size_t width) {
    const auto events = [&] {
        std::string list;
        for (const std::string& event : report.other_events)
            list += (list.empty() ? "" : ", ") + printable(event);
        return list;
    };
    if (report.samples == 0) {
        return report.other_events.empty()
                   ? paragraph(
                         "No samples of threads are in the selection. Record the program with "
                         "shardscope-record "
                         "--sample 997, or with perf record -g and give what perf script prints.",
                         width)
                   : fmt::format("No samples of that event; there are some of {}.\n", events());
    }
    std::string text = store::counted(report.samples, "sample", "samples") + " of " + printable(report.event);
    if (report.is_time) text += fmt::format(", {} µs of processor time", us(to_us(report.total)));
    text += fmt::format("; {}", store::counted(report.distinct, "function", "functions"));
    if (size_of(report.functions) < report.distinct)
        text += fmt::format("; the first {}", store::grouped(size_of(report.functions)));
    text += '\n';
    analysis::ResultTable table = result_table(analysis::function_fields(), report.functions);
    if (!report.is_time) table = without(std::move(table), {"self_us", "total_us"});
    text += text_of(table, width);
    if (!report.other_events.empty()) text += fmt::format("Other events, with --event: {}\n", events());
    return text;
}

std::string json_text(const analysis::SamplesReport& report) {
    return json_line(
        Json{{"event", report.event},
             {"unit", report.is_time ? "ns" : "count"},
             {"samples", report.samples},
             {"total", report.total},
             {"distinct", report.distinct},
             {"other_events", report.other_events},
             {"functions", json_of(result_table(analysis::function_fields(), report.functions))}});
}

std::string csv_text(const analysis::SamplesReport& report) {
    return csv_of(result_table(analysis::function_fields(), report.functions));
}

}  // namespace

std::string render(const analysis::SamplesReport& report, Format format, std::size_t width) {
    return render_as(report, format, width, table_text, json_text, csv_text);
}

}  // namespace shardscope::traces::report
