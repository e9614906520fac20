// timeline: the rows of a trace as one HTML file that zooms in a browser.
#include <fmt/core.h>

#include "traces/cli/analyse.h"
#include "traces/cli/arguments.h"
#include "traces/cli/verb.h"
#include "traces/export/text_output.h"
#include "traces/import/inputs.h"
#include "traces/report/timeline/html_timeline.h"
#include "traces/store/apart.h"
#include "traces/store/error.h"
#include "traces/store/grouped.h"

namespace shardscope::traces::cli {

void check_page(const Inputs& inputs, const std::string& path, bool overwrite) {
    for (const std::string& file : inputs.files) check_input_or_folder(file);
    try {
        store::check_apart(importer::file_paths(inputs.files), path);
        exports::TextOutput::check(path, overwrite);
    } catch (const store::StoreError& error) {
        throw UsageError(error.what());
    }
}

Work timeline_verb(Options& options) {
    const std::string& path = options.required_text("-o,--output", "OUT.html", "The file to write");
    const std::string& fit =
        options.text("--fit", "SIZE",
                     "The most bytes of the file, for example 2M; without: 5,000,000. Short "
                     "events that do not fit are folded, and the page says how many");
    const std::string& title = options.text("--title", "TEXT", "Its title; without: the name of the file");
    const bool& redact = options.flag("--redact", "Omit names of machines, and paths");
    const bool& overwrite = options.flag("--overwrite", "Replace OUT.html if it exists");
    return [&](const Inputs& inputs) {
        const analysis::Selection selection = parse_selection(inputs.selection);
        report::TimelineOptions timeline{.title = title, .redact = redact};
        if (!fit.empty()) timeline.most_bytes = parse_size(fit, "--fit");
        check_page(inputs, path, overwrite);
        const auto trace = load(inputs);
        check_selection(selection, *trace);
        try {
            const report::TimelinePage page =
                html_timeline(*trace, inputs.files.front(), selection, timeline);
            exports::TextOutput output(path, overwrite, false);
            output.buffer() = page.html;
            output.finish();
            fmt::print(stderr, "shardscope-trace: {} written, {} bytes. {}\n", path,
                       store::grouped(static_cast<std::int64_t>(page.html.size())), page.sentence);
        } catch (const report::NoTimeline& error) {
            throw UsageError(error.what());
        }
        return kDone;
    };
}

}  // namespace shardscope::traces::cli
