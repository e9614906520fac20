// A recorded file becomes a finished one: nothing is lost, rows are ordered by time, sums and indexes are
// added. If this is interrupted, the recorded file can be finalized later.
#include "traces/store/write/finalize.h"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/traces/outcome.h"
#include "tests/traces/sample_run.h"
#include "tests/traces/sql_rows.h"
#include "tests/traces/temporary_folder.h"
#include "traces/schema/schema.h"
#include "traces/store/load/loader.h"
#include "traces/store/write/writer.h"

namespace shardscope::traces::store {
namespace TEST_FILE {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Outcome = FinalizeResult::Outcome;

class Finalize : public ::testing::Test {
  protected:
    Finalize() : path_(folder_ / "run.sqlite") {}

    // `rows` ranges and counters whose times are shuffled within 5000 rows; the very last row is a long range
    // that began first, as when a program ends. The file is left as a kill leaves it.
    void record(int rows) {
        DatabaseWriter writer({.path = path_});
        write_sample_facts(writer);
        const schema::StringId names[] = {writer.intern("a"), writer.intern("b"), writer.intern("c")};
        std::mt19937 random(7);
        for (int i = 0; i < rows; ++i) {
            const std::int64_t start = 1000 + i + static_cast<int>(random() % 5000);
            schema::RangeRow range{.start = start, .end = start + static_cast<int>(random() % 100)};
            range.text = names[random() % 3];
            range.global_tid = sample_tid(static_cast<int>(random() % 2));
            writer.add(range);
            writer.add(schema::CounterRow{.time = start, .rank = 0, .name = names[0], .value = double(i)});
            if (i % 20'000 == 0) writer.commit();
        }
        writer.add(
            schema::RangeRow{.start = 1, .end = rows + 90000, .text = names[0], .global_tid = sample_tid(0)});
        writer.commit();
    }
    std::vector<std::string> answer(const std::string& sql) const {
        Database database(path_, Database::Mode::read_only);
        return sql_rows(database, sql);
    }
    std::string integrity() const { return answer("PRAGMA integrity_check")[0]; }
    // All rows, in an order that does not depend on their place in the file.
    std::vector<std::string> content() const {
        auto rows = answer("SELECT start, \"end\", text, globalTid FROM NVTX_EVENTS ORDER BY 1, 2, 3, 4");
        for (auto& row : answer("SELECT * FROM SHARD_COUNTERS ORDER BY time, value")) rows.push_back(row);
        return rows;
    }
    std::vector<std::string> files() const {
        std::vector<std::string> names;
        for (const auto& entry : fs::directory_iterator(folder_.path())) {
            names.push_back(entry.path().filename());
        }
        std::sort(names.begin(), names.end());
        return names;
    }
    std::string refusal(const std::string& path) const {
        return refusal_of([&] { finalize_trace(path); });
    }

    TemporaryFolder folder_;
    std::string path_;
};

TEST_F(Finalize, PutsEventsInOrderAndLosesNone) {
    record(30'000);
    const auto before = content();
    ASSERT_EQ(before.size(), 2 * 30'000 + 1u);
    const FinalizeResult result = finalize_trace(path_);
    EXPECT_EQ(result.outcome, Outcome::finalized);
    EXPECT_GT(result.rows, 60'000);
    EXPECT_EQ(content(), before);
    EXPECT_EQ(integrity(), "ok");
    for (const auto& [table, time] :
         {std::pair("NVTX_EVENTS", "start"), std::pair("SHARD_COUNTERS", "time")}) {
        EXPECT_THAT(answer(fmt::format("SELECT count(*) FROM {0} a JOIN {0} b ON b.rowid = a.rowid + 1 "
                                       "WHERE b.{1} < a.{1}",
                                       table, time)),
                    ElementsAre("0"))
            << table;
    }
    // Rows with equal times keep the order in which they were recorded, which the counter's value shows.
    EXPECT_THAT(answer("SELECT count(*) FROM SHARD_COUNTERS a JOIN SHARD_COUNTERS b ON b.rowid = a.rowid + 1 "
                       "WHERE b.time = a.time AND b.value < a.value"),
                ElementsAre("0"));
    EXPECT_THAT(files(), ElementsAre("run.sqlite"));
}

// The result does not depend on the number of rows sorted at a time. 150,000 rows are three blocks of
// neighbours.
TEST_F(Finalize, SortsLargeTablesByParts) {
    record(150'000);
    const std::string copy = folder_ / "copy.sqlite";
    fs::copy_file(path_, copy);
    finalize_trace(path_);
    const auto whole = answer("SELECT rowid, * FROM NVTX_EVENTS");
    path_ = copy;
    finalize_trace(copy, {.cancel = nullptr, .progress = {}, .rows_at_once = 4096});
    EXPECT_EQ(answer("SELECT rowid, * FROM NVTX_EVENTS"), whole);
}

TEST_F(Finalize, SumsByNameAsSqlWould) {
    record(5000);
    finalize_trace(path_);
    EXPECT_EQ(answer("SELECT globalPid, nameId, count, total, shortest, longest FROM SHARD_TOTALS "
                     "WHERE source = 'NVTX_EVENTS' ORDER BY total DESC"),
              answer("SELECT globalTid & ~0xFFFFFF, textId, count(*), sum(\"end\" - start) AS total, "
                     "min(\"end\" - start), max(\"end\" - start) FROM NVTX_EVENTS "
                     "WHERE eventType IN (59, 60) GROUP BY 1, 2 ORDER BY total DESC"));
    EXPECT_THAT(answer("SELECT count(*) FROM SHARD_TOTALS WHERE deviceId NOT NULL"), ElementsAre("0"));
}

// The sample run (sample_run.h): on each of 2 devices 2 kernels of 300 us and 2 gathers of 50 us.
TEST_F(Finalize, SumsKernelsByDeviceAndCallsByProcess) {
    DatabaseWriter writer({.path = path_});
    write_sample_run(writer);
    writer.finish(3 * kSampleMs, 0);
    EXPECT_THAT(answer("SELECT deviceId, value, count, total, shortest, longest FROM SHARD_TOTALS "
                       "JOIN StringIds ON id = nameId WHERE source = 'CUPTI_ACTIVITY_KIND_KERNEL' AND "
                       "globalPid = " +
                       std::to_string(sample_pid()) + " ORDER BY deviceId, total DESC"),
                ElementsAre("0|sgemm|2|600000|300000|300000", HasSubstr("|2|100000|50000|50000"),
                            "1|sgemm|2|600000|300000|300000", HasSubstr("|2|100000|50000|50000")));
    EXPECT_EQ(answer("SELECT sum(count), sum(total) FROM SHARD_TOTALS WHERE source LIKE '%RUNTIME'"),
              answer("SELECT count(*), sum(\"end\" - start) FROM CUPTI_ACTIVITY_KIND_RUNTIME"));
}

TEST_F(Finalize, SaysThatTheRunWasKilled) {
    record(100);
    const FinalizeResult result = finalize_trace(path_);
    EXPECT_TRUE(result.run_was_killed);
    EXPECT_THAT(answer("SELECT ended FROM SHARD_STATE"), ElementsAre("1"));
    EXPECT_THAT(answer("SELECT value FROM SHARD_RUN WHERE key = 'finalized'"),
                ElementsAre("after the run was killed"));
    EXPECT_THAT(answer("SELECT timestamp, severity, text FROM DIAGNOSTIC_EVENT WHERE text LIKE '%killed%'"),
                ElementsAre(HasSubstr("90100|2|the run was killed")));
    // The end of the last event: the range that ends at rows + 90000.
    EXPECT_THAT(answer("SELECT duration, startTime, stopTime FROM ANALYSIS_DETAILS"),
                ElementsAre("90100|0|90100"));
    EXPECT_THAT(answer("SELECT count(*) FROM sqlite_master WHERE type = 'index' AND name LIKE '%.%'"),
                ElementsAre(std::to_string(schema::indexes().size())));
    EXPECT_TRUE(load_trace(path_)->ended);
}

TEST_F(Finalize, DoesNotChangeAFinishedFile) {
    record(100);
    finalize_trace(path_);
    const auto time = fs::last_write_time(path_);
    EXPECT_EQ(finalize_trace(path_).outcome, Outcome::already);
    EXPECT_EQ(fs::last_write_time(path_), time);
    EXPECT_THAT(answer("SELECT count(*) FROM DIAGNOSTIC_EVENT WHERE text LIKE '%killed%'"), ElementsAre("1"));
}

// Finalizing may stop at every progress report, and so at every table: a half-sorted file must stay intact.
TEST_F(Finalize, StopsWhenAsked) {
    record(70'000);
    const auto before = content();
    // It is stopped at the 1st, 2nd … progress report, until it completes.
    int stopped = 0;
    while (true) {
        std::atomic<bool> cancel = false;
        int reports = 0;
        const FinalizeResult result =
            finalize_trace(path_, {.cancel = &cancel, .progress = [&](double share) {
                                       EXPECT_GE(share, 0);
                                       EXPECT_LE(share, 1);
                                       cancel = cancel || reports++ == stopped;
                                   }});
        if (result.outcome == Outcome::finalized) break;
        EXPECT_EQ(result.outcome, Outcome::cancelled);
        EXPECT_THAT(answer("SELECT ended FROM SHARD_STATE"), ElementsAre("0"));
        EXPECT_THAT(files(), ElementsAre("run.sqlite"));
        ASSERT_LT(++stopped, 1000);
    }
    EXPECT_GE(stopped, 6);
    EXPECT_EQ(content(), before);
}

// Six kills, each in another part of the work, and each followed by a complete finalization.
TEST_F(Finalize, AKillLeavesAFileThatIsFinalizedLater) {
    record(60'000);
    const auto before = content();
    int killed = 0;
    for (const int report : {0, 1, 2, 3, 5, 7}) {
        const pid_t child = ::fork();
        ASSERT_GE(child, 0);
        if (child == 0) {
            int reports = 0;
            finalize_trace(path_, {.cancel = nullptr, .progress = [&](double) {
                                       if (reports++ == report) ::kill(::getpid(), SIGKILL);
                                   }});
            ::_exit(0);
        }
        int status = 0;
        ASSERT_EQ(::waitpid(child, &status, 0), child);
        if (!WIFSIGNALED(status)) continue;
        ++killed;
        EXPECT_EQ(integrity(), "ok");
        EXPECT_THAT(answer("SELECT ended FROM SHARD_STATE"), ElementsAre("0"));
        EXPECT_FALSE(load_trace(path_)->ended);
    }
    EXPECT_GE(killed, 4);
    finalize_trace(path_);
    EXPECT_EQ(content(), before);
    EXPECT_THAT(files(), ElementsAre("run.sqlite"));
}

TEST_F(Finalize, AFullDiskLeavesTheFileUnchanged) {
    record(60'000);
    const auto before = content();
    // A limit on the file size simulates a full disk. The finished file would have 5 MB.
    struct rlimit old {};
    ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
    struct rlimit limit = old;
    limit.rlim_cur = 2 << 20;
    // The recorded file is larger than the limit; switching off its journal must not need to write to it.
    Database(path_, Database::Mode::read_write).execute("PRAGMA journal_mode = DELETE");
    const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
    const std::string why = refusal(path_);
    ::setrlimit(RLIMIT_FSIZE, &old);
    std::signal(SIGXFSZ, old_handler);
    EXPECT_THAT(why, AllOf(HasSubstr(path_ + " was not finalized"), HasSubstr("space"), Not(HasSubstr("\n")),
                           Not(HasSubstr(".finalizing"))));
    EXPECT_EQ(content(), before);
    EXPECT_THAT(files(), ElementsAre("run.sqlite"));
    EXPECT_EQ(finalize_trace(path_).outcome, Outcome::finalized);
    EXPECT_EQ(content(), before);
}

TEST_F(Finalize, ARunThatIsStillRecordedIsLeftAlone) {
    DatabaseWriter writer({.path = path_});
    write_sample_facts(writer);
    writer.commit();
    // In another process, since SQLite's locks have no effect within one.
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) ::_exit(refusal(path_).find("still written") != std::string::npos ? 0 : 1);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(WEXITSTATUS(status), 0);
    writer.finish(5, 0);
    EXPECT_TRUE(load_trace(path_)->ended);
}

TEST_F(Finalize, AReaderDoesNotKeepARunFromEnding) {
    DatabaseWriter writer({.path = path_});
    write_sample_run(writer);
    writer.commit();
    Database reader(path_, Database::Mode::read_only);
    reader.execute("BEGIN");
    const std::int64_t rows = reader.integer("SELECT count(*) FROM NVTX_EVENTS");
    EXPECT_EQ(writer.finish(3 * kSampleMs, 0).outcome, Outcome::finalized);
    EXPECT_EQ(reader.integer("SELECT count(*) FROM NVTX_EVENTS"), rows);
    EXPECT_EQ(reader.integer("SELECT ended FROM SHARD_STATE"), 0);  // the state that it began to read
    reader.execute("COMMIT");
    EXPECT_EQ(reader.integer("SELECT ended FROM SHARD_STATE"), 1);
    EXPECT_GT(reader.integer("SELECT count(*) FROM SHARD_TOTALS"), 0);
    reader.close();
    EXPECT_TRUE(load_trace(path_)->ended);
}

TEST_F(Finalize, ReportsThatTheFileIsGone) {
    DatabaseWriter writer({.path = path_});
    write_sample_run(writer);
    writer.commit();
    fs::remove(path_);
    try {
        writer.finish(3 * kSampleMs, 0);
        FAIL();
    } catch (const StoreError& error) {
        EXPECT_THAT(error.what(), AllOf(HasSubstr(path_), HasSubstr("gone")));
    }
}

TEST_F(Finalize, KeepsWhatOthersPutIntoTheFile) {
    record(100);
    Database(path_, Database::Mode::read_write)
        .execute(
            "CREATE TABLE \"my \"\"notes\"\"\" (\"a \"\"text\"\"\" PRIMARY KEY, start) WITHOUT ROWID;"
            "INSERT INTO \"my \"\"notes\"\"\" VALUES ('mine', 9), ('also mine', 3);"
            "ALTER TABLE NVTX_EVENTS ADD COLUMN extra");
    finalize_trace(path_);
    EXPECT_THAT(answer("SELECT * FROM \"my \"\"notes\"\"\""), ElementsAre("also mine|3", "mine|9"));
}

// A table definition of an untrusted file may create a table, and nothing else.
TEST_F(Finalize, ExecutesNothingElseThatAFileContains) {
    record(100);
    const std::string stolen = folder_ / "stolen.sqlite";
    Database(path_, Database::Mode::read_write)
        .execute(
            "CREATE TABLE t (a); PRAGMA writable_schema = ON;"
            "UPDATE sqlite_master SET sql = 'CREATE TABLE t (a); ATTACH ''" +
            stolen + "'' AS s; CREATE TABLE s.x (y)' WHERE name = 't'");
    refusal(path_);
    EXPECT_FALSE(fs::exists(stolen));
}

// A file of the second schema lacks the tables of the third; once finalized, it has them.
TEST_F(Finalize, BringsAnOlderSchemaUpToDate) {
    record(100);
    {
        Database database(path_, Database::Mode::read_write);
        for (const auto tables : {schema::nsight_tables(), schema::shard_tables(), schema::nsight_enums(),
                                  schema::shard_enums()}) {
            for (const schema::SchemaTable& table : tables) {
                if (table.since >= 3) database.execute(fmt::format("DROP TABLE {}", table.name));
            }
        }
        for (const schema::SchemaView& view : schema::views()) {
            if (view.since >= 3) database.execute(fmt::format("DROP VIEW {}", view.name));
        }
        database.execute("PRAGMA user_version = 2");
    }
    const auto before = content();
    finalize_trace(path_);
    EXPECT_EQ(content(), before);
    EXPECT_THAT(answer("PRAGMA user_version"), ElementsAre(std::to_string(schema::kSchemaVersion)));
    EXPECT_THAT(answer("SELECT count(*) > 0 FROM SHARD_TOTALS"), ElementsAre("1"));
}

TEST_F(Finalize, KeepsTheFilesPermissionsAndLinks) {
    record(100);
    ASSERT_EQ(::chmod(path_.c_str(), 0640), 0);
    const std::string link = folder_ / "link.sqlite";
    fs::create_symlink(path_, link);
    finalize_trace(link);
    EXPECT_TRUE(fs::is_symlink(link));
    struct stat now {};
    ASSERT_EQ(::stat(path_.c_str(), &now), 0);
    EXPECT_EQ(now.st_mode & 0777, 0640u);
    EXPECT_TRUE(load_trace(path_)->ended);
}

TEST_F(Finalize, RefusesFilesThatItCannotFinalizeAndChangesNothing) {
    EXPECT_THAT(refusal(folder_ / "none.sqlite"), HasSubstr("does not exist"));
    EXPECT_THAT(refusal(folder_.path()), HasSubstr("is a folder"));
    const std::string other = folder_ / "export.sqlite";
    std::ofstream(other).close();
    Database(other, Database::Mode::read_write).execute("CREATE TABLE NVTX_EVENTS (start, \"end\")");
    EXPECT_THAT(refusal(other), HasSubstr("not a trace of Shardscope's own"));
    record(100);
    Database(path_, Database::Mode::read_write)
        .execute("PRAGMA user_version = " + std::to_string(schema::kSchemaVersion + 1));
    EXPECT_THAT(refusal(path_), HasSubstr("newer"));
}

// A table that is damaged in the middle cannot be read completely; the file stays, with everything that is
// still readable.
TEST_F(Finalize, ADamagedFileIsNotChanged) {
    record(20'000);
    Database(path_, Database::Mode::read_write).execute("PRAGMA journal_mode = DELETE");
    const auto root =
        std::stoll(answer("SELECT rootpage FROM sqlite_master WHERE name = 'SHARD_COUNTERS'")[0]);
    {
        std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
        file.seekp((root - 1) * 16384);
        file << std::string(16384, '\xAA');
    }
    const auto size = fs::file_size(path_);
    EXPECT_THAT(refusal(path_), AllOf(HasSubstr(path_), HasSubstr("damaged"), Not(HasSubstr(".finalizing"))));
    EXPECT_EQ(fs::file_size(path_), size);
    EXPECT_THAT(files(), ElementsAre("run.sqlite"));
    EXPECT_THAT(answer("SELECT count(*) FROM NVTX_EVENTS"), ElementsAre("20001"));
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::store
