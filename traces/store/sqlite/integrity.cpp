#include "traces/store/sqlite/integrity.h"

#include <fmt/core.h>

#include "traces/store/sqlite/open.h"

namespace shardscope::traces::store {

namespace {

constexpr int kMostFaults = 100;  // SQLite stops the check after this many

}  // namespace

std::string damage_of(const std::string& path) {
    Database database = open_trace(path);
    std::string first;
    int faults = 0;
    try {
        // Checks only the file: what open_trace() added for the connection is in memory.
        Statement statement(database, fmt::format("PRAGMA main.integrity_check({})", kMostFaults));
        while (statement.step()) {
            if (statement.text(0) == "ok") return "";
            if (faults++ == 0) first = statement.text(0);
        }
    } catch (const StoreError& error) {
        if (faults == 0) return error.what();
    }
    // SQLite puts several lines into its first row.
    first = first.substr(first.starts_with("*** in database") ? first.find('\n') + 1 : 0);
    first = first.substr(0, first.find('\n'));
    return fmt::format("{} is damaged ({}{}); copy it again from where it was recorded", path, first,
                       faults > 1 ? fmt::format(", and {} more faults",
                                                faults >= kMostFaults ? "many" : std::to_string(faults - 1))
                                  : "");
}

}  // namespace shardscope::traces::store
