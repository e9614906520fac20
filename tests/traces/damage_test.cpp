// Files that are damaged or unusual: killed runs, full disks, truncated and foreign files, outputs that
// cannot be written. Each is opened with its content or refused with one sentence; none causes a crash.
#include <csignal>
#include <fstream>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/traces/outcome.h"
#include "tests/traces/sample_run.h"
#include "tests/traces/temporary_folder.h"
#include "traces/schema/schema.h"
#include "traces/store/load/loader.h"
#include "traces/store/sqlite/query.h"
#include "traces/store/sqlite/sqlite.h"
#include "traces/store/write/writer.h"

namespace shardscope::traces::store {
namespace TEST_FILE {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class Damage : public ::testing::Test {
  protected:
    std::string write_run(const std::string& name) {
        const std::string path = folder_ / name;
        DatabaseWriter writer({.path = path});
        write_sample_run(writer);
        writer.finish(3 * kSampleMs, 0);
        return path;
    }
    static void write_bytes(const std::string& path, const std::string& bytes) {
        std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
    }
    // The error with which a file is refused; "" if it is accepted.
    static std::string refusal(const std::string& path) {
        return refusal_of([&] { load_trace(path); });
    }
    static std::string output_refusal(const std::string& path, bool overwrite) {
        return refusal_of([&] { DatabaseWriter::check_output(path, overwrite); });
    }
    TemporaryFolder folder_;
};

TEST_F(Damage, ARunWithoutItsEndLoadsWhatWasCommitted) {
    const std::string path = folder_ / "run.sqlite";
    {
        DatabaseWriter writer({.path = path});
        write_sample_facts(writer);
        write_sample_step(writer, 0, 0);
        writer.commit();
        write_sample_step(writer, 0, 1);  // never committed
    }
    const auto trace = load_trace(path);
    EXPECT_FALSE(trace->ended);
    EXPECT_EQ(trace->device.size(), 4u);
    EXPECT_EQ(trace->steps.size(), 1u);
    EXPECT_EQ(trace->ranks.size(), 2u);
}

TEST_F(Damage, AKilledProcessLeavesWhatItCommitted) {
    const std::string path = folder_ / "run.sqlite";
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        DatabaseWriter writer({.path = path});
        write_sample_facts(writer);
        write_sample_step(writer, 0, 0);
        writer.commit();
        write_sample_step(writer, 0, 1);
        ::kill(::getpid(), SIGKILL);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
    ASSERT_TRUE(fs::exists(path + "-wal"));

    const auto trace = load_trace(path);
    EXPECT_FALSE(trace->ended);
    EXPECT_EQ(trace->device.size(), 4u);
    EXPECT_EQ(run_query(path, "SELECT count(*) FROM kernels")[0].rows[0][0], QueryValue(std::int64_t{2}));

    // The journal may also be cut anywhere: the commits before the cut are then present.
    const std::string journal = bytes_of(path + "-wal");
    for (const std::size_t size : {std::size_t{0}, std::size_t{31}, std::size_t{5000}, journal.size() / 2}) {
        const std::string copy = folder_ / "copy.sqlite";
        for (const char* side : {"-wal", "-shm"}) fs::remove(copy + side);
        fs::copy_file(path, copy, fs::copy_options::overwrite_existing);
        write_bytes(copy + "-wal", journal.substr(0, size));
        EXPECT_THAT(refusal(copy), AnyOf("", HasSubstr("copy.sqlite"))) << size;
    }
}

TEST_F(Damage, ARunIsReadWhileItIsWritten) {
    const std::string path = folder_ / "run.sqlite";
    DatabaseWriter writer({.path = path});
    write_sample_facts(writer);
    write_sample_step(writer, 0, 0);
    writer.commit();
    EXPECT_EQ(load_trace(path)->steps.size(), 1u);
    write_sample_step(writer, 0, 1);
    writer.finish(1, 0);
    EXPECT_EQ(load_trace(path)->steps.size(), 2u);
    EXPECT_TRUE(load_trace(path)->ended);
}

TEST_F(Damage, RefusesANewerSchema) {
    const std::string path = write_run("run.sqlite");
    Database(path, Database::Mode::read_write)
        .execute("PRAGMA user_version = " + std::to_string(schema::kSchemaVersion + 1));
    EXPECT_THAT(refusal(path),
                AllOf(HasSubstr(path), HasSubstr("version " + std::to_string(schema::kSchemaVersion + 1)),
                      HasSubstr("newer than the " + std::to_string(schema::kSchemaVersion))));
}

TEST_F(Damage, RefusesFilesThatAreNotTraces) {
    EXPECT_THAT(refusal(folder_ / "none"), AllOf(HasSubstr("/none"), HasSubstr("does not exist")));
    EXPECT_THAT(refusal(folder_.path()), HasSubstr("is a folder"));
    EXPECT_THAT(refusal("/dev/null"), HasSubstr("not a regular file"));
    write_bytes(folder_ / "empty", "");
    EXPECT_THAT(refusal(folder_ / "empty"), HasSubstr("is empty"));
    write_bytes(folder_ / "text", "[run]\nsteps = 4\n");
    EXPECT_THAT(refusal(folder_ / "text"), HasSubstr("not an SQLite file"));
    write_bytes(folder_ / "other", "");
    Database(folder_ / "other", Database::Mode::read_write).execute("CREATE TABLE songs (name)");
    EXPECT_THAT(refusal(folder_ / "other"), HasSubstr("not a trace"));
}

TEST_F(Damage, TruncationAnywhereIsRefusedAndNamed) {
    const std::string whole = bytes_of(write_run("run.sqlite"));
    const std::string path = folder_ / "cut.sqlite";
    // Cuts around the header, around pages, and in between.
    std::vector<std::size_t> sizes = {1, 15, 16, 17, 99, 100, 101, 4096, 16383, 16384, 16385};
    for (std::size_t i = 1; i < 24; ++i) sizes.push_back(whole.size() * i / 24);
    sizes.push_back(whole.size() - 1);
    for (const std::size_t size : sizes) {
        write_bytes(path, whole.substr(0, size));
        const std::string why = refusal(path);
        EXPECT_THAT(why, AllOf(HasSubstr(path), Not(HasSubstr("\n")))) << size << " bytes";
    }
    write_bytes(path, whole);
    EXPECT_EQ(refusal(path), "");
}

TEST_F(Damage, OverwrittenBytesNeverCrash) {
    const std::string whole = bytes_of(write_run("run.sqlite"));
    const std::string path = folder_ / "broken.sqlite";
    int refused = 0;
    for (std::size_t i = 0; i < 60; ++i) {
        std::string broken = whole;
        // 64 bytes of garbage at an offset that moves through the file.
        const std::size_t at = 100 + i * (whole.size() - 200) / 60;
        for (std::size_t b = 0; b < 64; ++b) broken[at + b] = static_cast<char>(b * 37 + i * 101 + 7);
        write_bytes(path, broken);
        const std::string why = refusal(path);
        if (!why.empty()) {
            ++refused;
            EXPECT_THAT(why, HasSubstr(path));
        }
    }
    EXPECT_GT(refused, 0);
}

TEST_F(Damage, AFinishedRunIsReadFromAReadOnlyFolder) {
    const std::string path = write_run("run.sqlite");
    fs::permissions(folder_.path(), fs::perms::owner_read | fs::perms::owner_exec);
    EXPECT_EQ(load_trace(path)->steps.size(), 4u);
    fs::permissions(folder_.path(), fs::perms::owner_all);
    // No file was left next to it, either.
    EXPECT_FALSE(fs::exists(path + "-wal"));
    EXPECT_FALSE(fs::exists(path + "-shm"));
    EXPECT_FALSE(fs::exists(path + "-journal"));
}

TEST_F(Damage, OldTablesMayLackColumnsAndOthersBeAbsent) {
    // Resembles a small export: no SHARD tables, a kernel table with four columns.
    const std::string path = folder_ / "export.sqlite";
    write_bytes(path, "");
    Database(path, Database::Mode::read_write)
        .execute(
            "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);"
            "INSERT INTO StringIds VALUES (900, 'ncclDevKernel_AllReduce_Sum_f32_RING_LL');"
            "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, shortName);"
            "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (10, 30, 2, 900), (40, 50, 3, 901);");
    const auto trace = load_trace(path);
    EXPECT_EQ(trace->schema_version, 0);
    EXPECT_TRUE(trace->ended);
    ASSERT_EQ(trace->device.size(), 2u);
    EXPECT_EQ(trace->device.kind[0], DeviceKind::communication);
    EXPECT_EQ(trace->strings[trace->device.name[1]], "");  // an id that StringIds does not have
    EXPECT_EQ(trace->ranks.size(), 2u);
}

TEST_F(Damage, AnExportsProcessesBecomeRanks) {
    // Two processes, each on device 0, both with correlation id 1 and domain 1, which mean different things
    // in each.
    const std::string path = folder_ / "export.sqlite";
    write_bytes(path, "");
    Database database(path, Database::Mode::read_write);
    database.execute(
        "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, streamId, correlationId, globalPid, "
        "shortName);"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start, end, globalTid, correlationId, nameId);"
        "CREATE TABLE NVTX_EVENTS (start, end, eventType, text, globalTid, domainId, int64Value);");
    for (const std::int64_t p : {1, 2}) {
        const std::string pid = std::to_string(schema::global_pid(p)),
                          tid = std::to_string(schema::global_tid(p, p));
        const std::string t = std::to_string(p * 100);
        database.execute(
            "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (" + t + ", " + t + " + 5, " + tid + ", 1, 0);" +
            "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (" + t + " + 10, " + t + " + 20, 0, 7, 1, " + pid +
            ", 0);" + "INSERT INTO NVTX_EVENTS VALUES (0, NULL, 75, '" + (p == 1 ? "NCCL" : "CCCL") + "', " +
            tid + ", 1, NULL), (" + t + ", " + t + " + 9, 59, 'work', " + tid + ", 1, 3);");
    }
    const auto trace = load_trace(path);
    ASSERT_EQ(trace->ranks.size(), 2u);
    ASSERT_EQ(trace->device.size(), 2u);
    EXPECT_EQ(trace->device.rank, (std::vector<std::uint16_t>{0, 1}));
    EXPECT_EQ(trace->device.launch.all(), (std::vector<std::int32_t>{0, 1}));
    EXPECT_EQ(trace->ranges.kind, (std::vector<RangeKind>{RangeKind::communication, RangeKind::annotation}));
    EXPECT_EQ(trace->ranges.module, (std::vector<std::int32_t>{-1, -1}));  // the payload is the program's own
}

TEST_F(Damage, ALoadCanBeFollowedAndCancelled) {
    const std::string path = folder_ / "run.sqlite";
    DatabaseWriter writer({.path = path});
    for (int i = 0; i < 10000; ++i) writer.add(schema::CounterRow{.time = i, .rank = 0, .value = 1});
    writer.finish(1, 0);
    LoadProgress progress;
    load_trace(path, &progress);
    EXPECT_EQ(progress.fraction, 1);
    progress.cancel = true;
    EXPECT_THROW(load_trace(path, &progress), StoreError);
}

TEST_F(Damage, AFullDiskIsReportedOnceAndKeepsWhatWasWritten) {
    const std::string path = folder_ / "run.sqlite";
    DatabaseWriter writer({.path = path});
    write_sample_facts(writer);
    writer.commit();
    // A limit on the file size simulates a full disk; exceeding it is an error, not a signal.
    struct rlimit before {};
    ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
    struct rlimit limit = before;
    limit.rlim_cur = 4 << 20;
    const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
    std::string why;
    try {
        for (int i = 0; i < 400'000; ++i) {
            writer.add(schema::CounterRow{.time = i, .rank = 0, .name = writer.intern("c"), .value = 1});
            if (i % 5000 == 0) writer.commit();
        }
    } catch (const StoreError& error) {
        why = error.what();
    }
    ::setrlimit(RLIMIT_FSIZE, &before);
    std::signal(SIGXFSZ, old_handler);
    EXPECT_THAT(why, AllOf(HasSubstr(path), HasSubstr("space")));
    EXPECT_THROW(writer.add(schema::LossRow{}), StoreError);  // nothing is written after a failure
    EXPECT_THROW(writer.finish(1, 0), StoreError);
    const auto trace = load_trace(path);
    EXPECT_FALSE(trace->ended);
    EXPECT_EQ(trace->ranks.size(), 2u);
}

TEST_F(Damage, ImpossibleOutputsAreRefusedBeforeTheRun) {
    EXPECT_THAT(output_refusal("", false), HasSubstr("path is empty"));
    EXPECT_THAT(output_refusal(folder_.path(), true), HasSubstr("is a folder"));
    EXPECT_THAT(output_refusal(folder_ / "no/such/run.sqlite", false), HasSubstr("no folder"));
    EXPECT_THAT(output_refusal("/dev/null", true), HasSubstr("not a regular file"));
    const std::string path = write_run("run.sqlite");
    EXPECT_THAT(output_refusal(path, false), HasSubstr("exists"));
    EXPECT_EQ(output_refusal(path, true), "");
    EXPECT_EQ(output_refusal(folder_ / "new.sqlite", false), "");
    EXPECT_FALSE(fs::exists(folder_ / "new.sqlite"));  // the existing database is not touched
    EXPECT_THROW(DatabaseWriter({.path = path}), StoreError);
    EXPECT_EQ(load_trace(path)->steps.size(), 4u);  // the old file is unchanged
    if (::geteuid() != 0) {
        fs::permissions(folder_.path(), fs::perms::owner_read | fs::perms::owner_exec);
        EXPECT_THAT(output_refusal(folder_ / "new.sqlite", false), HasSubstr("not writable"));
    }
}

TEST_F(Damage, OverwritingReplacesAFileAndItsJournal) {
    const std::string path = write_run("run.sqlite");
    write_bytes(path + "-wal", "left by a run that was killed");
    DatabaseWriter writer({.path = path, .overwrite = true});
    writer.add(schema::LossRow{.step = 0, .loss = 1});
    writer.finish(1, 0);
    const auto trace = load_trace(path);
    EXPECT_EQ(trace->steps.size(), 0u);
    EXPECT_TRUE(trace->ended);
    int files = 0;
    for ([[maybe_unused]] const auto& entry : fs::directory_iterator(folder_.path())) ++files;
    EXPECT_EQ(files, 1);
}

TEST_F(Damage, OverwritingFollowsALink) {
    const std::string path = write_run("run.sqlite");
    const std::string link = folder_ / "link.sqlite";
    fs::create_symlink(path, link);
    DatabaseWriter({.path = link, .overwrite = true}).finish(1, 0);
    EXPECT_TRUE(fs::is_symlink(link));
    EXPECT_EQ(load_trace(path)->steps.size(), 0u);
}

TEST_F(Damage, AQueryOnlyReads) {
    const std::string path = write_run("run.sqlite");
    for (const char* sql :
         {"DELETE FROM StringIds", "DROP VIEW kernels", "ATTACH 'other.sqlite' AS other",
          "VACUUM INTO 'other.sqlite'", "CREATE TABLE t (a)", "SELEC 1", "SELECT * FROM nothing"}) {
        EXPECT_THROW(run_query(path, sql), QueryError) << sql;
    }
    EXPECT_FALSE(fs::exists("other.sqlite"));
    EXPECT_EQ(load_trace(path)->steps.size(), 4u);
}

TEST_F(Damage, AQuerySaysWhereItIsWrong) {
    const std::string path = write_run("run.sqlite");
    try {
        run_query(path, "-- a comment\nSELECT rank,\n  nothing FROM kernels");
        FAIL();
    } catch (const QueryError& error) {
        EXPECT_THAT(error.what(), AllOf(HasSubstr("line 3, column 3"), HasSubstr("nothing")));
    }
    EXPECT_THAT(run_query(path, "  -- nothing but a comment\n"), IsEmpty());
    EXPECT_THAT(run_query(path, "SELECT 1; ; SELECT NULL, 2.5, 'a', x'00FF';"), ::testing::SizeIs(2));
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::store
