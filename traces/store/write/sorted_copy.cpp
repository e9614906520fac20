// A table that is out of order is cut into windows of time, each of about `rows_at_once` rows. A window's
// rows are found in the blocks of neighbouring rows that reach into it (events come nearly in order, so that
// these are few), their numbers are sorted, and one statement copies them.
#include "traces/store/write/sorted_copy.h"

#include <algorithm>
#include <array>
#include <limits>

#include <fmt/core.h>

#include "traces/schema/enums.h"
#include "traces/schema/row_access.h"
#include "traces/store/sqlite/row_insert.h"

namespace shardscope::traces::store {

namespace {

constexpr std::int64_t kBlockRows = 65536;
constexpr std::int64_t kRowsPerSample = 1024;
constexpr std::int64_t kLongest = 4'000'000'000'000'000'000;  // ns; more is damage

struct TimedRow {
    std::int64_t time = 0, row = 0;
};
constexpr std::array kTimedRow = {schema::SchemaColumn{"row", "", "", "", schema::from<&TimedRow::row>}};

struct Window {  // both ends included
    std::int64_t first = 0, last = 0;
};

std::vector<Window> windows_of(const TableSurvey& survey, std::int64_t rows_at_once) {
    const auto samples = static_cast<std::size_t>(std::max<std::int64_t>(1, rows_at_once / kRowsPerSample));
    std::vector<std::int64_t> times = survey.samples;
    std::sort(times.begin(), times.end());
    std::vector<Window> windows = {{std::numeric_limits<std::int64_t>::min(), 0}};
    for (std::size_t i = samples; i < times.size(); i += samples) {
        if (times[i] <= windows.back().first) continue;
        windows.back().last = times[i] - 1;
        windows.push_back({times[i], 0});
    }
    windows.back().last = std::numeric_limits<std::int64_t>::max();
    return windows;
}

bool contains(const std::vector<std::string>& columns, std::string_view name) {
    return std::find(columns.begin(), columns.end(), name) != columns.end();
}

std::string list(const std::vector<std::string>& columns, std::string_view prefix) {
    std::string text;
    for (const auto& c : columns) {
        fmt::format_to(std::back_inserter(text), "{}{}{}", text.empty() ? "" : ", ", prefix, quoted_name(c));
    }
    return text;
}

std::string survey_sql(std::string_view schema, const std::string& table,
                       const std::vector<std::string>& columns, const Totals::Source* source) {
    const auto column = [&](std::string_view name) {
        return contains(columns, name) ? fmt::format("\"{}\"", name) : std::string("NULL");
    };
    std::string sql = fmt::format("SELECT rowid, \"{}\", {}", time_column(columns), column("end"));
    if (source != nullptr) {
        fmt::format_to(std::back_inserter(sql), ", {}, {}, {}, {}", column(source->device),
                       column(source->process), column(source->name),
                       source->where.empty() ? "1" : source->where);
    }
    return sql + fmt::format(" FROM \"{}\".\"{}\"", schema, table);
}

}  // namespace

std::string_view time_column(const std::vector<std::string>& columns) {
    for (const std::string_view name : {"start", "time", "timestamp"}) {
        if (contains(columns, name)) return name;
    }
    return {};
}

TableSurvey survey_table(Database& database, std::string_view schema, const std::string& table,
                         const std::vector<std::string>& columns, Totals& totals, const RowsDone& done) {
    const Totals::Source* source = Totals::source(table);
    TableSurvey survey;
    std::int64_t previous = std::numeric_limits<std::int64_t>::min();
    Statement rows(database, survey_sql(schema, table, columns, source));
    while (rows.step()) {
        const std::int64_t row = rows.integer(0), time = rows.integer(1);
        if (survey.rows % kBlockRows == 0) {
            if (survey.rows > 0) done(kBlockRows);
            survey.blocks.push_back({row, row, time, time});
        }
        if (survey.rows % kRowsPerSample == 0) survey.samples.push_back(time);
        ++survey.rows;
        TableSurvey::Block& block = survey.blocks.back();
        block.last_row = row;
        block.earliest = std::min(block.earliest, time);
        block.latest = std::max(block.latest, time);
        if (time < previous) survey.sorted = false;
        previous = time;

        const bool ends = !rows.is_null(2);
        const std::int64_t end = ends ? rows.integer(2) : time;
        if (end <= kLongest) survey.last_end = std::max(survey.last_end, end);
        if (source == nullptr || !ends || end < time || time < -kLongest || end > kLongest) continue;
        if (rows.integer(6) != 0) {
            totals.add(*source, rows.integer_or(3, -1), rows.integer(4) & schema::kPidMask, rows.integer(5),
                       end - time);
        }
    }
    done(survey.rows % kBlockRows);
    return survey;
}

void copy_table(Database& database, const std::string& table, const std::vector<std::string>& columns) {
    const std::string names = list(columns, "");
    // SQLite copies whole records if the tables have the same columns.
    database.execute(
        fmt::format("INSERT INTO main.{0} ({1}) SELECT {1} FROM run.{0}", quoted_name(table), names));
}

void copy_sorted(Database& database, const std::string& table, const std::vector<std::string>& columns,
                 const TableSurvey& survey, std::int64_t rows_at_once, const RowsDone& done) {
    Statement find(database, fmt::format("SELECT rowid, \"{}\" FROM run.\"{}\" WHERE rowid BETWEEN ?1 AND ?2",
                                         time_column(columns), table));
    RowFeed order(database, "order_of_rows", kTimedRow, sizeof(TimedRow));
    Statement copy(database,
                   fmt::format("INSERT OR FAIL INTO main.\"{0}\" ({1}) SELECT {2} FROM order_of_rows o "
                               "CROSS JOIN run.\"{0}\" t WHERE t.rowid = o.row",
                               table, list(columns, ""), list(columns, "t.")));
    std::vector<TimedRow> places;
    for (const Window& window : windows_of(survey, rows_at_once)) {
        places.clear();
        for (const TableSurvey::Block& block : survey.blocks) {
            if (block.latest < window.first || block.earliest > window.last) continue;
            find.bind(1, block.first_row);
            find.bind(2, block.last_row);
            while (find.step()) {
                const std::int64_t time = find.integer(1);
                if (time >= window.first && time <= window.last) places.push_back({time, find.integer(0)});
            }
            find.reset();
        }
        std::sort(places.begin(), places.end(), [](const TimedRow& a, const TimedRow& b) {
            return a.time != b.time ? a.time < b.time : a.row < b.row;
        });
        // In blocks, so that a cancel takes effect soon.
        for (std::size_t i = 0; i < places.size(); i += kBlockRows) {
            const std::size_t count = std::min<std::size_t>(kBlockRows, places.size() - i);
            order.run(copy, &places[i], count);
            done(static_cast<std::int64_t>(count));
        }
    }
}

}  // namespace shardscope::traces::store
