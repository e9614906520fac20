// Traces in places where nothing may be written: finished ones are opened in place, others from a temporary
// copy that is removed immediately.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/traces/sample_run.h"
#include "tests/traces/temporary_folder.h"
#include "traces/store/load/loader.h"
#include "traces/store/sqlite/open.h"
#include "traces/store/sqlite/query.h"
#include "traces/store/sqlite/wal_damage.h"
#include "traces/store/write/finalize.h"
#include "traces/store/write/writer.h"

namespace shardscope::traces::store {
namespace TEST_FILE {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ReadOnly : public ::testing::Test {
  protected:
    ReadOnly() {
        ::chmod(temporary_.path().c_str(), 0777);
        ::setenv("TMPDIR", temporary_.path().c_str(), 1);
    }
    ~ReadOnly() override {
        ::chmod(folder_.path().c_str(), 0700);
        before_ ? ::setenv("TMPDIR", before_->c_str(), 1) : ::unsetenv("TMPDIR");
    }

    // A run that is killed after `steps` of its two steps were committed. `-shm` is kept or removed.
    std::string killed_run(int steps, bool keep_index) {
        const std::string path = folder_ / "killed.sqlite";
        const pid_t child = ::fork();
        if (child == 0) {
            DatabaseWriter writer({.path = path});
            write_sample_facts(writer);
            for (int step = 0; step < steps; ++step) {
                for (int rank = 0; rank < kSampleRanks; ++rank) write_sample_step(writer, rank, step);
            }
            writer.commit();
            ::kill(::getpid(), SIGKILL);
        }
        int status = 0;
        ::waitpid(child, &status, 0);
        EXPECT_TRUE(WIFSIGNALED(status));
        EXPECT_TRUE(fs::exists(path + "-wal"));
        if (!keep_index) fs::remove(path + "-shm");
        return path;
    }
    std::string finished_run() {
        const std::string path = folder_ / "run.sqlite";
        DatabaseWriter writer({.path = path});
        write_sample_run(writer);
        writer.finish(3 * kSampleMs, 0);
        return path;
    }

    // Makes the folder and everything in it read-only.
    void lock() const {
        for (const auto& entry : fs::directory_iterator(folder_.path())) ::chmod(entry.path().c_str(), 0444);
        ::chmod(folder_.path().c_str(), 0555);
    }

    // Runs `body` as a user to whom permissions apply (unlike root); false if it failed.
    static bool unprivileged(const std::function<void()>& body) {
        const pid_t child = ::fork();
        if (child == 0) {
            if (::geteuid() == 0 && (::setgid(65534) != 0 || ::setuid(65534) != 0)) ::_exit(3);
            try {
                body();
            } catch (const std::exception& error) {
                ADD_FAILURE() << error.what();
            }
            ::_exit(::testing::Test::HasFailure() ? 1 : 0);
        }
        int status = 0;
        ::waitpid(child, &status, 0);
        return WIFEXITED(status) && WEXITSTATUS(status) == 0;
    }

    static std::optional<std::string> temporary_directory() {
        const char* name = std::getenv("TMPDIR");
        return name != nullptr ? std::optional<std::string>(name) : std::nullopt;
    }
    int entries(const TemporaryFolder& folder) const {
        return static_cast<int>(std::distance(fs::directory_iterator(folder.path()), {}));
    }

    const std::optional<std::string> before_ = temporary_directory();
    TemporaryFolder folder_, temporary_;
};

TEST_F(ReadOnly, AFinishedRunOpensInPlace) {
    const std::string path = finished_run();
    lock();
    EXPECT_TRUE(unprivileged([&] {
        EXPECT_EQ(opening_note(path), "");
        EXPECT_EQ(load_trace(path)->steps.size(), 4u);
        EXPECT_EQ(run_query(path, "SELECT count(*) FROM steps")[0].rows[0][0], QueryValue(std::int64_t{4}));
    }));
    EXPECT_EQ(entries(folder_), 1);
}

TEST_F(ReadOnly, AnUnfinishedRunOpensFromACopyThatIsRemovedImmediately) {
    const std::string path = killed_run(1, false);
    lock();
    EXPECT_TRUE(unprivileged([&] {
        EXPECT_THAT(opening_note(path), AllOf(HasSubstr(path), HasSubstr("temporary copy")));
        Database database = open_trace(path);
        EXPECT_EQ(entries(temporary_), 0) << "whoever kills the program now leaves nothing behind";
        // Everything is still present: both ranks' first step, from the journal.
        EXPECT_EQ(database.integer("SELECT count(*) FROM SHARD_STEPS"), 2);
        EXPECT_EQ(database.integer("SELECT count(*) FROM kernels"), 4);
        EXPECT_EQ(database.path(), path);  // messages contain the original path
        const auto trace = load_trace(path);
        EXPECT_FALSE(trace->ended);
        EXPECT_EQ(trace->path, path);
        EXPECT_EQ(trace->steps.size(), 2u);
    }));
    EXPECT_EQ(entries(temporary_), 0);
    EXPECT_EQ(entries(folder_), 2) << "the trace and its journal, as before";
}

TEST_F(ReadOnly, AnIndexThatWasLeftNextToTheJournalDoesNoHarm) {
    const std::string path = killed_run(2, true);
    lock();
    EXPECT_TRUE(unprivileged([&] { EXPECT_EQ(load_trace(path)->steps.size(), 4u); }));
    EXPECT_EQ(entries(temporary_), 0);
}

TEST_F(ReadOnly, FinalizingSaysWhatCannotBeWritten) {
    const std::string path = killed_run(1, true);
    lock();
    EXPECT_TRUE(unprivileged([&] {
        try {
            finalize_trace(path);
            ADD_FAILURE() << "finalized";
        } catch (const StoreError& error) {
            EXPECT_THAT(error.what(),
                        AllOf(HasSubstr(path + " cannot be finalized"), HasSubstr("writable (Permission")));
        }
    }));
}

// SQLite treats such a journal as empty.
TEST_F(ReadOnly, AJournalThatCannotBeReadIsReported) {
    const std::string path = killed_run(2, false);
    EXPECT_EQ(damage_of_wal(path), "");
    EXPECT_EQ(damage_of_wal(finished_run()), "");
    const std::string whole = path + ".whole";
    fs::copy_file(path + "-wal", whole);
    for (const std::streamoff at : {std::streamoff(0), std::streamoff(20), std::streamoff(5000)}) {
        SCOPED_TRACE(at);
        fs::copy_file(whole, path + "-wal", fs::copy_options::overwrite_existing);
        std::fstream wal(path + "-wal", std::ios::in | std::ios::out | std::ios::binary);
        wal.seekp(at);
        wal << "garbage";
        wal.close();
        EXPECT_THAT(damage_of_wal(path), AllOf(HasSubstr(path + "-wal"), HasSubstr("is damaged")));
    }
    fs::resize_file(path + "-wal", 100);
    EXPECT_THAT(damage_of_wal(path), HasSubstr("is damaged"));
    fs::copy_file(whole, path + "-wal", fs::copy_options::overwrite_existing);
    fs::resize_file(path + "-wal", 32);  // restarted, and nothing written since
    EXPECT_EQ(damage_of_wal(path), "");
}

TEST_F(ReadOnly, AFullDiskForTheCopyIsAnError) {
    const std::string path = killed_run(1, false);
    lock();
    EXPECT_TRUE(unprivileged([&] {
        ::setenv("TMPDIR", "/proc", 1);  // where no folder can be made
        try {
            load_trace(path);
            ADD_FAILURE() << "opened";
        } catch (const StoreError& error) {
            EXPECT_THAT(error.what(), AllOf(HasSubstr(path), HasSubstr("TMPDIR")));
        }
    }));
}

// A change with a rollback journal was interrupted: the file is rolled back in place if it is writable,
// otherwise in a copy.
TEST_F(ReadOnly, AChangeThatWasCutShortIsRolledBack) {
    const std::string path = finished_run();
    const pid_t child = ::fork();
    if (child == 0) {
        Database database(path, Database::Mode::read_write);
        // A cache of one page: changes reach the file before they are committed.
        database.execute(
            "PRAGMA cache_size = 1; BEGIN; UPDATE StringIds SET value = 'changed and not committed';"
            "UPDATE NVTX_EVENTS SET text = 'changed and not committed'");
        ::kill(::getpid(), SIGKILL);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status));
    ASSERT_GT(fs::file_size(path + "-journal"), 0u);
    const auto changed = [&] {
        return run_query(path, "SELECT count(*) FROM NVTX_EVENTS WHERE text LIKE 'changed%'")[0].rows[0][0];
    };
    lock();
    EXPECT_TRUE(unprivileged([&] {
        EXPECT_THAT(opening_note(path), HasSubstr("temporary copy"));
        EXPECT_EQ(changed(), QueryValue(std::int64_t{0}));
        EXPECT_EQ(load_trace(path)->steps.size(), 4u);
    }));
    EXPECT_EQ(entries(temporary_), 0);
    EXPECT_TRUE(fs::exists(path + "-journal"));

    ::chmod(folder_.path().c_str(), 0700);
    for (const char* side : {"", "-journal"}) ::chmod((path + side).c_str(), 0600);
    EXPECT_THAT(opening_note(path), IsEmpty());
    EXPECT_EQ(changed(), QueryValue(std::int64_t{0}));
    EXPECT_FALSE(fs::exists(path + "-journal"));
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::store
