// samples: functions by processor time, the stacks in folded form, or a flame graph.
#include <fmt/core.h>

#include "traces/analysis/samples/flame.h"
#include "traces/cli/analyse.h"
#include "traces/cli/arguments.h"
#include "traces/cli/verb.h"
#include "traces/export/text_output.h"
#include "traces/report/flame_graph.h"
#include "traces/report/report.h"

namespace shardscope::traces::cli {

Work samples_verb(Options& options) {
    const auto& top = top_option(options);
    const std::string& event =
        options.text("--event", "NAME", "Samples of this event; without: of the one with most samples");
    const bool& folded =
        options.flag("--folded", "The stacks, one a line with their weight, as other flame graphs read them");
    const std::string& path = options.text("-o,--output", "OUT.svg", "A flame graph, written to this file");
    const bool& overwrite = options.flag("--overwrite", "Replace OUT.svg if it exists");
    options.excludes("--folded", "--output");
    options.needs("--overwrite", "--output");
    return [&](const Inputs& inputs) {
        const std::size_t most = most_rows(inputs, top);
        const analysis::Selection selection = parse_selection(inputs.selection);
        if (!path.empty()) check_page(inputs, path, overwrite);
        const auto trace = load(inputs);
        check_selection(selection, *trace);
        const analysis::SamplesReport report = samples_report(*trace, selection, {.event = event}, most);
        if (folded) {
            print(folded_stacks(report));
            return kDone;
        }
        if (path.empty()) {
            print(report::render(report, inputs.format, table_width()));
            return kDone;
        }
        if (report.samples == 0)
            throw UsageError(fmt::format(
                "{} has no samples of threads in the selection; record the program with "
                "shardscope-record --sample 997, or with perf record -g and give what perf script prints",
                inputs.files.front()));
        exports::TextOutput output(path, overwrite, false);
        output.buffer() = report::flame_graph_svg(report, inputs.files.front());
        output.finish();
        fmt::print(stderr, "shardscope-trace: {} written\n", path);
        return kDone;
    };
}

}  // namespace shardscope::traces::cli
