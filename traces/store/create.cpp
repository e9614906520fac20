#include "traces/store/create.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shardscope/version.h"
#include "traces/schema/schema.h"
#include "traces/store/insert.h"
#include "traces/store/sqlite.h"

namespace shardscope::traces {

namespace fs = std::filesystem;

namespace {

fs::path folder_of(const std::string& path) {
    const fs::path parent = fs::path(path).parent_path();
    return parent.empty() ? fs::path(".") : parent;
}

// Side files of a trace that was killed: with the file gone they are worth nothing, beside a new one they
// would be taken for its own.
void remove_side_files(const std::string& path) {
    for (const char* suffix : {"-wal", "-shm", "-journal"}) ::unlink((path + suffix).c_str());
}

// Unlinks a file that was not finished.
class TemporaryFile {
  public:
    explicit TemporaryFile(std::string path) : path_(std::move(path)) {
        const int file = ::open(path_.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, S_IRUSR | S_IWUSR);
        if (file < 0) {
            throw StoreError(
                fmt::format("{} cannot be created: {}; choose another path", path_, std::strerror(errno)));
        }
        ::close(file);
    }
    ~TemporaryFile() {
        if (path_.empty()) return;
        remove_side_files(path_);
        ::unlink(path_.c_str());
    }
    TemporaryFile(const TemporaryFile&) = delete;
    TemporaryFile& operator=(const TemporaryFile&) = delete;

    const std::string& path() const { return path_; }

    void rename_to(const std::string& target, bool replace) {
        remove_side_files(target);
        int failed =
            ::renameat2(AT_FDCWD, path_.c_str(), AT_FDCWD, target.c_str(), replace ? 0 : RENAME_NOREPLACE);
        // Some file systems know no such flag; the check before is then all there is.
        if (failed != 0 && errno == EINVAL && !replace) failed = ::rename(path_.c_str(), target.c_str());
        if (failed != 0) {
            throw StoreError(
                fmt::format("{} cannot be created: {}; choose another path", target, std::strerror(errno)));
        }
        path_.clear();
    }

  private:
    std::string path_;
};

void insert_name_value(Database& database, std::string_view table,
                       const std::vector<std::pair<std::string_view, std::string>>& rows) {
    BatchInsert insert(database, table, {{"name"}, {"value"}});
    for (const auto& [name, value] : rows) insert.text(name).text(value).end_row();
    insert.flush();
}

void insert_facts(Database& database, const WriterOptions& options) {
    BatchInsert start(database, "TARGET_INFO_SESSION_START_TIME",
                      {{"utcEpochNs"}, {"utcTime"}, {"localTime"}, {"systemClockNs"}});
    start.integer(options.start_utc_ns)
        .text(iso_time(options.start_utc_ns, false))
        .text(iso_time(options.start_utc_ns, true))
        .integer(options.start_system_ns)
        .end_row();
    start.flush();

    const std::string version(kNsightSchemaVersion);
    const auto dot = version.find('.');
    const auto second_dot = version.find('.', dot + 1);
    insert_name_value(database, "META_DATA_EXPORT",
                      {{"EXPORT_PRODUCT_NAME", "Shardscope"},
                       {"EXPORT_PRODUCT_VERSION", kVersion},
                       {"EXPORT_SCHEMA_VERSION", version},
                       {"EXPORT_SCHEMA_VERSION_MAJOR", version.substr(0, dot)},
                       {"EXPORT_SCHEMA_VERSION_MINOR", version.substr(dot + 1, second_dot - dot - 1)},
                       {"EXPORT_SCHEMA_VERSION_MICRO", version.substr(second_dot + 1)},
                       {"EXPORT_TIME_UTC", iso_time(options.start_utc_ns, false)}});
    insert_name_value(
        database, "META_DATA_CAPTURE",
        {{"SHARDSCOPE_VERSION", kVersion}, {"SHARDSCOPE_SCHEMA_VERSION", std::to_string(kSchemaVersion)}});
    database.execute("INSERT INTO SHARD_STATE VALUES (0, 0)");
}

}  // namespace

std::string iso_time(std::int64_t utc_ns, bool local) {
    const auto seconds = static_cast<std::time_t>(utc_ns / 1'000'000'000);
    std::tm parts{};
    if ((local ? ::localtime_r(&seconds, &parts) : ::gmtime_r(&seconds, &parts)) == nullptr) return "";
    char text[64];
    const std::size_t size = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
    return std::string(text, size);
}

std::string create_database(const WriterOptions& options) {
    DatabaseWriter::check_output(options.path, options.overwrite);
    std::error_code ignored;
    const bool exists = fs::exists(options.path, ignored);
    std::string target = exists ? fs::canonical(options.path).string() : options.path;

    TemporaryFile file(fmt::format("{}.new-{}", target, ::getpid()));
    {
        Database database(file.path(), Database::Mode::read_write);
        // Nobody knows the file yet, so nothing is lost with it: no journal on disk, no waiting for the disk.
        database.execute(
            fmt::format("PRAGMA page_size = 16384; PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF;"
                        "PRAGMA application_id = {}; PRAGMA user_version = {};",
                        kApplicationId, kSchemaVersion));
        database.execute("BEGIN;" + creation_sql());
        insert_facts(database, options);
        database.execute("COMMIT");
    }
    file.rename_to(target, exists);
    return target;
}

void DatabaseWriter::check_output(const std::string& path, bool overwrite) {
    if (path.empty()) throw StoreError("the trace's path is empty; give the file to write");
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (fs::is_directory(status)) {
        throw StoreError(fmt::format("{} is a folder; give the path of a file to write", path));
    }
    if (fs::exists(status)) {
        if (!overwrite) {
            throw StoreError(
                fmt::format("{} exists; choose another path or say --overwrite to replace it", path));
        }
        if (!fs::is_regular_file(status)) {
            throw StoreError(
                fmt::format("{} is no plain file, so it is not replaced; choose another path", path));
        }
    }
    const std::string real = fs::exists(status) ? fs::canonical(path, error).string() : path;
    const fs::path folder = folder_of(real);
    if (!fs::is_directory(folder, error)) {
        throw StoreError(fmt::format("{}: there is no folder {}; make it first", path, folder.string()));
    }
    if (::access(folder.c_str(), W_OK | X_OK) != 0) {
        throw StoreError(
            fmt::format("{} cannot be created: its folder {} is not writable ({}); choose another path", path,
                        folder.string(), std::strerror(errno)));
    }
}

}  // namespace shardscope::traces
