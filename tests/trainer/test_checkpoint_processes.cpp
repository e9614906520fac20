// Checkpoints of ranks that are processes: the same files as those of threads, and one error for all if a
// part is missing. The processes are threads here, each with its own World.
#include <functional>
#include <map>
#include <optional>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/foreign_testing.h"
#include "tests/trainer/world_helpers.h"
#include "trainer/checkpoint/error.h"
#include "trainer/world/hello.h"

namespace shardscope::trainer::checkpoint {
namespace TEST_FILE {

using namespace testing;

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

using Files = std::map<std::string, std::string>;

Files files_of(const std::filesystem::path& folder) {
    Files files;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
        files[entry.path().filename().string()] = bytes_of(entry.path());
    }
    return files;
}

// The work of one process with its saver; `error`: what its construction or its work threw.
struct Process {
    std::string error;
    std::vector<SaveReport> reports;
    bool failed = false;
};

class SavedTogether : public ::testing::Test {
  protected:
    using Work = std::function<void(world::World&, CheckpointSaver&)>;

    // Runs every rank of the layout as a process of its own.
    std::vector<Process> run(const RunLayout& layout, const Work& work) {
        return run(layout, work, [this](int) { return job_; });
    }
    std::vector<Process> run(const RunLayout& layout, const Work& work,
                             const std::function<job::Job(int rank)>& job_of) {
        std::vector<Process> processes(static_cast<std::size_t>(layout.mesh.ranks));
        const auto process = [&](const world::Place& place) {
            Process& own = processes[static_cast<std::size_t>(place.rank)];
            world::World world(place, within(20));
            SaveSettings settings = settings_;
            settings.world = &world;
            CheckpointSaver saver(job_of(place.rank), layout, settings,
                                  [&](const SaveReport& report) { own.reports.push_back(report); });
            work(world, saver);
            own.failed = saver.failed();
            world.leave();
        };
        const std::vector<std::string> errors = run_threads(make_places(layout.mesh.ranks), process);
        for (std::size_t rank = 0; rank < errors.size(); ++rank) processes[rank].error = errors[rank];
        return processes;
    }
    std::vector<Process> save(const RunLayout& layout, Memory& memory, std::int64_t step) {
        return run(layout, [&](world::World& world, CheckpointSaver& saver) {
            saver.save(world.rank(), step, memory.of(world.rank()));
        });
    }
    std::vector<std::string> names() const {
        std::vector<std::string> names;
        for (const auto& entry : std::filesystem::directory_iterator(folder_ / "save")) {
            if (entry.path().filename() != kLockName) names.push_back(entry.path().filename().string());
        }
        std::sort(names.begin(), names.end());
        return names;
    }

    TemporaryFolder folder_;
    job::Job job_ = job_with(folder_ / "save", 4);
    SaveSettings settings_{.overwrite = true};
};

// Covers FULL_SHARD, HYBRID_SHARD and DDP; a file for each rank, one file for all, and one made from parts,
// also because others have its tensors in another order.
TEST_F(SavedTogether, HasTheFilesThatThreadsWrite) {
    for (const int shard : {4, 2, 1}) {
        for (const job::CheckpointFormat format : kFormats) {
            for (const bool several_hosts : {false, true}) {
                SCOPED_TRACE(std::to_string(shard) + " " + name_of(format) +
                             (several_hosts ? " several hosts" : ""));
                const Shapes shapes = model_of_images();
                const RunLayout layout = flat_layout(shapes, 4, shard);
                Memory memory(layout);
                memory.write_values();
                job_.checkpoint.format = format;
                settings_ = {.overwrite = true, .tokenizer = "a vocabulary"};
                save_values(job_, layout, 7, settings_);
                const Files expected = files_of(folder_ / "save/step-7");
                std::filesystem::remove_all(folder_ / "save");

                settings_.several_hosts = several_hosts;
                const std::vector<Process> processes = save(layout, memory, 7);
                ASSERT_EQ(processes[0].reports.size(), 1U);
                EXPECT_EQ(processes[0].reports[0].error, "");
                // 64 elements, 24 of filters and 72 of a Linear, with two states.
                EXPECT_EQ(processes[0].reports[0].bytes, 4 * 3 * (64 + 24 + 72));
                for (const Process& process : processes) {
                    EXPECT_EQ(process.error, "");
                    EXPECT_FALSE(process.failed);
                    EXPECT_EQ(process.reports.size(), &process == processes.data() ? 1U : 0U);
                }
                EXPECT_EQ(files_of(folder_ / "save/step-7"), expected);
                EXPECT_THAT(names(), ElementsAre("latest", "step-7"));
            }
        }
    }
}

TEST_F(SavedTogether, IsLoadedByEveryOtherLayout) {
    const RunLayout saved = flat_layout(small_model(), 4, 4);
    Memory values(saved);
    values.write_values();
    save(saved, values, 3);
    for (const int ranks : {1, 2, 3, 4}) {
        const RunLayout layout = row_layout(small_model(), ranks, ranks);
        Memory memory(layout);
        const StoredCheckpoint stored((folder_ / "save").string());
        for (int rank = 0; rank < ranks; ++rank) {  // each rank is a process of its own
            CheckpointLoader(stored, job_, layout, LoadUse::training, rank).fill(rank, memory.of(rank));
        }
        EXPECT_TRUE(memory.has_values()) << ranks;
    }
}

// One process cannot contribute its part: that save fails on all processes, and the next succeeds.
TEST_F(SavedTogether, APartThatFailsIsAFailureOfAllAndTheNextSaveSucceeds) {
    const RunLayout layout = flat_layout(small_model(), 3, 3);
    Memory memory(layout);
    memory.write_values();
    const std::vector<Process> processes = run(layout, [&](world::World& world, CheckpointSaver& saver) {
        const int rank = world.rank();
        saver.save(rank, 9, memory.of(rank));
        EXPECT_FALSE(saver.failed());
        RankMemory broken = [](const plan::Arg&) -> plan::HostView {
            throw std::runtime_error("the disk is full");
        };
        saver.save(rank, 10, rank == 2 ? broken : memory.of(rank));
        EXPECT_TRUE(saver.failed());
        world.barrier();
        EXPECT_THAT(names(), ElementsAre("latest", "step-9"));
        world.barrier();
        saver.save(rank, 11, memory.of(rank));
    });
    for (const Process& process : processes) {
        EXPECT_EQ(process.error, "");
        EXPECT_TRUE(process.failed);
    }
    ASSERT_EQ(processes[0].reports.size(), 3U);
    EXPECT_THAT(processes[0].reports[1].error,
                AllOf(StartsWith("the checkpoint of step 10 could not be saved: rank 2 on "),
                      HasSubstr(": the disk is full")));
    EXPECT_EQ(processes[0].reports[2].error, "");
    EXPECT_THAT(names(), ElementsAre("latest", "step-11", "step-9"));
    EXPECT_EQ(StoredCheckpoint((folder_ / "save").string()).manifest().step, 11);
}

// The file of rank 1 is in another folder when rank 0 looks for it.
TEST_F(SavedTogether, AFileThatRankZeroDoesNotSeeIsNamedWithItsHost) {
    const RunLayout layout = flat_layout(small_model(), 2, 2);
    Memory memory(layout);
    memory.write_values();
    const std::filesystem::path file = folder_ / "save/.step-10.tmp/rank-00001.bin";
    for (const bool all_of_it : {true, false}) {
        std::filesystem::remove_all(folder_ / "save");
        const std::vector<Process> processes = run(layout, [&](world::World& world, CheckpointSaver& saver) {
            const int rank = world.rank();
            saver.save(rank, 9, memory.of(rank));
            const RankMemory lost = [&](const plan::Arg& arg) {
                std::filesystem::remove(file);
                if (!all_of_it) put(file, "some");
                return memory.of(rank)(arg);
            };
            saver.save(rank, 10, rank == 1 ? lost : memory.of(rank));
        });
        const std::string host = world::own_host_name();
        const std::string bytes = std::to_string(bytes_of(folder_ / "save/step-9/rank-00001.bin").size());
        ASSERT_EQ(processes[0].reports.size(), 2U);
        EXPECT_EQ(processes[0].reports[1].error,
                  "the checkpoint of step 10 could not be saved: " + file.string() + ": rank 0 on " + host +
                      " sees " + (all_of_it ? "none" : "4") + " of the " + bytes + " bytes that rank 1 on " +
                      host +
                      " has written; checkpoint.save must be on a file system that all hosts share, at the "
                      "same path for all of them");
        EXPECT_TRUE(processes[0].failed && processes[1].failed);
        EXPECT_EQ(StoredCheckpoint((folder_ / "save").string()).manifest().step, 9);
        EXPECT_THAT(names(), ElementsAre("latest", "step-9"));
    }
}

// A host has its own folder of that name, or none, or one that is not writable.
TEST_F(SavedTogether, AFolderThatIsNotSharedIsRefusedBeforeTheFirstStep) {
    const RunLayout layout = flat_layout(small_model(), 3, 3);
    const auto processes = [&] {
        return run(
            layout, [](world::World&, CheckpointSaver&) { FAIL(); },
            [&](int rank) { return job_with(folder_ / (rank == 2 ? "other" : "save"), 3); });
    };
    const std::string shared =
        "; checkpoint.save must be on a file system that all hosts share, at the same path for all of them";
    const std::string where = (folder_ / "save").string() + ": ", host = world::own_host_name();
    std::filesystem::create_directory(folder_ / "other");
    for (const Process& process : processes()) {
        EXPECT_EQ(process.error, where + "what rank 2 on " + host +
                                     " writes there is not seen by rank 0 on " + host + shared);
    }
    EXPECT_THAT(names(), ElementsAre());
    EXPECT_TRUE(std::filesystem::is_empty(folder_ / "other"));
    std::filesystem::remove(folder_ / "other");
    for (const Process& process : processes()) {
        EXPECT_EQ(process.error, where + "rank 2 on " + host +
                                     " cannot write checkpoints there: No such file or directory" + shared);
    }
    EXPECT_FALSE(std::filesystem::exists(folder_ / "other"));
}

TEST_F(SavedTogether, AllRanksRefuseWhatRankZeroRefuses) {
    save_values(job_, flat_layout(small_model(), 2, 2), 5);
    settings_.overwrite = false;
    const auto processes =
        run(flat_layout(small_model(), 2, 2), [](world::World&, CheckpointSaver&) { FAIL(); });
    for (const Process& process : processes) {
        EXPECT_THAT(process.error, HasSubstr("checkpoints of another run"));
    }
}

// The others wait for the part of a process that has ended; they are notified of its end.
TEST_F(SavedTogether, AProcessThatEndsWhileTheOthersSaveKeepsThePreviousOne) {
    const RunLayout layout = flat_layout(small_model(), 3, 3);
    Memory memory(layout);
    memory.write_values();
    const std::vector<Process> processes = run(layout, [&](world::World& world, CheckpointSaver& saver) {
        saver.save(world.rank(), 9, memory.of(world.rank()));
        if (world.rank() == 1) throw std::runtime_error("ended");
        saver.save(world.rank(), 10, memory.of(world.rank()));
    });
    EXPECT_THAT(processes[0].error, HasSubstr("rank 1 "));
    EXPECT_THAT(processes[2].error, HasSubstr("rank 1 "));
    EXPECT_EQ(StoredCheckpoint((folder_ / "save").string()).manifest().step, 9);
    // The next run removes the leftovers.
    save(layout, memory, 11);
    EXPECT_THAT(names(), ElementsAre("latest", "step-11", "step-9"));
    EXPECT_EQ(StoredCheckpoint((folder_ / "save").string()).manifest().step, 11);
}

// Each process loads only what its rank holds; it checks the parts that the others load, too.
TEST_F(SavedTogether, EachProcessChecksWhatItReads) {
    const RunLayout layout = flat_layout(small_model(), 2, 2);
    save_values(job_, layout, 5);
    const std::filesystem::path file = folder_ / "save/step-5/rank-00001.bin";
    std::string bytes = bytes_of(file);
    bytes[0] = static_cast<char>(bytes[0] ^ 1);
    put(file, bytes);
    const StoredCheckpoint stored((folder_ / "save").string());
    const auto refusal = [&](std::optional<int> only_rank) -> std::string {
        try {
            const CheckpointLoader loader(stored, job_, layout, LoadUse::training, only_rank);
            return "";
        } catch (const CheckpointError& error) {
            return error.what();
        }
    };
    EXPECT_EQ(refusal(0), "");
    EXPECT_THAT(refusal(1), AllOf(HasSubstr("rank-00001.bin"), HasSubstr("damaged")));
    EXPECT_THAT(refusal(std::nullopt), AllOf(HasSubstr("rank-00001.bin"), HasSubstr("damaged")));
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::checkpoint
