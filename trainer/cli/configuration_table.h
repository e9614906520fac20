// Shared by the reports of `plan JOB.toml` (planner::Row) and `plan TRACE` (lift::Replay): a table with one
// row per configuration, and the names of configurations. A Row has a number, a Job, can_be(), and the marks
// front and same_as.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "traces/report/text_table.h"
#include "trainer/job/keys.h"
#include "trainer/job/strategy.h"

namespace shardscope::trainer::cli {

constexpr double kMB = 1 << 20;

inline std::string mb(std::int64_t bytes) {
    return traces::store::grouped(static_cast<double>(bytes) / kMB, 1);
}
inline std::string ms(double seconds) {
    return traces::store::grouped(seconds * 1e3, 2);
}

// --- names of configurations -------------------------------------------------------------------------------

// "FULL_SHARD", "HYBRID_SHARD of 8", "ddp", "none".
inline std::string strategy_text(const job::Job& job) {
    if (job.parallel.mode != job::ParallelMode::fsdp) return text_of(job, "parallel.mode");
    const std::string name = text_of(job, "fsdp.sharding_strategy");
    return job.fsdp.shard_group > 0 ? fmt::format("{} of {}", name, job.fsdp.shard_group) : name;
}

// "-" if nothing is gathered.
inline std::string text_of_gathers(const job::Job& job, std::string_view full_name) {
    return gathers(job) ? text_of(job, full_name) : "-";
}

inline std::string yes_no(const std::string& truth) {
    return truth == "true" ? "yes" : truth == "false" ? "no" : truth;
}

// --- tables -----------------------------------------------------------------------------------------------

template <class Row>
struct Column {
    std::string header;
    traces::report::Align align = traces::report::Align::left;
    std::function<std::string(const Row&)> cell;
};

// One column per key that is not among `shown`.
template <class Row, std::size_t kCount>
std::vector<Column<Row>> key_columns(const std::vector<std::string>& keys,
                                     const std::array<std::string_view, kCount>& shown) {
    std::vector<Column<Row>> columns;
    for (const std::string& key : keys) {
        if (std::find(shown.begin(), shown.end(), key) != shown.end()) continue;
        columns.push_back({key.substr(key.find('.') + 1), traces::report::Align::left,
                           [key](const Row& row) { return job::text_of(row.job, key); }});
    }
    return columns;
}

template <class Row>
std::string table_of(const std::vector<const Row*>& rows, const std::vector<Column<Row>>& columns) {
    std::vector<traces::report::Align> align = {traces::report::Align::right};
    std::vector<std::string> header = {"row"};
    for (const Column<Row>& column : columns) {
        align.push_back(column.align);
        header.push_back(column.header);
    }
    traces::report::TextTable table(align);
    table.header(header);
    for (const Row* row : rows) {
        std::vector<std::string> cells = {std::to_string(row->number)};
        for (const Column<Row>& column : columns) cells.push_back(column.cell(*row));
        table.row(cells);
    }
    return table.text();
}

// The rows on the Pareto front, and the best of the others.
template <class Row>
struct FrontAndRest {
    static constexpr std::size_t kRestShown = 10;

    std::vector<const Row*> front, rest;
    std::size_t all_rest = 0;

    // `all` includes even rows with the same figures as another row; wanted(row) includes that one.
    template <class Before, class Wanted>
    FrontAndRest(const std::vector<Row>& rows, bool all, Before before, Wanted wanted) {
        for (const Row& row : rows) {
            if (!row.can_be()) continue;
            if (row.front) {
                front.push_back(&row);
            } else if (all || row.same_as == 0 || wanted(row)) {
                rest.push_back(&row);
            }
        }
        std::sort(front.begin(), front.end(), before);
        std::sort(rest.begin(), rest.end(), before);
        all_rest = rest.size();
        if (!all && rest.size() > kRestShown) rest.resize(kRestShown);
    }

    // Empty if every row is on the front.
    std::string rest_table(std::string_view title, const std::vector<Column<Row>>& columns) const {
        if (rest.empty()) return "";
        return fmt::format(
            "\n{}{}\n{}", title,
            all_rest > rest.size() ? fmt::format(" ({} of {}; --all shows all)", rest.size(), all_rest) : "",
            table_of(rest, columns));
    }
};

// One line per reason, with the number of `thing`s that it rules out; reason_of() is empty for possible rows.
template <class Row, class Reason>
std::string impossible_lines(const std::vector<Row>& rows, const char* thing, Reason reason_of) {
    std::map<std::string, int> reasons;
    for (const Row& row : rows) {
        if (const std::string reason = reason_of(row); !reason.empty()) ++reasons[reason];
    }
    std::string text;
    for (const auto& [reason, n] : reasons)
        text += fmt::format("{} {}{} impossible: {}\n", n, thing, n == 1 ? "" : "s", reason);
    return text;
}

}  // namespace shardscope::trainer::cli
