// What every analysis verb does: opens the files, selects, analyses, prints.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "traces/cli/arguments.h"
#include "traces/cli/verb.h"
#include "traces/report/text_table.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::query {
struct AsDatabaseOptions;
}

namespace shardscope::traces::cli {

// How wide tables on standard output may be, in columns, from 40 to 1000: the COLUMNS environment variable,
// else the width of the terminal, else kTableWidth (for a file or a pipe).
std::size_t table_width();

inline constexpr std::string_view kNothingOnDevices =
    "Nothing is recorded on a device in this trace: the job ran on processors, or its kernels were not "
    "recorded "
    "(ProfilerActivity.CUDA, shardscope-record --cuda). summary, modules, operators, collectives, memory and "
    "critical-path say what the host did.";

// The rendered result; but of a trace without a rank, where it only says that nothing is selected: what the
// trace holds instead, and what shows it.
std::string instead_of_nothing(const store::Trace& trace, std::string rendered);

// Opens the files together. Throws UsageError or StoreError; notes about how they are read go to standard
// error.
std::unique_ptr<store::Trace> load(const Inputs& inputs);

// The options with which query and export open the files as a database. Throws UsageError.
query::AsDatabaseOptions database_options(const Inputs& inputs);

// `analysis(trace, selection)` returns what render() prints. Parses before it loads, so that a wrong option
// is reported immediately.
template <typename Analysis>
int analyse(const Inputs& inputs, Analysis analysis) {
    const analysis::Selection selection = parse_selection(inputs.selection);
    const auto trace = load(inputs);
    check_selection(selection, *trace);
    print(instead_of_nothing(*trace,
                             report::render(analysis(*trace, selection), inputs.format, table_width())));
    return kDone;
}

// The same for analyses of device work. If nothing ran on a device, or device work was not recorded, its
// times are not 0 but unknown: one sentence says so, and programs get a result without a row.
// `tells_of_host(report)`: whether the report has something to print nevertheless.
template <typename Analysis, typename TellsOfHost>
int analyse_devices(const Inputs& inputs, Analysis analysis, TellsOfHost tells_of_host) {
    const analysis::Selection selection = parse_selection(inputs.selection);
    const auto trace = load(inputs);
    check_selection(selection, *trace);
    using Report = decltype(analysis(*trace, selection));
    // Even a trace without device work may contain which rank stopped first.
    const bool known = trace->device.size() > 0 || !trace->stops.empty();
    const Report report = analysis(*trace, selection);
    if (known || tells_of_host(report)) {
        print(report::render(report, inputs.format, table_width()));
    } else if (inputs.format == report::Format::table) {
        print(report::paragraph(kNothingOnDevices, table_width()));
    } else {
        print(report::render(Report(), inputs.format, table_width()));
    }
    return kDone;
}
template <typename Analysis>
int analyse_devices(const Inputs& inputs, Analysis analysis) {
    return analyse_devices(inputs, analysis, [](const auto&) { return false; });
}

}  // namespace shardscope::traces::cli
