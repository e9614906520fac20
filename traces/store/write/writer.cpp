// Creates and finishes a trace. One transaction lasts from commit to commit.
#include "traces/store/write/writer.h"

#include <fmt/core.h>
#include <sqlite3.h>

#include "traces/store/grouped.h"
#include "traces/store/write/create.h"
#include "traces/store/write/writer_impl.h"

namespace shardscope::traces::store {

namespace {

// Opens the existing file with a journal that allows reading while it is written. A checkpoint every 4096
// pages (64 MiB) is rare enough that slow disks do not hold up the writer.
Database open_for_writing(const std::string& path) {
    Database database(path, Database::Mode::read_write);
    database.execute(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 4096;"
        "PRAGMA cache_size = -16384; PRAGMA temp_store = MEMORY;");
    return database;
}

}  // namespace

DatabaseWriter::Impl::Impl(const WriterOptions& options)
    : database(open_for_writing(create_database(options))),
      reserve(database.path()),
      inserts(std::in_place, database),
      first_ns(options.first_ns) {}

void DatabaseWriter::Impl::commit() {
    write([this](Inserts& into) {
        for (; strings_written < strings.size(); ++strings_written) {
            into.of<schema::StringRow>().add({static_cast<std::int64_t>(strings_written),
                                              strings[static_cast<schema::StringId>(strings_written)]});
        }
        into.flush();
        database.execute("COMMIT");
        in_transaction = false;
    });
}

// Uses the space that was reserved, or that the failed transaction frees.
void DatabaseWriter::Impl::say_that_disk_was_full() {
    reserve.give_back();
    try {
        if (sqlite3_get_autocommit(database.handle()) == 0) database.execute("ROLLBACK");
        database.execute(fmt::format("INSERT OR REPLACE INTO SHARD_RUN VALUES ('{}', '{}')", kStoppedBecause,
                                     kDiskWasFull));
    } catch (const StoreError&) {  // then a reader sees only that the run did not end
    }
}

DatabaseWriter::DatabaseWriter(const WriterOptions& options) : impl_(std::make_unique<Impl>(options)) {
    commit();  // so that even the earliest reader finds a valid journal
    impl_->first_pages = impl_->database.integer("PRAGMA page_count");
}
DatabaseWriter::~DatabaseWriter() = default;

schema::StringId DatabaseWriter::intern(std::string_view text) {
    return impl_->limit.most > 0 ? impl_->intern_within_limit(text) : impl_->strings.intern(text);
}

schema::StringId DatabaseWriter::Impl::intern_within_limit(std::string_view text) {
    if (const auto known = strings.find(text)) return *known;
    const auto bytes = static_cast<std::int64_t>(text.size()) + SizeLimit::kString;
    if (limit.full || !has_room_for(bytes)) return schema::StringId::empty;
    limit.added += bytes;
    limit.finishing += page_waste(bytes);
    return strings.intern(text);
}

std::int64_t DatabaseWriter::Impl::finished_bytes() {
    std::int64_t pages = 0, waiting = 0;
    write([&](Inserts& into) {
        into.flush();
        pages = database.integer("PRAGMA page_count");
    });
    for (std::size_t i = strings_written; i < strings.size(); ++i)
        waiting +=
            static_cast<std::int64_t>(strings[static_cast<schema::StringId>(i)].size()) + SizeLimit::kString;
    const std::int64_t grown = (pages - first_pages) * kLargePage;
    // Small pages have slightly more unused space.
    const std::int64_t copied = grown + grown / 16;
    return first_pages * page_size_for(pages * kLargePage) + copied + waiting + limit.finishing;
}

bool DatabaseWriter::Impl::has_room_for(std::int64_t bytes) {
    if (limit.full) return false;
    if (limit.added + bytes <= SizeLimit::kBetweenLooks) return true;
    limit.full = finished_bytes() + bytes + SizeLimit::kKeptFree > limit.most;
    limit.added = 0;
    return !limit.full;
}

void DatabaseWriter::limit_size(std::int64_t bytes) {
    impl_->limit.most = bytes;
    impl_->limit.full = false;
    impl_->limit.added = SizeLimit::kBetweenLooks;  // so that the next event queries the size
}

bool DatabaseWriter::is_full() const {
    return impl_->limit.full;
}

std::int64_t DatabaseWriter::refused_events() const {
    return impl_->limit.refused;
}

std::int64_t DatabaseWriter::finished_bytes() {
    return impl_->finished_bytes();
}

std::string_view DatabaseWriter::text(schema::StringId id) const {
    return impl_->strings[id];
}

void DatabaseWriter::commit() {
    impl_->commit();
}

void DatabaseWriter::set_start_utc_ns(std::int64_t ns) {
    impl_->write([&](Inserts&) {
        impl_->database.execute(fmt::format(
            "UPDATE TARGET_INFO_SESSION_START_TIME SET utcEpochNs = {}, utcTime = '{}', localTime = '{}'", ns,
            iso_time(ns, false), iso_time(ns, true)));
    });
}

FinalizeResult DatabaseWriter::finish(std::int64_t duration_ns, std::int64_t dropped,
                                      const FinalizeOptions& options) {
    if (dropped > 0) {
        add(schema::DiagnosticRow{
            .time = duration_ns,
            .severity = schema::Severity::warning,
            .text = fmt::format("{} lost: a buffer was full, or the device reported invalid timestamps",
                                counted(dropped, "event was", "events were"))});
    }
    impl_->write([&](Inserts&) {
        impl_->database.execute(
            fmt::format("INSERT INTO ANALYSIS_DETAILS VALUES ({0}, {1}, {2}, {3});"
                        "UPDATE SHARD_STATE SET dropped = {4};",
                        schema::kVmId, duration_ns - impl_->first_ns, impl_->first_ns, duration_ns, dropped));
    });
    impl_->commit();
    impl_->inserts.reset();
    impl_->database.close();
    try {
        return finalize_ended_run(impl_->database.path(), options);
    } catch (const StoreError& error) {
        impl_->failure = error.what();
        throw;
    }
}

}  // namespace shardscope::traces::store
