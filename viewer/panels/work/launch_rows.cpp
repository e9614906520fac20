// See launch_rows.h.
#include "viewer/panels/work/launch_rows.h"

#include <algorithm>
#include <variant>

#include <fmt/core.h>

#include "traces/schema/memory_kinds.h"
#include "traces/schema/sort_rows.h"
#include "traces/store/columns/names.h"
#include "viewer/draw/format.h"
#include "viewer/draw/short_name.h"

namespace shardscope::viewer::panels {
namespace {

using Cell = tables::CellTable::Cell;
using Kind = tables::TableColumn::Kind;
using traces::store::QueryValue;
using Values = std::vector<QueryValue>;

std::int64_t integer(const QueryValue& value) {
    const auto* whole = std::get_if<std::int64_t>(&value);
    return whole != nullptr ? *whole : 0;
}

std::string in_range(const LaunchRange& range) {
    std::string sql = "WHERE \"end\" >= start";
    if (range.from) sql += fmt::format(" AND start >= {}", *range.from);
    if (range.to) sql += fmt::format(" AND start < {}", *range.to);
    return sql;
}

// The rank of the process with this device; if there is none, the device's first rank.
traces::store::RankIndex rank_of(const traces::store::Trace& trace, std::int64_t device, std::int64_t pid) {
    traces::store::RankIndex of_device;
    for (std::size_t i = 0; i < trace.ranks.size(); ++i) {
        if (trace.ranks[i].device != device) continue;
        if (trace.ranks[i].global_pid == pid) return traces::store::RankIndex(i);
        if (!of_device.known()) of_device = traces::store::RankIndex(i);
    }
    return of_device;
}

template <class Row>
void sort_by_time(std::vector<Row>& rows) {
    traces::schema::sort_rows(rows, [](const Row& a, const Row& b) { return a.ns > b.ns; });
}

std::string memory_kind(const QueryValue& value) {
    const auto* kind = std::get_if<std::int64_t>(&value);
    const std::string_view name = kind ? traces::schema::memory_kind_name(*kind) : "";
    return std::string(name.empty() ? "-" : name);
}

std::string size_text(const std::int64_t (&size)[3]) {
    return fmt::format("{} x {} x {}", size[0], size[1], size[2]);
}

double product(const std::int64_t (&size)[3]) {
    return static_cast<double>(size[0]) * static_cast<double>(size[1]) * static_cast<double>(size[2]);
}

Cell mean_cell(std::int64_t ns, std::int64_t count) {
    return count > 0 ? tables::us_cell(static_cast<double>(ns) * 1e-3 / static_cast<double>(count))
                     : tables::no_cell();
}

}  // namespace

std::string launches_sql(const LaunchRange& range) {
    // In a group with max(), SQLite takes the other columns from the row of the maximum: here the start.
    return fmt::format(
        R"(SELECT k.device, k.pid, coalesce(nullif(d.value, ''), s.value, ''), k.gx, k.gy, k.gz, k.bx, k.by, k.bz,
       k.registers, k.shared, k.count, k.ns, k.longest, k.start
FROM (SELECT deviceId AS device, globalPid AS pid, shortName AS short, demangledName AS demangled,
             gridX AS gx, gridY AS gy, gridZ AS gz, blockX AS bx, blockY AS by, blockZ AS bz,
             registersPerThread AS registers, staticSharedMemory + dynamicSharedMemory AS shared,
             count(*) AS count, sum("end" - start) AS ns, max("end" - start) AS longest, start
      FROM CUPTI_ACTIVITY_KIND_KERNEL {}
      GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12) k
LEFT JOIN StringIds s ON s.id = k.short
LEFT JOIN StringIds d ON d.id = k.demangled)",
        in_range(range));
}

std::string copies_sql(const LaunchRange& range) {
    return fmt::format(
        R"(SELECT deviceId, globalPid, copyKind, srcKind, dstKind, sum(bytes), count(*), sum("end" - start),
       max("end" - start), start
FROM CUPTI_ACTIVITY_KIND_MEMCPY {}
GROUP BY 1, 2, 3, 4, 5)",
        in_range(range));
}

bool Launches::known() const {
    return product(grid) != 1 || product(block) != 1 || registers > 0;
}

std::vector<Launches> launches_of(const traces::store::QueryResult& answer,
                                  const traces::store::Trace& trace) {
    std::vector<Launches> all;
    for (const Values& values : answer.rows) {
        const auto at = [&](std::size_t column) { return integer(values[column]); };
        Launches row;
        row.rank = rank_of(trace, at(0), at(1));
        if (!row.rank.known()) continue;
        if (const auto* name = std::get_if<std::string>(&values[2])) row.name = draw::readable_name(*name);
        for (std::size_t i = 0; i < 3; ++i) {
            row.grid[i] = at(3 + i);
            row.block[i] = at(6 + i);
        }
        row.registers = at(9);
        row.shared_bytes = at(10);
        row.count = at(11);
        row.ns = at(12);
        row.longest_ns = at(13);
        row.longest_start = at(14);
        all.push_back(std::move(row));
    }
    sort_by_time(all);
    return all;
}

std::vector<Copies> copies_of(const traces::store::QueryResult& answer, const traces::store::Trace& trace) {
    std::vector<Copies> all;
    for (const Values& values : answer.rows) {
        const auto at = [&](std::size_t column) { return integer(values[column]); };
        Copies row;
        row.rank = rank_of(trace, at(0), at(1));
        if (!row.rank.known()) continue;
        row.name = traces::store::memcpy_name(static_cast<int>(std::clamp<std::int64_t>(at(2), 0, 255)));
        row.from = memory_kind(values[3]);
        row.to = memory_kind(values[4]);
        row.bytes = at(5);
        row.count = at(6);
        row.ns = at(7);
        row.longest_ns = at(8);
        row.longest_start = at(9);
        all.push_back(std::move(row));
    }
    sort_by_time(all);
    return all;
}

std::shared_ptr<const tables::TableModel> launch_table(const std::vector<Launches>& all,
                                                       traces::store::RankIndex rank) {
    auto table = std::make_shared<tables::CellTable>(std::vector<tables::TableColumn>{
        {"name", "Kernel", "", Kind::text, 0, 20, 0, "The kernel's name.", 0, 24},
        {"grid", "Grid", "blocks", Kind::text, 9, 18, 0, "Blocks of a launch in x, y and z."},
        {"block", "Block", "threads", Kind::text, 8, 17, 0, "Threads of a block in x, y and z."},
        {"blocks", "Blocks", "a launch", Kind::number, 6.5F, 9, 0, "In the whole grid."},
        {"threads", "Threads", "a block", Kind::number, 5.5F, 10, 0, "In the whole block."},
        {"registers", "Registers", "a thread", Kind::number, 6, 16, 0, {}},
        {"shared_kb", "Shared", "KiB a block", Kind::number, 6.5F, 15, 0,
         "Shared memory of a block, static and dynamic."},
        {"count", "Count", "", Kind::number, 5, 13, 0, "Kernels launched with this size."},
        {"us", "Total", "\u00b5s", Kind::number, 7.5F, 19,
         theme::time_category_color(traces::analysis::TimeCategory::kernel), "The sum of their durations."},
        {"mean_us", "Mean", "\u00b5s", Kind::number, 6, 14, 0, {}},
        {"longest_us", "Longest", "\u00b5s", Kind::number, 6, 12, 0, {}},
    });
    for (const std::size_t i : rows_of(all, rank)) {
        const Launches& row = all[i];
        const bool known = row.known();
        table->add({tables::text_cell(row.name), tables::text_cell(known ? size_text(row.grid) : "-"),
                    tables::text_cell(known ? size_text(row.block) : "-"),
                    known ? tables::decimal_cell(product(row.grid), 0) : tables::no_cell(),
                    known ? tables::decimal_cell(product(row.block), 0) : tables::no_cell(),
                    row.registers > 0 ? tables::count_cell(row.registers) : tables::no_cell(),
                    known ? tables::decimal_cell(static_cast<double>(row.shared_bytes) / 1024, 1)
                          : tables::no_cell(),
                    tables::count_cell(row.count), tables::ns_cell(row.ns), mean_cell(row.ns, row.count),
                    tables::ns_cell(row.longest_ns)});
    }
    return table;
}

std::shared_ptr<const tables::TableModel> copy_table(const std::vector<Copies>& all,
                                                     traces::store::RankIndex rank) {
    auto table = std::make_shared<tables::CellTable>(std::vector<tables::TableColumn>{
        {"name", "Copy", "", Kind::text, 0, 20, 0, "From where to where."},
        {"from", "From", "memory", Kind::text, 7, 18, 0,
         "Pageable and pinned memory is the host's; what was read."},
        {"to", "To", "memory", Kind::text, 7, 17, 0, "What was written."},
        {"count", "Count", "", Kind::number, 5, 15, 0, {}},
        {"mb", "Copied", "MiB", Kind::number, 7.5F, 16, 0, "Sum of the bytes."},
        {"us", "Total", "\u00b5s", Kind::number, 7.5F, 19,
         theme::kind_color(traces::store::DeviceKind::memcpy), "The sum of their durations."},
        {"mean_us", "Mean", "\u00b5s", Kind::number, 6, 13, 0, {}},
        {"longest_us", "Longest", "\u00b5s", Kind::number, 6, 12, 0, {}},
        {"gbps", "Bandwidth", "GB/s", Kind::number, 6.5F, 14, 0, "Bytes over their time (GB of 10^9 bytes)."},
    });
    for (const std::size_t i : rows_of(all, rank)) {
        const Copies& row = all[i];
        // Bytes per nanosecond are 10^9 bytes a second.
        const double gbps = row.ns > 0 ? static_cast<double>(row.bytes) / static_cast<double>(row.ns) : 0;
        table->add({tables::text_cell(row.name), tables::text_cell(row.from), tables::text_cell(row.to),
                    tables::count_cell(row.count), tables::mb_cell(row.bytes), tables::ns_cell(row.ns),
                    mean_cell(row.ns, row.count), tables::ns_cell(row.longest_ns),
                    gbps > 0 ? tables::decimal_cell(gbps, 2) : tables::no_cell()});
    }
    return table;
}

}  // namespace shardscope::viewer::panels
