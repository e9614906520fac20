// The folder in which checkpoints are saved: a save is either complete or absent.
#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <functional>
#include <system_error>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "tests/trainer/checkpoint_testing.h"
#include "trainer/checkpoint/error.h"
#include "trainer/checkpoint/open_files.h"

namespace shardscope::trainer::checkpoint {
namespace TEST_FILE {

using namespace testing;

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::int64_t loaded_step(const std::string& path) {
    return StoredCheckpoint(path).manifest().step;
}

std::string complaint(const std::function<void()>& action) {
    try {
        action();
    } catch (const CheckpointError& error) {
        return error.what();
    }
    return "";
}

class SaveFolder : public ::testing::Test {
  protected:
    std::vector<std::string> names() const {
        std::vector<std::string> names;
        for (const auto& entry : std::filesystem::directory_iterator(folder_.string())) {
            if (entry.path().filename() != kLockName) names.push_back(entry.path().filename().string());
        }
        std::sort(names.begin(), names.end());
        return names;
    }

    TemporaryFolder folder_;
    RunLayout layout_ = flat_layout(small_model(), 2, 2);
    job::Job job_ = job_with(folder_.string(), 2);
    SaveSettings again_{.overwrite = true};
};

// Reads the files of a thousand ranks with at most three open at the same time.
TEST_F(SaveFolder, OpensAFewFilesAtATime) {
    constexpr std::size_t kFiles = 20;
    const auto descriptors = [] {
        const std::filesystem::directory_iterator all("/proc/self/fd");
        return std::distance(begin(all), end(all));
    };
    OpenFiles files(3);
    const auto before = descriptors();
    for (std::size_t i = 0; i < kFiles; ++i) {
        put(folder_ / std::to_string(i), "file " + std::to_string(i));
        EXPECT_EQ(files.add(folder_ / std::to_string(i)), i < 10 ? 6 : 7);
    }
    EXPECT_EQ(descriptors(), before + 3);
    const auto held = files.file(4);  // stays open whatever files are opened later
    for (std::size_t i = 0; i < kFiles; ++i) {
        std::array<std::byte, 6> bytes{};
        files.file(i)->read(bytes, 0);
        EXPECT_EQ(static_cast<char>(bytes[5]), std::to_string(i)[0]);
    }
    EXPECT_LE(descriptors(), before + 4);
    std::array<std::byte, 6> bytes{};
    held->read(bytes, 0);
    EXPECT_EQ(static_cast<char>(bytes[5]), '4');

    // Another file with the same name would be read without being checked.
    put(folder_ / "new", "file 0");
    std::filesystem::rename(folder_ / "new", folder_ / "0");
    EXPECT_THROW(files.file(0), std::system_error);
    std::filesystem::remove(folder_ / "1");
    EXPECT_THROW(files.file(1), std::system_error);
    EXPECT_NO_THROW(files.file(kFiles - 1));
}

TEST_F(SaveFolder, ContainsEachStepAndTheNameOfTheLatest) {
    save_values(job_, layout_, 9);
    save_values(job_, layout_, 10, again_);
    EXPECT_THAT(names(), ElementsAre("latest", "step-10", "step-9"));
    EXPECT_EQ(bytes_of(folder_ / "latest"), "step-10\n");
    EXPECT_EQ(loaded_step(folder_.string()), 10);
    EXPECT_EQ(loaded_step(folder_ / "step-9"), 9);
}

// Leftovers of a run that was killed while it wrote: parts in an unfinished folder, maybe also a manifest.
TEST_F(SaveFolder, AnInterruptedSaveKeepsThePreviousOne) {
    save_values(job_, layout_, 9);
    std::filesystem::create_directory(folder_ / ".step-10.tmp");
    put(folder_ / ".step-10.tmp/rank-00000.bin", "half");
    EXPECT_EQ(loaded_step(folder_.string()), 9);
    put(folder_ / ".step-10.tmp/manifest.json", bytes_of(folder_ / "step-9/manifest.json"));
    EXPECT_EQ(loaded_step(folder_.string()), 9);
    save_values(job_, layout_, 11, again_);  // the next save removes it
    EXPECT_THAT(names(), ElementsAre("latest", "step-11", "step-9"));
}

TEST_F(SaveFolder, AFirstSaveThatWasInterruptedBeforeLatestIsFound) {
    save_values(job_, layout_, 9);
    save_values(job_, layout_, 10, again_);
    std::filesystem::remove(folder_ / "latest");
    EXPECT_EQ(loaded_step(folder_.string()), 10);  // steps compare as numbers: 10 is after 9
}

// On a file system that cannot exchange two folders, a checkpoint is moved aside before its successor takes
// its place; in between, `latest` still refers to it.
TEST_F(SaveFolder, ACheckpointThatWasMovedAsideIsFoundAndMovedBack) {
    save_values(job_, layout_, 9);
    save_values(job_, layout_, 10, again_);
    std::filesystem::rename(folder_ / "step-10", folder_ / ".step-10.old");
    for (const bool has_latest : {true, false}) {
        if (!has_latest) std::filesystem::remove(folder_ / "latest");
        EXPECT_EQ(loaded_step(folder_.string()), 10);
        EXPECT_TRUE(holds_checkpoints(folder_.string()));
    }
    save_values(job_, layout_, 11, again_);
    EXPECT_THAT(names(), ElementsAre("latest", "step-10", "step-11", "step-9"));
    EXPECT_EQ(loaded_step(folder_ / "step-10"), 10);

    // The successor was already in place.
    std::filesystem::copy(folder_ / "step-10", folder_ / ".step-10.old");
    remove_unfinished(folder_.string());
    EXPECT_THAT(names(), ElementsAre("latest", "step-10", "step-11", "step-9"));
}

// A process that saves one checkpoint after the other is killed again and again: after each kill a checkpoint
// can be loaded, and no reported step is lost.
TEST_F(SaveFolder, AProcessThatIsKilledAtAnyMomentLeavesACompleteCheckpoint) {
    const auto start = std::chrono::steady_clock::now();
    save_values(job_, layout_, 1);
    const std::chrono::duration<double, std::micro> one_save = std::chrono::steady_clock::now() - start;
    std::uniform_real_distribution<double> saves(0, 4);
    std::mt19937 random(5);
    std::int64_t before = 1;
    for (int round = 0; round < 30; ++round) {
        std::array<int, 2> reported{};
        ASSERT_EQ(::pipe(reported.data()), 0);
        const pid_t child = ::fork();
        ASSERT_GE(child, 0);
        if (child == 0) {
            Memory memory(layout_);
            memory.write_values();
            CheckpointSaver saver(job_, layout_, again_, [&](const SaveReport& report) {
                const bool told =
                    report.error.empty() && ::write(reported[1], &report.step, sizeof report.step) > 0;
                if (!told) ::_exit(1);
            });
            for (std::int64_t step = before;; ++step) {  // the first save replaces one
                for (const int rank : {0, 1}) saver.save(rank, step, memory.of(rank));
            }
        }
        ::close(reported[1]);
        ::usleep(static_cast<useconds_t>(saves(random) * one_save.count()));
        ::kill(child, SIGKILL);
        int status = 0;
        ASSERT_EQ(::waitpid(child, &status, 0), child);
        EXPECT_TRUE(WIFSIGNALED(status)) << "a save failed";
        std::int64_t last = before;
        while (::read(reported[0], &last, sizeof last) == sizeof last) {
        }
        ::close(reported[0]);
        const StoredCheckpoint stored(folder_.string());
        EXPECT_GE(stored.manifest().step, last);
        const CheckpointLoader loader(stored, job_, layout_, LoadUse::training);
        Memory memory(layout_);
        for (const int rank : {0, 1}) loader.fill(rank, memory.of(rank));
        EXPECT_TRUE(memory.has_values());
        before = stored.manifest().step;
    }
    EXPECT_GT(before, 5);  // two saves per round are expected
}

// One rank's part never arrives, because the rank failed or the run was stopped.
TEST_F(SaveFolder, ASaveThatARankDidNotJoinIsNotACheckpoint) {
    save_values(job_, layout_, 9);
    Memory memory(layout_);
    {
        CheckpointSaver saver(job_, layout_, again_, [](const SaveReport&) { FAIL(); });
        saver.save(0, 10, memory.of(0));
        EXPECT_THAT(names(), ElementsAre(".step-10.tmp", "latest", "step-9"));
    }
    EXPECT_THAT(names(), ElementsAre("latest", "step-9"));
}

TEST_F(SaveFolder, AFailureIsReportedOnceAndTheNextSaveSucceeds) {
    save_values(job_, layout_, 9);
    Memory memory(layout_);
    std::vector<SaveReport> reports;
    CheckpointSaver saver(job_, layout_, again_,
                          [&](const SaveReport& report) { reports.push_back(report); });
    // No file may exceed 100 bytes, as if the disk were full.
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
    const auto handler = std::signal(SIGXFSZ, SIG_IGN);
    const rlimit small{100, before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
    for (const int rank : {1, 0}) saver.save(rank, 10, memory.of(rank));
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
    std::signal(SIGXFSZ, handler);
    ASSERT_EQ(reports.size(), 1U);
    EXPECT_THAT(reports[0].error,
                AllOf(HasSubstr("step 10 could not be saved"), HasSubstr("File too large")));
    EXPECT_TRUE(saver.failed());
    EXPECT_THAT(names(), ElementsAre("latest", "step-9"));
    EXPECT_EQ(loaded_step(folder_.string()), 9);

    for (const int rank : {0, 1}) saver.save(rank, 11, memory.of(rank));
    ASSERT_EQ(reports.size(), 2U);
    EXPECT_EQ(reports[1].error, "");
    EXPECT_EQ(reports[1].bytes, 4 * 3 * 64);  // 64 elements, each with two states
    EXPECT_EQ(loaded_step(folder_.string()), 11);
}

TEST_F(SaveFolder, AStepIsReplacedOnlyByACompleteOneOfTheSameRun) {
    save_values(job_, layout_, 9);
    save_values(job_, layout_, 10, again_);
    // This belongs to another run, which would overwrite the checkpoint.
    EXPECT_THAT(complaint([&] { save_values(job_, layout_, 10); }),
                AllOf(HasSubstr(folder_.string()), HasSubstr("checkpoints of another run"),
                      HasSubstr("--overwrite")));
    // This run went back to step 9, and reaches step 10 with 1 rank.
    save_values(job_with(folder_.string(), 1), replicated_layout(small_model(), 1), 10,
                {.goes_on_from = folder_ / "step-9"});
    EXPECT_THAT(names(), ElementsAre("latest", "step-10", "step-9"));
    EXPECT_EQ(StoredCheckpoint(folder_.string()).manifest().ranks, 1);
    EXPECT_FALSE(std::filesystem::exists(folder_ / "step-10/rank-00001.bin"));
}

// A rank may be a step ahead of another.
TEST_F(SaveFolder, TwoSavesMayBeInProgressAtTheSameTime) {
    Memory memory(layout_);
    memory.write_values();
    std::vector<std::int64_t> done;
    CheckpointSaver saver(job_, layout_, {}, [&](const SaveReport& report) { done.push_back(report.step); });
    saver.save(0, 1, memory.of(0));
    saver.save(0, 2, memory.of(0));
    EXPECT_THAT(done, ElementsAre());
    saver.save(1, 1, memory.of(1));
    EXPECT_THAT(done, ElementsAre(1));
    EXPECT_EQ(loaded_step(folder_.string()), 1);
    saver.save(1, 2, memory.of(1));
    EXPECT_THAT(done, ElementsAre(1, 2));
    EXPECT_EQ(loaded_step(folder_.string()), 2);
}

TEST_F(SaveFolder, BelongsToOneRunAtATime) {
    {
        const CheckpointSaver saver(job_, layout_, again_, nullptr);
        EXPECT_THAT(complaint([&] { CheckpointSaver(job_, layout_, again_, nullptr); }),
                    AllOf(HasSubstr(folder_.string()), HasSubstr("another run is saving checkpoints there")));
    }
    EXPECT_EQ(complaint([&] { CheckpointSaver(job_, layout_, again_, nullptr); }), "");
}

// This is the situation after a restart: the previous run has been asked to end.
TEST_F(SaveFolder, ARunThatIsAboutToEndIsWaitedFor) {
    auto before = std::make_unique<CheckpointSaver>(job_, layout_, again_, nullptr);
    std::thread end([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
        before.reset();
    });
    EXPECT_EQ(complaint([&] { CheckpointSaver(job_, layout_, again_, nullptr); }), "");
    end.join();
}

TEST_F(SaveFolder, IsRefusedBeforeTheFirstStepIfItIsNotWritable) {
    put(folder_ / "file", "no folder");
    const job::Job job = job_with(folder_ / "file/below", 2);
    EXPECT_THAT(complaint([&] { CheckpointSaver(job, layout_, {}, nullptr); }),
                AllOf(HasSubstr("file/below"), HasSubstr("cannot be written there: Not a directory")));
}

TEST(FindCheckpoint, SaysWhatIsMissing) {
    const TemporaryFolder folder;
    const auto found = [&](const std::string& path) { return complaint([&] { find_checkpoint(path); }); };
    EXPECT_THAT(found(folder / "nowhere"), AllOf(HasSubstr("nowhere"), HasSubstr("no such file or folder")));
    put(folder / "weights.bin", "no weights");
    EXPECT_THAT(found(folder / "weights.bin"), HasSubstr("this file is not a checkpoint; name a folder"));
    EXPECT_THAT(found(folder.string()), HasSubstr("contains no complete checkpoint"));
    std::filesystem::create_directory(folder / "step-3");  // without a manifest
    EXPECT_THAT(found(folder.string()), HasSubstr("contains no complete checkpoint"));
    put(folder / "latest", "step-3\n");
    EXPECT_THAT(found(folder.string()),
                AllOf(HasSubstr("latest"), HasSubstr("names step-3, which contains no manifest")));
    for (const char* name :
         {"", "step-", "step-x", "../step-3", "step-3/..", "step--3", "step-99999999999999999999"}) {
        put(folder / "latest", name);
        EXPECT_THAT(found(folder.string()), HasSubstr("does not name a checkpoint")) << name;
    }
    std::filesystem::remove(folder / "latest");
    std::filesystem::create_directory(folder / "latest");
    EXPECT_THAT(found(folder.string()), AllOf(HasSubstr("latest"), HasSubstr("cannot be read")));
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::checkpoint
