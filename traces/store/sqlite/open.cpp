#include "traces/store/sqlite/open.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <fmt/core.h>
#include <sqlite3.h>

#include "traces/schema/schema.h"
#include "traces/store/sqlite/temporary_copy.h"

namespace shardscope::traces::store {

namespace fs = std::filesystem;

namespace {

// The fields of the 100-byte header of every SQLite file that show whether the file is complete.
struct Header {
    std::int64_t page_size = 0, pages = 0;
    bool pages_valid = false;
    bool wal = false;
};

Header read_header(const std::string& path) {
    std::array<char, 100> bytes{};
    std::ifstream file(path, std::ios::binary);
    if (!file) {
        throw StoreError(
            fmt::format("{} cannot be read ({}); check its permissions", path, std::strerror(errno)));
    }
    file.read(bytes.data(), bytes.size());
    const auto got = static_cast<std::size_t>(file.gcount());
    constexpr std::string_view kMagic("SQLite format 3\0", 16);
    if (got == 0) throw StoreError(fmt::format("{} is empty; record it again", path));
    if (std::string_view(bytes.data(), std::min(got, kMagic.size())) != kMagic.substr(0, got)) {
        throw StoreError(
            fmt::format("{} is not an SQLite file; give a trace that was written with --trace", path));
    }
    if (got < bytes.size()) {
        throw StoreError(
            fmt::format("{} is truncated: it ends within its first {} bytes; copy it again", path, got));
    }
    const auto number = [&](std::size_t at, std::size_t size) {
        std::int64_t value = 0;
        for (std::size_t i = at; i < at + size; ++i)
            value = value << 8 | static_cast<unsigned char>(bytes[i]);
        return value;
    };
    Header header;
    header.page_size = number(16, 2) == 1 ? 65536 : number(16, 2);
    header.pages = number(28, 4);
    header.pages_valid = number(24, 4) == number(92, 4);  // else a very old SQLite wrote the size
    header.wal = bytes[18] == 2 || bytes[19] == 2;
    return header;
}

bool has_content(const std::string& path) {
    std::error_code error;
    const auto size = fs::file_size(path, error);
    return !error && size > 0;
}

// Chooses how to open the file such that a finished one is not modified.
Database::Mode choose_mode(const std::string& path) {
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (status.type() == fs::file_type::not_found) {
        throw StoreError(fmt::format("{} does not exist; check the path", path));
    }
    if (fs::is_directory(status))
        throw StoreError(fmt::format("{} is a folder; give the trace file in it", path));
    if (!fs::exists(status)) {
        throw StoreError(fmt::format("{} cannot be reached ({}); check the path and its permissions", path,
                                     error.message()));
    }
    if (!fs::is_regular_file(status)) {
        throw StoreError(fmt::format("{} is not a regular file; copy the trace to a file first", path));
    }

    const Header header = read_header(path);
    if (has_content(path + "-wal") || has_content(path + "-journal")) return Database::Mode::read_only;
    const auto size = static_cast<std::int64_t>(fs::file_size(path, error));
    if (header.pages_valid && size < header.page_size * header.pages) {
        throw StoreError(
            fmt::format("{} is truncated: {} bytes of {}; copy it again from where it was recorded", path,
                        size, header.page_size * header.pages));
    }
    return header.wal ? Database::Mode::immutable : Database::Mode::read_only;
}

void check_is_trace(Database& database) {
    const int version = static_cast<int>(database.integer("PRAGMA user_version"));
    if (database.has_table("SHARD_STATE")) {
        if (version > schema::kSchemaVersion) {
            throw StoreError(
                fmt::format("{} has schema version {}, newer than the {} that this tool reads; use the "
                            "Shardscope that recorded it, or a newer one",
                            database.path(), version, schema::kSchemaVersion));
        }
        return;
    }
    for (const char* table : {"CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY",
                              "CUPTI_ACTIVITY_KIND_MEMSET", "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS"}) {
        if (database.has_table(table)) return;
    }
    throw StoreError(
        fmt::format("{} is an SQLite file but not a trace: it has neither Shardscope's nor Nsight Systems' "
                    "tables; give a trace that was written with --trace",
                    database.path()));
}

// Creates, for this connection only, the views and (empty) tables that an older schema lacks.
void complete_schema(Database& database) {
    if (const int version = schema_version(database); version > 0) {
        database.execute(schema::migration_sql(version));
    }
}

bool begins_with_words(std::string_view sql, std::string_view words) {
    return sql.size() >= words.size() &&
           std::equal(words.begin(), words.end(), sql.begin(),
                      [](char a, char b) { return a == (b >= 'a' && b <= 'z' ? b - 'a' + 'A' : b); });
}

// Replaces the file's view by the schema's for this connection; the file's view stays if an older table lacks
// one of its columns.
void replace_view(Database& database, const schema::SchemaView& view) {
    const auto run = [&](const std::string& sql) {
        return sqlite3_exec(database.handle(), sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK;
    };
    if (!run(fmt::format("CREATE TEMP VIEW IF NOT EXISTS {} AS\n{}", view.name, view.select))) return;
    if (!run(fmt::format("EXPLAIN SELECT * FROM temp.{}", view.name)))
        run(fmt::format("DROP VIEW temp.{}", view.name));
}

constexpr const char* kFirstRead = "SELECT count(*) FROM sqlite_master";

// Whether SQLite could not do what the journal requires: create the journal's index, or roll a change back.
bool journal_is_stuck(Database& database, const std::string& path) {
    if (!has_content(path + "-wal") && !has_content(path + "-journal")) return false;
    const int code = sqlite3_exec(database.handle(), kFirstRead, nullptr, nullptr, nullptr) & 0xFF;
    return code == SQLITE_READONLY || code == SQLITE_CANTOPEN;
}

// Rolls back an interrupted change, as any program that opens the file for writing would do.
bool roll_back(const std::string& path) {
    if (!has_content(path + "-journal")) return false;
    try {
        Database(path, Database::Mode::read_write).execute(kFirstRead);
        return true;
    } catch (const StoreError&) {
        return false;  // this user may write neither the file nor its folder
    }
}

Database open_copy(const std::string& path) {
    const TemporaryCopy copy(path);
    Database database(copy.path(),
                      has_content(path + "-wal") ? Database::Mode::read_only : Database::Mode::read_write);
    database.rename(path);
    database.execute(kFirstRead);  // the copy and its journal are open now, so their names can be removed
    return database;
}

// `copied` returns whether it is a copy.
Database open_as_it_is(const std::string& path, bool& copied) {
    copied = false;
    const Database::Mode mode = choose_mode(path);
    {
        Database database(path, mode);
        if (!journal_is_stuck(database, path)) return database;
    }
    if (roll_back(path)) return Database(path, choose_mode(path));
    copied = true;
    return open_copy(path);
}

}  // namespace

Database open_trace(const std::string& path) {
    bool copied = false;
    Database database = open_as_it_is(path, copied);
    database.execute("PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA temp_store = MEMORY;");
    check_is_trace(database);
    complete_schema(database);
    database.execute("PRAGMA query_only = ON;");
    return database;
}

bool has_plain_table(Database& database, std::string_view table) {
    Statement statement(database,
                        "SELECT type, sql FROM main.sqlite_master WHERE name = ?1 COLLATE NOCASE AND type IN "
                        "('table', 'view')");
    statement.bind(1, table);
    if (!statement.step()) return false;
    if (statement.text(0) != "table" || !begins_with_words(statement.text(1), "CREATE TABLE")) {
        throw StoreError(fmt::format(
            "{}: {} is a view or virtual table, which this tool does not read; copy its rows to a "
            "table of that name",
            database.path(), table));
    }
    return true;
}

void trust_tables_only(Database& database) {
    for (const auto tables :
         {schema::nsight_tables(), schema::nsight_enums(), schema::shard_tables(), schema::shard_enums()}) {
        for (const schema::SchemaTable& table : tables) (void)has_plain_table(database, table.name);
    }
    if (schema_version(database) == 0) return;
    database.execute("PRAGMA query_only = OFF;");
    for (const schema::SchemaView& view : schema::views()) replace_view(database, view);
    database.execute("PRAGMA query_only = ON;");
}

std::string opening_note(const std::string& path) {
    try {
        Database database(path, choose_mode(path));
        if (!journal_is_stuck(database, path) || roll_back(path)) return "";
    } catch (const StoreError&) {
        return "";
    }
    return fmt::format(
        "{} was not finished and its folder cannot be written; it is read from a temporary copy", path);
}

int schema_version(Database& database) {
    return database.has_table("SHARD_STATE") ? static_cast<int>(database.integer("PRAGMA user_version")) : 0;
}

}  // namespace shardscope::traces::store
