#include "traces/merge/output_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include "traces/merge/part.h"
#include "traces/merge/row_ids.h"
#include "traces/schema/column_roles.h"
#include "traces/schema/schema.h"
#include "traces/store/sqlite/temporary_file.h"
#include "traces/store/write/create.h"
#include "traces/store/write/finalize.h"
#include "traces/store/write/writer.h"

namespace shardscope::traces::merge {

namespace fs = std::filesystem;

namespace {

constexpr std::int64_t kMachine = std::int64_t{1} << 48;

std::string final_name(const std::string& path) {
    std::error_code ignored;
    return fs::exists(path, ignored) ? fs::canonical(path, ignored).string() : path;
}

// create_database() records facts about this machine, which is not the run's.
void clear(store::Database& database) {
    for (const auto tables : {schema::nsight_tables(), schema::shard_tables()}) {
        for (const schema::SchemaTable& table : tables) {
            if (table_role(table) != schema::TableRole::made)
                database.execute(fmt::format("DELETE FROM \"{}\"", table.name));
        }
    }
}

// Writes the file to the disk before it is renamed.
void synchronize(const std::string& path) {
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    const bool failed = ::fsync(file) != 0;
    const int reason = errno;
    ::close(file);
    if (failed)
        throw store::StoreError(
            fmt::format("{} cannot be written: {}; free some space", path, std::strerror(reason)));
}

}  // namespace

OutputFile::OutputFile(const std::string& path, bool overwrite, std::int64_t utc_ns, std::int64_t system_ns)
    : path_(path), overwrite_(overwrite) {
    store::DatabaseWriter::check_output(path, overwrite);
    const std::string target = final_name(path);
    temporary_ = store::unfinished_name(target, "part");
    store::remove_litter(target);
    store::create_database(
        {.path = temporary_, .overwrite = true, .start_utc_ns = utc_ns, .start_system_ns = system_ns});
    // A crash loses nothing but the temporary file, so SQLite needs no journal.
    database_.emplace(temporary_, store::Database::Mode::read_write);
    database_->execute(
        "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE;"
        "PRAGMA cache_size = -65536; BEGIN");
    clear(*database_);
}

OutputFile::~OutputFile() {
    database_.reset();
    if (temporary_.empty()) return;
    for (const char* suffix : {"", ".finalizing"}) {
        store::remove_side_files(temporary_ + suffix);
        ::unlink((temporary_ + suffix).c_str());
    }
}

void OutputFile::add_fact(const std::string& key, const std::string& value) {
    store::Statement insert(*database_, "INSERT OR REPLACE INTO SHARD_RUN (key, value) VALUES (?1, ?2)");
    insert.bind(1, std::string_view(key));
    insert.bind(2, std::string_view(value));
    insert.run();
}

void OutputFile::add_note(std::int64_t time_ns, int severity, const std::string& text) {
    store::Statement insert(*database_,
                            "INSERT INTO DIAGNOSTIC_EVENT (timestamp, timestampType, source, severity, text) "
                            "VALUES (?1, 1, 1, ?2, ?3)");
    insert.bind(1, time_ns);
    insert.bind(2, static_cast<std::int64_t>(severity));
    insert.bind(3, std::string_view(text));
    insert.run();
}

void OutputFile::add_strings(const store::StringTable& strings) {
    store::Statement insert(*database_, "INSERT INTO StringIds (id, value) VALUES (?1, ?2)");
    for (std::size_t i = 0; i < strings.size(); ++i) {
        insert.bind(1, static_cast<std::int64_t>(i));
        insert.bind(2, strings[static_cast<schema::StringId>(i)]);
        insert.run();
    }
}

void OutputFile::add_ranks(const Part& part, RowIds& ids) {
    if (part.ours) return;
    store::Statement insert(
        *database_,
        "INSERT OR IGNORE INTO SHARD_RANKS (rank, deviceId, globalPid, globalTid, host, data, shard, "
        "tensor, pipeline) VALUES (?1, ?2, ?3, 0, ?4, ?1, 0, 0, 0)");
    for (const PartRank& rank : part.ranks) {
        insert.bind(1, ids.map(schema::ColumnRole::rank, rank.rank, -1));
        insert.bind(2, ids.device(rank.device, pid_number(rank.global_pid)));
        insert.bind(3, ids.process(rank.global_pid));
        insert.bind(4, std::string_view(rank.host));
        insert.run();
    }
}

std::string OutputFile::told(const std::string& sentence) const {
    std::string text = sentence;
    const auto at = temporary_.empty() ? std::string::npos : text.find(temporary_);
    if (at != std::string::npos) text.replace(at, temporary_.size(), path_);
    return text;
}

void OutputFile::finish(const OutputFacts& facts, const WorkOptions& options, double share_done) {
    database_->execute(
        fmt::format("INSERT INTO ANALYSIS_DETAILS (globalVid, duration, startTime, stopTime) "
                    "VALUES ({0}, {1}, 0, {1}); UPDATE SHARD_STATE SET dropped = {2}; COMMIT;",
                    kMachine, facts.duration_ns, facts.dropped));
    database_.reset();
    store::FinalizeOptions finalize{.cancel = options.cancel, .progress = {}};
    if (options.progress) {
        finalize.progress = [&](double share) { options.progress(share_done + (1 - share_done) * share); };
    }
    const store::FinalizeResult result = finalize_trace(temporary_, finalize);
    if (result.outcome == store::FinalizeResult::Outcome::cancelled)
        throw Cancelled("it was stopped; nothing was written");
    synchronize(temporary_);

    std::error_code ignored;
    const bool exists = fs::exists(path_, ignored);
    if (exists && !overwrite_) store::DatabaseWriter::check_output(path_, false);  // created meanwhile
    const std::string target = exists ? fs::canonical(path_, ignored).string() : path_;
    store::rename_database(temporary_, target, true);
    temporary_.clear();
}

}  // namespace shardscope::traces::merge
