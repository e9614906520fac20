// What a trace's database contains about kernels and copies beyond the columns in memory: launch sizes,
// registers, shared memory, the kinds of memory that copies go between. SQL, its answer as tables, and the
// time of each row's longest event. Pure; any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "traces/store/columns/trace.h"
#include "traces/store/sqlite/query.h"
#include "viewer/tables/table_model.h"

namespace shardscope::viewer::panels {

struct LaunchRange {
    std::optional<std::int64_t> from, to;  // ns; limits events by their start
};

// Queries of tables that Nsight Systems has as well. Grouped by name and launch size; by direction and
// memory.
std::string launches_sql(const LaunchRange& range);
std::string copies_sql(const LaunchRange& range);

struct Launches {
    traces::store::RankIndex rank;
    std::string name;
    std::int64_t grid[3] = {}, block[3] = {};  // blocks, threads
    std::int64_t registers = 0;                // per thread; 0 unknown
    std::int64_t shared_bytes = 0;             // per block
    std::int64_t count = 0, ns = 0, longest_ns = 0, longest_start = 0;
    // False for traces without launch sizes, where all launches of a kernel are one row.
    bool known() const;
};
struct Copies {
    traces::store::RankIndex rank;
    std::string name;      // "Memcpy HtoD"
    std::string from, to;  // kinds of memory: "Pinned"; "-" unknown
    std::int64_t bytes = 0;
    std::int64_t count = 0, ns = 0, longest_ns = 0, longest_start = 0;
};

// From the answers to the SQL above; rows of devices that belong to no rank are omitted. Longest time first.
std::vector<Launches> launches_of(const traces::store::QueryResult& answer,
                                  const traces::store::Trace& trace);
std::vector<Copies> copies_of(const traces::store::QueryResult& answer, const traces::store::Trace& trace);

// Row i is the i-th row of `rank`: rows_of() returns their indices.
template <class Row>
std::vector<std::size_t> rows_of(const std::vector<Row>& all, traces::store::RankIndex rank) {
    std::vector<std::size_t> rows;
    for (std::size_t i = 0; i < all.size(); ++i)
        if (all[i].rank == rank) rows.push_back(i);
    return rows;
}
std::shared_ptr<const tables::TableModel> launch_table(const std::vector<Launches>& all,
                                                       traces::store::RankIndex rank);
std::shared_ptr<const tables::TableModel> copy_table(const std::vector<Copies>& all,
                                                     traces::store::RankIndex rank);

}  // namespace shardscope::viewer::panels
