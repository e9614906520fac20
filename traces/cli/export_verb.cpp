#include "traces/cli/export_verb.h"

#include <fmt/core.h>

#include "traces/cli/long_work.h"
#include "traces/cli/merge_verbs.h"
#include "traces/cli/verbs.h"
#include "traces/export/chrome_trace.h"
#include "traces/export/csv_tables.h"
#include "traces/export/text_output.h"
#include "traces/import/inputs.h"
#include "traces/query/as_database.h"
#include "traces/store/apart.h"

namespace shardscope::traces {

namespace {

void print_chrome(const std::string& output, const ChromeExportResult& result, Format format) {
    print(
        render_rows({{"file"}, {"events"}, {"json_bytes"}}, {{output, result.events, result.bytes}}, format));
}

void print_csv(const std::string& folder, const std::vector<CsvTable>& tables, Format format) {
    std::vector<std::vector<Cell>> rows;
    rows.reserve(tables.size());
    for (const CsvTable& table : tables) rows.push_back({folder + "/" + table.file, table.rows});
    print(render_rows({{"file"}, {"rows"}}, rows, format));
}

}  // namespace

int run_export(const Inputs& inputs, const std::string& to, const std::string& output, bool overwrite) {
    if (to == "sqlite") return run_import(inputs, output, overwrite);
    if (to != "chrome" && to != "csv")
        throw UsageError(fmt::format("--to {} is unknown; use chrome, csv or sqlite", to));
    for (const std::string& file : inputs.files) check_input_or_folder(file);
    try {
        const LongWork work("exporting");
        if (to == "chrome") {
            try {
                check_apart(file_paths(inputs.files), output);
                TextOutput::check(output, overwrite);
            } catch (const StoreError& error) {
                throw UsageError(error.what());
            }
        }
        AsDatabaseOptions as_ours = database_options(inputs);
        as_ours.ours = true;
        const AsDatabase database(as_ours, work.options());
        print_notes(database.notes());
        if (to == "csv") {
            print_csv(output, export_csv(database.path(), output, overwrite, work.options()), inputs.format);
            return kDone;
        }
        const ChromeExportOptions options{.overwrite = overwrite, .pack = output.ends_with(".gz")};
        print_chrome(output, export_chrome(database.path(), output, options, work.options()), inputs.format);
        return kDone;
    } catch (const Cancelled&) {
        fmt::print(stderr, "shardscope-trace: exporting was stopped; {} was not written\n", output);
        return LongWork::stopped_status() != 0 ? LongWork::stopped_status() : kFailed;
    }
}

}  // namespace shardscope::traces
