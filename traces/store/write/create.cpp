#include "traces/store/write/create.h"

#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <thread>

#include <fmt/core.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "shardscope/version.h"
#include "traces/schema/schema.h"
#include "traces/store/machine.h"
#include "traces/store/sqlite/in_use.h"
#include "traces/store/sqlite/sqlite.h"
#include "traces/store/sqlite/temporary_file.h"

namespace shardscope::traces::store {

namespace fs = std::filesystem;

namespace {

fs::path folder_of(const std::string& path) {
    const fs::path parent = fs::path(path).parent_path();
    return parent.empty() ? fs::path(".") : parent;
}

void insert_name_value(Database& database, std::string_view table,
                       const std::vector<std::pair<std::string_view, std::string>>& rows) {
    Statement insert(database, fmt::format("INSERT INTO {} VALUES (?1, ?2)", table));
    for (const auto& [name, value] : rows) {
        insert.bind(1, name);
        insert.bind(2, std::string_view(value));
        insert.run();
    }
}

// Facts about the machine, not its user: no environment variable is stored.
void insert_machine(Database& database) {
    utsname system{};
    if (::uname(&system) != 0) return;
    const std::pair<std::string_view, std::string> facts[] = {
        {"Hostname", system.nodename},
        {"CpuCores", std::to_string(std::thread::hardware_concurrency())},
        {"CpuArchitecture", system.machine},
        {"OsName", system.sysname},
        {"KernelRelease", system.release},
        {"MemoryBytes", std::to_string(physical_memory())},
    };
    Statement insert(database, fmt::format("INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES ({}, ?1, ?2, ?3, ?4)",
                                           std::int64_t{1} << 48));
    std::int64_t number = 0;
    for (const auto& [name, value] : facts) {
        insert.bind(1, std::string_view(system.nodename));
        insert.bind(2, name);
        insert.bind(3, number++);
        insert.bind(4, std::string_view(value));
        insert.run();
    }
}

void insert_facts(Database& database, const WriterOptions& options) {
    database.execute(fmt::format("INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES ({}, '{}', '{}', {})",
                                 options.start_utc_ns, iso_time(options.start_utc_ns, false),
                                 iso_time(options.start_utc_ns, true), options.start_system_ns));

    const std::string version(schema::kNsightSchemaVersion);
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
    insert_name_value(database, "META_DATA_CAPTURE",
                      {{"SHARDSCOPE_VERSION", kVersion},
                       {"SHARDSCOPE_SCHEMA_VERSION", std::to_string(schema::kSchemaVersion)}});
    database.execute("INSERT INTO SHARD_STATE VALUES (0, 0)");
    if (options.on_this_machine) insert_machine(database);
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

Database create_schema(const std::string& path, int page_size) {
    Database database(path, Database::Mode::read_write);
    database.execute(
        fmt::format("PRAGMA page_size = {}; PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF;"
                    "PRAGMA application_id = {}; PRAGMA user_version = {};",
                    page_size, schema::kApplicationId, schema::kSchemaVersion));
    database.execute("BEGIN;" + schema::creation_sql() + "COMMIT;");
    return database;
}

std::string create_database(const WriterOptions& options) {
    DatabaseWriter::check_output(options.path, options.overwrite);
    std::error_code ignored;
    const bool exists = fs::exists(options.path, ignored);
    std::string target = exists ? fs::canonical(options.path).string() : options.path;

    remove_litter(target);
    TemporaryFile file(unfinished_name(target, "new"));
    {
        Database database = create_schema(file.path(), kLargePage);
        database.execute("BEGIN");
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
                fmt::format("{} exists; choose another path or use --overwrite to replace it", path));
        }
        if (!fs::is_regular_file(status)) {
            throw StoreError(
                fmt::format("{} is not a regular file, so it is not replaced; choose another path", path));
        }
        if (const int process = process_that_uses(path); process != 0) {
            throw StoreError(fmt::format(
                "{} is being recorded or read by process {}, so it is not replaced; choose another path",
                path, process));
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

}  // namespace shardscope::traces::store
