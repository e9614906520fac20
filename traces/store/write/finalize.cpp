#include "traces/store/write/finalize.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/core.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include "traces/schema/schema.h"
#include "traces/store/columns/memory_usage.h"
#include "traces/store/file_descriptor.h"
#include "traces/store/nccl/nccl_collectives.h"
#include "traces/store/sqlite/no_space.h"
#include "traces/store/sqlite/open.h"
#include "traces/store/sqlite/temporary_file.h"
#include "traces/store/write/create.h"
#include "traces/store/write/metric_rows.h"
#include "traces/store/write/sorted_copy.h"
#include "traces/store/write/totals.h"
#include "traces/store/write/writer_impl.h"

namespace shardscope::traces::store {

namespace fs = std::filesystem;

namespace {

constexpr int kStepsBetweenLooks = 100'000;  // VM steps between cancel checks: below a millisecond
constexpr double kShareOfRows = 0.85;        // of the whole; the rest is building indexes

struct Cancelled {};

// Reports progress, and stops on request.
class Progress {
  public:
    Progress(const FinalizeOptions& options, std::int64_t total) : options_(options), total_(total) {}
    void operator()(std::int64_t rows) {
        if (cancelled()) throw Cancelled{};
        done_ += rows;
        if (options_.progress && total_ > 0) {
            const double share = static_cast<double>(done_) / static_cast<double>(total_);
            options_.progress(kShareOfRows * std::min(1.0, share));
        }
    }
    const FinalizeOptions& options() const { return options_; }
    bool cancelled() const { return options_.cancel != nullptr && *options_.cancel; }

    // Makes long statements of this connection stop as well.
    void watch(Database& database) {
        sqlite3_progress_handler(
            database.handle(), kStepsBetweenLooks,
            [](void* self) -> int { return static_cast<const Progress*>(self)->cancelled(); }, this);
    }

  private:
    const FinalizeOptions& options_;
    std::int64_t total_, done_ = 0;
};

std::vector<std::string> names_of_tables(Database& database, std::string_view schema) {
    std::vector<std::string> names;
    Statement rows(database,
                   fmt::format("SELECT name FROM {}.sqlite_master WHERE type = 'table' AND sql NOT NULL AND "
                               "sql NOT LIKE 'CREATE VIRTUAL%' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' "
                               "ORDER BY rowid",
                               schema));
    while (rows.step()) names.emplace_back(rows.text(0));
    return names;
}

// The columns that the table has in both files, in main's order.
std::vector<std::string> common_columns(Database& database, const std::string& table) {
    std::vector<std::string> names;
    Statement rows(database,
                   "SELECT name FROM pragma_table_info(?1, 'main') WHERE name IN "
                   "(SELECT name FROM pragma_table_info(?1, 'run')) ORDER BY cid");
    rows.bind(1, std::string_view(table));
    while (rows.step()) names.emplace_back(rows.text(0));
    return names;
}

// Counts the rows of our schema's tables; the order of other tables in a file is unknown.
std::int64_t count_rows(Database& database) {
    std::int64_t rows = 0;
    for (const auto& table : names_of_tables(database, "main")) {
        if (schema::find_table(table) == nullptr) continue;
        rows += std::max<std::int64_t>(0, database.integer(fmt::format("SELECT max(rowid) FROM {}", table)));
    }
    return rows;
}

// Makes a table that is not in the schema (another program's) as it is in the recorded file.
void make_table(Database& database, const std::string& table) {
    Statement row(database, "SELECT sql FROM run.sqlite_master WHERE type = 'table' AND name = ?1");
    row.bind(1, std::string_view(table));
    if (row.step()) Statement(database, row.text(0)).run();  // its first statement alone
}

bool is_filled(Database& database, const std::string& table) {
    return Statement(database, fmt::format("SELECT 1 FROM main.{} LIMIT 1", table)).step();
}

// Returns the end of the last event.
std::int64_t copy_tables(Database& database, Progress& progress, Totals& totals, FinalizeResult& result) {
    const RowsDone done = std::ref(progress);
    std::int64_t last_end = 0;
    for (const auto& table : names_of_tables(database, "run")) {
        if (schema::find_table(table) == nullptr) {
            make_table(database, table);
            copy_table(database, table, common_columns(database, table));
            continue;
        }
        if (is_filled(database, table)) continue;  // an enum, filled by the schema
        const auto columns = common_columns(database, table);
        if (columns.empty()) continue;
        if (time_column(columns).empty()) {
            copy_table(database, table, columns);
        } else {
            const TableSurvey survey = survey_table(database, "run", table, columns, totals, done);
            last_end = std::max(last_end, survey.last_end);
            if (survey.sorted) {
                copy_table(database, table, columns);
                progress(survey.rows);
            } else {
                copy_sorted(database, table, columns, survey, progress.options().rows_at_once, done);
            }
        }
        result.rows += database.integer(fmt::format("SELECT max(rowid) FROM main.{}", table));
    }
    return last_end;
}

// Stores the end of the run in the file.
void mark_as_ended(Database& database, std::int64_t last_end, FinalizeResult& result) {
    result.run_was_killed = database.integer("SELECT count(*) FROM ANALYSIS_DETAILS") == 0;
    if (result.run_was_killed) {
        Statement stopped(database, "SELECT 1 FROM SHARD_RUN WHERE key = ?1 AND value = ?2");
        stopped.bind(1, std::string_view(kStoppedBecause));
        stopped.bind(2, std::string_view(kDiskWasFull));
        const char* what = stopped.step() ? "its disk was full" : "the run was killed";
        database.execute(
            fmt::format("INSERT INTO ANALYSIS_DETAILS VALUES ({0}, {1}, 0, {1});"
                        "INSERT OR REPLACE INTO SHARD_RUN VALUES ('finalized', 'after {2}');",
                        schema::kVmId, last_end, what));
        RowInsert<schema::DiagnosticRow> diagnostic(database);
        diagnostic.add(
            {last_end, schema::Severity::warning,
             fmt::format("{}; what the run had committed until then was finalized afterwards", what)});
        diagnostic.flush();
    }
    database.execute(
        fmt::format("UPDATE SHARD_STATE SET ended = 1;"
                    "UPDATE META_DATA_CAPTURE SET value = '{}' WHERE name = 'SHARDSCOPE_SCHEMA_VERSION';",
                    schema::kSchemaVersion));
}

// Adds undescribed processes to which ranks and threads refer, so that joins with them do not lose rows.
void add_processes(Database& database) {
    constexpr std::int64_t kProcess = ~std::int64_t{0xFFFFFF};
    database.execute(fmt::format(
        "INSERT INTO PROCESSES (globalPid, pid) SELECT process, process >> 24 & 0xFFFFFF FROM "
        "(SELECT globalPid AS process FROM SHARD_RANKS UNION SELECT globalTid & {} FROM SHARD_THREADS) "
        "WHERE process <> 0 AND process NOT IN (SELECT globalPid FROM PROCESSES WHERE globalPid NOT NULL)",
        kProcess));
}

// The steps that need all rows; the end of the run is recorded last.
void complete(Database& database, std::int64_t last_end, FinalizeResult& result) {
    join_nccl_collectives(database);
    database.execute("BEGIN");
    add_memory_usage(database);
    add_marked_metrics(database);
    add_processes(database);
    database.execute("COMMIT");
    database.execute("BEGIN;" + schema::indexing_sql() + "PRAGMA analysis_limit = 1000; ANALYZE main;");
    mark_as_ended(database, last_end, result);
    database.execute("COMMIT");
}

// Builds the finished content of the recorded file in a separate file.
void build(const std::string& recorded, const std::string& path, std::int64_t bytes, Progress& progress,
           FinalizeResult& result) {
    Database database = create_schema(path, page_size_for(bytes));
    database.execute(
        "PRAGMA locking_mode = EXCLUSIVE; PRAGMA cache_size = -65536; PRAGMA trusted_schema = OFF;");
    progress.watch(database);
    database.attach(recorded, "run");
    database.execute("BEGIN");
    Totals totals;
    const std::int64_t last_end = copy_tables(database, progress, totals, result);
    totals.write(database);
    database.execute("COMMIT; DETACH run;");
    complete(database, last_end, result);
}

// The same in the recorded file itself, unsorted: other processes read it, so it cannot be replaced.
void complete_in_place(Database& database, Progress& progress, FinalizeResult& result) {
    progress.watch(database);
    database.execute("BEGIN IMMEDIATE");
    Totals totals;
    std::int64_t last_end = 0;
    for (const auto& table : names_of_tables(database, "main")) {
        if (schema::find_table(table) == nullptr) continue;
        std::vector<std::string> columns;
        Statement rows(database, "SELECT name FROM pragma_table_info(?1)");
        rows.bind(1, std::string_view(table));
        while (rows.step()) columns.emplace_back(rows.text(0));
        if (time_column(columns).empty()) continue;
        const TableSurvey survey = survey_table(database, "main", table, columns, totals, std::ref(progress));
        last_end = std::max(last_end, survey.last_end);
    }
    totals.write(database);
    database.execute("COMMIT");
    complete(database, last_end, result);
}

// Whether the connection, as the file's only one, could empty the journal and switch it off.
bool leave_journal(Database& database) {
    constexpr int kPatienceMs = 1000;
    sqlite3_busy_timeout(database.handle(), kPatienceMs);
    try {
        Statement mode(database, "PRAGMA journal_mode = DELETE");
        return mode.step() && mode.text(0) == "delete";
    } catch (const StoreError&) {
        const int code = sqlite3_errcode(database.handle()) & 0xFF;
        if (code == SQLITE_BUSY || code == SQLITE_LOCKED) return false;
        throw;
    }
}

// Syncs the file to the disk, with the owner and permissions of the recorded file.
void settle(const std::string& path, const std::string& recorded) {
    struct stat old {};
    const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (file && ::stat(recorded.c_str(), &old) == 0) {
        // Best effort: not every user may change the owner.
        [[maybe_unused]] const int given = ::fchown(file.get(), old.st_uid, old.st_gid);
        [[maybe_unused]] const int opened = ::fchmod(file.get(), old.st_mode & 07777);
    }
    if (!file || ::fsync(file.get()) != 0)
        throw StoreError(fmt::format("{}: {}; check the disk", path, std::strerror(errno)));
}

// A failure of the temporary file, reported under the path that the user knows.
StoreError about(const std::string& path, const std::string& temporary, std::string text) {
    if (text.starts_with(temporary)) {
        text = fmt::format("{} was not finalized and is unchanged{}{}", path,
                           text[temporary.size()] == ':' ? "" : ": it", text.substr(temporary.size()));
    }
    return StoreError(text);
}

void replace(Database& recorded, Progress& progress, FinalizeResult& result) {
    const std::string& path = recorded.path();
    recorded.execute("BEGIN IMMEDIATE");  // no other process writes or finalizes it meanwhile
    const std::int64_t bytes = recorded.integer("PRAGMA page_count") * recorded.integer("PRAGMA page_size");
    const std::string temporary = path + ".finalizing";
    remove_side_files(temporary);
    ::unlink(temporary.c_str());  // left by a killed process
    try {
        TemporaryFile file(temporary);
        build(path, file.path(), bytes, progress, result);
        settle(file.path(), path);
        progress(0);
        file.rename_to(path, true);
    } catch (const StoreError& error) {
        throw about(path, temporary, error.what());
    }
}

// SQLite detects this late, and without a clear message.
void check_writable(const fs::path& path) {
    for (const fs::path& one : {path, path.parent_path()}) {
        if (::access(one.c_str(), W_OK) == 0) continue;
        throw StoreError(fmt::format(
            "{0} cannot be finalized: {1} is not writable ({2}); copy {0} and {0}-wal to a writable folder",
            path.string(), one.string(), std::strerror(errno)));
    }
}

FinalizeResult finalize(const std::string& path, const FinalizeOptions& options, bool ended) {
    FinalizeResult result;
    std::error_code error;
    const fs::path real = fs::canonical(path, error);
    if (error) {
        throw StoreError(
            fmt::format("{} is gone ({}); it or its folder was moved or removed", path, error.message()));
    }
    check_writable(real);
    Database recorded(real.string(), Database::Mode::read_write);
    recorded.execute("PRAGMA trusted_schema = OFF");
    Progress progress(options, 2 * count_rows(recorded));
    const bool alone = leave_journal(recorded);
    if (recorded.integer("SELECT ended FROM SHARD_STATE") != 0) {
        result.outcome = FinalizeResult::Outcome::already;
        return result;
    }
    if (!alone && !ended) {
        throw StoreError(fmt::format(
            "{} is still written or read by another program; finalize it when that is done", path));
    }
    try {
        alone ? replace(recorded, progress, result) : complete_in_place(recorded, progress, result);
    } catch (const Cancelled&) {
        result.outcome = FinalizeResult::Outcome::cancelled;
    } catch (const StoreError&) {
        if (!progress.cancelled()) throw;
        result.outcome = FinalizeResult::Outcome::cancelled;
    }
    if (options.progress && result.outcome == FinalizeResult::Outcome::finalized) options.progress(1);
    return result;
}

}  // namespace

FinalizeResult finalize_trace(const std::string& path, const FinalizeOptions& options) {
    {
        Database trace = open_trace(path);  // refuses a file that is not a trace
        if (!trace.has_table("SHARD_STATE")) {
            throw StoreError(
                fmt::format("{} is not a trace of Shardscope's own; only those are finalized", path));
        }
    }
    return finalize(path, options, false);
}

FinalizeResult finalize_ended_run(const std::string& path, const FinalizeOptions& options) {
    return finalize(path, options, true);
}

}  // namespace shardscope::traces::store
