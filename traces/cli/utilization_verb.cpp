// utilization: what devices, hosts and ranks did, as a table, or as a page or picture to be sent.
#include <cmath>
#include <string>

#include <fmt/core.h>

#include "traces/analysis/job/utilization.h"
#include "traces/cli/analyse.h"
#include "traces/cli/arguments.h"
#include "traces/cli/verb.h"
#include "traces/export/text_output.h"
#include "traces/report/html_use.h"
#include "traces/report/use_lanes.h"
#include "traces/store/grouped.h"

namespace shardscope::traces::cli {

const double& price_option(Options& options) {
    return options.number("--price-per-device-hour", 0, "X",
                          "What a device costs for an hour, in any currency; without: what a simulated run's "
                          "cluster says");
}

void check_price(double price) {
    if (!(price >= 0) || !std::isfinite(price))
        throw UsageError("--price-per-device-hour is a price, 0 or more");
}

Work utilization_verb(Options& options) {
    const std::string& path =
        options.text("-o,--output", "OUT.html|OUT.svg",
                     "Write a page or a picture instead: a lane for each device over the whole job");
    const double& price = price_option(options);
    const std::string& title = options.text("--title", "TEXT", "Its title; without: the name of the file");
    const bool& redact = options.flag("--redact", "Omit names of machines and paths in it");
    const bool& overwrite = options.flag("--overwrite", "Replace the file if it exists");
    for (const char* option : {"--title", "--redact", "--overwrite"}) options.needs(option, "--output");
    return [&](const Inputs& inputs) {
        const analysis::Selection selection = parse_selection(inputs.selection);
        check_price(price);
        const bool svg = path.ends_with(".svg");
        if (!path.empty()) {
            if (!svg && !path.ends_with(".html") && !path.ends_with(".htm"))
                throw UsageError(
                    fmt::format("{}: the name of the page ends with .html, of the picture with .svg", path));
            check_page(inputs, path, overwrite);
        }
        analysis::UtilizationOptions use;
        if (!path.empty()) use = report::kPageLanes;
        use.price_per_device_hour = price;
        const auto trace = load(inputs);
        check_selection(selection, *trace);
        const analysis::UtilizationReport report = utilization_report(*trace, selection, use);
        if (path.empty()) {
            print(report::render(report, inputs.format, table_width()));
            return kDone;
        }
        if (!report.any_sample()) throw UsageError(report.notes.front());
        const std::string name = title.empty() ? report::run_name(inputs.files.front()) : title;
        const std::string text = svg ? report::utilization_picture(report, name, redact)
                                     : report::utilization_page(report, name, redact);
        if (text.empty()) throw UsageError("No device of this trace has samples of its utilization");
        exports::TextOutput output(path, overwrite, false);
        output.buffer() = text;
        output.finish();
        fmt::print(stderr, "shardscope-trace: {} written, {} bytes\n", path,
                   store::grouped(static_cast<std::int64_t>(text.size())));
        return kDone;
    };
}

}  // namespace shardscope::traces::cli
