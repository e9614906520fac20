#include "traces/merge/launched_work.h"

#include <algorithm>

#include <fmt/core.h>

#include "traces/merge/part.h"
#include "traces/schema/column_roles.h"

namespace shardscope::traces::merge {

namespace {

constexpr const char* kCalls = "CUPTI_ACTIVITY_KIND_RUNTIME";

}  // namespace

void NumberSet::close() {
    std::sort(numbers_.begin(), numbers_.end());
    numbers_.erase(std::unique(numbers_.begin(), numbers_.end()), numbers_.end());
}

bool NumberSet::has(std::int64_t number) const {
    return std::binary_search(numbers_.begin(), numbers_.end(), number);
}

void NumberSet::remove(const NumberSet& others) {
    std::erase_if(numbers_, [&](std::int64_t number) { return others.has(number); });
}

std::pair<std::string, std::string> times_of(Part& part, const schema::SchemaTable& table) {
    std::string start, end;
    for (const schema::SchemaColumn& column : table.columns) {
        const schema::ColumnRole role = column_role(table.name, column);
        if (role != schema::ColumnRole::time && role != schema::ColumnRole::time_or_zero) continue;
        if (!part.database.has_column(table.name, column.name)) continue;
        if (column.name == "end") {
            end = "\"end\"";
        } else if (start.empty()) {
            start = fmt::format("\"{}\"", column.name);
        }
    }
    if (end.empty()) return {start, start};
    return {start, fmt::format("coalesce(\"end\", {})", start)};
}

void LaunchedWork::find(Part& part, const SliceWindows& windows) {
    const Window hull = windows.hull();
    const bool calls = part.has_table(kCalls);
    if (calls) {
        store::Statement call(part.database,
                              fmt::format("SELECT correlationId, globalTid, start FROM {} WHERE +start >= {} "
                                          "AND +start < {} AND correlationId NOT NULL",
                                          kCalls, hull.from, hull.to));
        while (call.step()) {
            if (holds(windows.of_thread(call.integer(1)), call.integer(2))) launched_.add(call.integer(0));
        }
        launched_.close();
    }
    for (const schema::SchemaTable& table : schema::nsight_device_tables()) {
        if (!part.has_table(table.name) || !part.database.has_column(table.name, "deviceId") ||
            !part.database.has_column(table.name, "correlationId"))
            continue;
        const auto [start, end] = times_of(part, table);
        store::Statement row(
            part.database,
            fmt::format("SELECT correlationId, deviceId, globalPid, {0}, {1} FROM \"{2}\" WHERE +{0} < {3} "
                        "AND +{1} >= {4} AND correlationId <> 0",
                        start, end, table.name, hull.to, hull.from));
        while (row.step()) {
            const auto& own = windows.of_device(row.integer(1), row.integer(2));
            if (is_there(own, row.integer(3), row.integer(4)) && !launched_.has(row.integer(0)))
                beside_.add(row.integer(0));
        }
    }
    beside_.close();
    if (!by_steps_ || beside_.empty() || !calls) return;
    NumberSet elsewhere;
    store::Statement call(part.database, fmt::format("SELECT correlationId FROM {}", kCalls));
    while (call.step()) {
        if (beside_.has(call.integer(0))) elsewhere.add(call.integer(0));
    }
    elsewhere.close();
    beside_.remove(elsewhere);
}

bool LaunchedWork::is_there(const SliceWindows::Windows& windows, std::int64_t start,
                            std::int64_t end) const {
    return by_steps_ ? holds(windows, start) : meets(windows, start, end);
}

bool LaunchedWork::keeps(std::int64_t correlation, const SliceWindows::Windows& windows, std::int64_t start,
                         std::int64_t end) const {
    return correlation != 0 ? has(correlation) : is_there(windows, start, end);
}

}  // namespace shardscope::traces::merge
