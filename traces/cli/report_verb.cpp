#include "traces/cli/report_verb.h"

#include <memory>

#include <fmt/core.h>

#include "traces/cli/analyse.h"
#include "traces/cli/verbs.h"
#include "traces/export/text_output.h"
#include "traces/import/inputs.h"
#include "traces/report/html_report.h"
#include "traces/report/reported_run.h"
#include "traces/store/apart.h"
#include "traces/store/columns/trace.h"
#include "traces/store/error.h"

namespace shardscope::traces {

int run_report(const ReportArguments& arguments) {
    const Selection selection = parse_selection(arguments.inputs.selection);
    for (const std::string& file : arguments.inputs.files) check_input_or_folder(file);
    try {
        check_apart(file_paths(arguments.inputs.files), arguments.output);
        TextOutput::check(arguments.output, arguments.overwrite);
    } catch (const StoreError& error) {
        throw UsageError(error.what());
    }
    std::vector<std::unique_ptr<Trace>> traces;
    std::vector<const Trace*> pointers;
    std::vector<ReportedRun> runs;
    for (const std::string& file : arguments.inputs.files) {
        Inputs one = arguments.inputs;
        one.files = {file};
        traces.push_back(load(one));
        check_selection(selection, *traces.back());
        pointers.push_back(traces.back().get());
        runs.push_back(reported_run(*traces.back(), file, selection));
    }
    const auto comparison = reported_comparison(pointers, std::vector<Selection>(pointers.size(), selection));
    TextOutput output(arguments.output, arguments.overwrite, false);
    output.buffer() = html_report(runs, comparison, {.title = arguments.title, .redact = arguments.redact});
    output.finish();
    fmt::print(stderr, "shardscope-trace: {} written\n", arguments.output);
    return kDone;
}

}  // namespace shardscope::traces
