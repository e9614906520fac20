#include "traces/export/chrome_context.h"

#include <algorithm>
#include <iterator>

#include <fmt/core.h>

#include "traces/export/table_scan.h"

namespace shardscope::traces::exports {

namespace {

constexpr std::int64_t kEventsBetweenLooks = 1 << 14;
constexpr std::int64_t kFirstFreePid = 1 << 24;  // above every pid

std::int64_t rows_in(store::Database& database, std::string_view table) {
    return database.has_table(table) ? database.integer(fmt::format("SELECT max(rowid) FROM \"{}\"", table))
                                     : 0;
}

}  // namespace

ChromeContext::ChromeContext(store::Database& database, TextOutput& output, const merge::WorkOptions& work)
    : database_(database),
      output_(output),
      work_(work),
      find_name_(database, "SELECT value FROM StringIds WHERE id = ?1") {
    load_ranks();
    for (const char* table :
         {"CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET",
          "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS", "SHARD_MEMORY", "SHARD_COUNTERS", "SHARD_SAMPLES"}) {
        rows_ += rows_in(database, table);
    }
}

void ChromeContext::load_ranks() {
    std::vector<std::string_view> columns = {"rank", "deviceId",  "globalPid", "globalTid",
                                             "host", "localRank", "cpus"};
    const auto first_axis = static_cast<int>(columns.size());
    for (const schema::MeshAxis& axis : schema::kMeshAxes) columns.push_back(axis.name);
    scan_table(database_, "SHARD_RANKS", columns, "ORDER BY rank", [&](const store::Statement& row) {
        ExportedRank& rank = ranks_.emplace_back(ExportedRank{.rank = row.integer(0),
                                                              .device = row.integer(1),
                                                              .global_pid = row.integer(2),
                                                              .global_tid = row.integer(3),
                                                              .host = std::string(row.text(4)),
                                                              .local_rank = row.integer_or(5, -1),
                                                              .cpus = std::string(row.text(6))});
        for (std::size_t axis = 0; axis < rank.place.size(); ++axis)
            rank.place[axis] = row.integer_or(first_axis + static_cast<int>(axis), 0);
    });
    // Device events have their device's number as pid, so processes must not use that number.
    scan_table(database_, "TARGET_INFO_GPU", {"id"}, "",
               [&](const store::Statement& row) { taken_.insert(row.integer(0)); });
    for (const ExportedRank& rank : ranks_) taken_.insert(rank.device);
    for (const ExportedRank& rank : ranks_) pid_of(rank.global_pid);
}

const ExportedRank* ChromeContext::rank(std::int64_t number) const {
    const auto at =
        std::lower_bound(ranks_.begin(), ranks_.end(), number,
                         [](const ExportedRank& rank, std::int64_t value) { return rank.rank < value; });
    return at != ranks_.end() && at->rank == number ? &*at : nullptr;
}

const ChromeContext::Name& ChromeContext::lookup(std::int64_t id) {
    const auto [it, is_new] = names_.try_emplace(id);
    if (is_new) {
        find_name_.bind(1, id);
        if (find_name_.step()) it->second.plain = cut_name(find_name_.text(0));
        find_name_.reset();
        append_json(it->second.json, it->second.plain);
    }
    return it->second;
}

const std::string& ChromeContext::name(std::int64_t id) {
    return lookup(id).json;
}
const std::string& ChromeContext::plain_name(std::int64_t id) {
    return lookup(id).plain;
}

std::int64_t ChromeContext::pid_of(std::int64_t global_pid) {
    const auto [it, is_new] = pids_.try_emplace(global_pid);
    if (is_new) {
        std::int64_t pid = global_pid >> 24 & 0xFFFFFF;
        if (taken_.contains(pid)) pid = std::max(kFirstFreePid, *taken_.rbegin() + 1);
        taken_.insert(pid);
        it->second = pid;
        processes_.insert(global_pid);
    }
    return it->second;
}

std::string ChromeContext::ordered_by(std::string_view table, std::string_view column) {
    if (!database_.has_table(table)) return {};
    // Nearly all files have their rows in order; sorting would need memory for the whole table.
    store::Statement unsorted(
        database_, fmt::format("SELECT 1 FROM (SELECT \"{0}\" AS time, lag(\"{0}\") OVER (ORDER BY rowid) AS "
                               "before FROM \"{1}\") WHERE before > time LIMIT 1",
                               column, table));
    return unsorted.step() ? fmt::format("ORDER BY t.\"{}\", t.rowid", column) : std::string();
}

std::string& ChromeContext::begin(std::string_view phase, std::string_view category, std::string_view name) {
    std::string& text = out();
    text += events_++ == 0 ? "\n{\"ph\":\"" : ",\n{\"ph\":\"";
    text += phase;
    text += '"';
    if (!category.empty()) {
        text += ",\"cat\":\"";
        text += category;
        text += '"';
    }
    text += ",\"name\":";
    text += name;
    return text;
}

void ChromeContext::place(std::int64_t pid, std::int64_t tid, std::int64_t start) {
    fmt::format_to(std::back_inserter(out()), ",\"pid\":{},\"tid\":{},\"ts\":", pid, tid);
    append_us(out(), start);
}

void ChromeContext::duration(std::int64_t start, std::int64_t end) {
    out() += ",\"dur\":";
    append_us(out(), end - start);
}

void ChromeContext::end() {
    out() += '}';
    output_.flush_if_full();
    if (events_ % kEventsBetweenLooks == 0) look();
}

void ChromeContext::look() {
    if (work_.cancel != nullptr && *work_.cancel)
        throw merge::Cancelled("it was stopped; nothing was written");
    if (work_.progress && rows_ > 0)
        work_.progress(std::min(1.0, static_cast<double>(events_) / static_cast<double>(rows_)));
}

}  // namespace shardscope::traces::exports
