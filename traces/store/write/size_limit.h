// Estimates the size of the finished file during the recording: a DatabaseWriter refuses events that would
// make it larger than the user allows. The number of pages is queried once per kBetweenLooks bytes added;
// what finishing adds is counted with each row. Sizes in bytes. Internal to the store.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <unordered_set>

#include "traces/schema/rows.h"
#include "traces/schema/schema.h"

namespace shardscope::traces::store {

struct SizeLimit {
    // The bytes added between two queries of the file's size; the limit is never exceeded by more.
    static constexpr std::int64_t kBetweenLooks = 64 << 10;
    // The room that is kept free: the above, and space for the rows that are never refused (diagnostics,
    // threads, processes).
    static constexpr std::int64_t kKeptFree = kBetweenLooks + (192 << 10);
    static constexpr std::int64_t kString = 16;  // a stored string without its text
    // What finishing adds, at most: an entry of an index, a row of sums for a name, a collective that is
    // joined from NCCL's kernel and call.
    static constexpr std::int64_t kIndexEntry = 20, kNameSum = 64, kJoinedCollective = 160;

    std::int64_t most = 0;                   // of the finished file; 0: no limit
    std::int64_t finishing = 0;              // what finishing adds for the rows so far
    std::int64_t added = 0;                  // since the last query, at most
    std::int64_t refused = 0;                // events
    std::unordered_set<std::uint64_t> sums;  // process and name pairs that get a row of sums
    bool full = false;
};

// The unused space that a row of so many bytes may cause: the rest of a page that it does not fit into or, if
// it is larger than a page, of its own last page.
constexpr std::int64_t page_waste(std::int64_t bytes) {
    constexpr std::int64_t kPage = 4096;  // the smaller of a finished file's two page sizes
    return bytes < kPage ? bytes * bytes / kPage : kPage;
}

// Whether a row is an event with a time. Rows of participants, and diagnostics, are few.
template <typename Row>
inline constexpr bool kIsEvent = (
                                     requires(Row row) { row.start; } || requires(Row row) { row.time; }) &&
                                 !std::is_same_v<Row, schema::DiagnosticRow>;

// The table with a kind of event; empty if its rows are parts of other tables, without an index.
template <typename Row>
constexpr std::string_view table_of() {
    if constexpr (std::is_same_v<Row, schema::RangeRow>) {
        return schema::NvtxRow::kTable;
    } else if constexpr (requires { Row::kTable; }) {
        return Row::kTable;
    } else {
        return {};
    }
}

// The process and the name by which an event's duration is summed (totals.h); 0 if it is not summed.
template <typename Row>
std::uint64_t sum_of(const Row& row) {
    std::uint64_t process = 0, name = 0;
    if constexpr (requires { row.global_pid; }) process = static_cast<std::uint64_t>(row.global_pid);
    if constexpr (requires { row.global_tid; }) process = static_cast<std::uint64_t>(row.global_tid);
    if constexpr (requires { row.short_name; }) name = static_cast<std::uint64_t>(row.short_name);
    if constexpr (requires { row.name; }) name = static_cast<std::uint64_t>(row.name);
    if constexpr (std::is_same_v<Row, schema::RangeRow>) name = static_cast<std::uint64_t>(row.text);
    return (process >> 24 & 0xFFFFFF) << 32 | name;
}

inline std::int64_t bytes_of_index_entries(std::string_view table) {
    std::int64_t bytes = 0;
    for (const schema::SchemaIndex& index : schema::indexes())
        bytes += index.table == table ? SizeLimit::kIndexEntry : 0;
    return bytes;
}

}  // namespace shardscope::traces::store
