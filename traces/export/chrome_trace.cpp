#include "traces/export/chrome_trace.h"

#include <filesystem>

#include "traces/export/chrome_context.h"
#include "traces/store/sqlite/open.h"

namespace shardscope::traces::exports {

ChromeExportResult export_chrome(const std::string& input, const std::string& output,
                                 const ChromeExportOptions& options, const merge::WorkOptions& work) {
    store::Database database = store::open_trace(input);
    trust_tables_only(database);
    TextOutput file(output, options.overwrite, options.pack);
    ChromeContext context(database, file, work);
    std::int64_t start_utc_ns = 0;
    if (database.has_table("TARGET_INFO_SESSION_START_TIME"))
        start_utc_ns = database.integer("SELECT utcEpochNs FROM TARGET_INFO_SESSION_START_TIME");
    write_head(context, start_utc_ns);
    write_device_events(context);
    write_synchronizations(context);
    write_host_events(context);
    write_memory(context);
    write_names(context);
    context.out() += "\n],\n\"traceName\":";
    append_json(context.out(), std::filesystem::path(output).filename().string());
    context.out() += "}\n";
    file.finish();
    return {.events = context.events(), .bytes = file.bytes()};
}

}  // namespace shardscope::traces::exports
