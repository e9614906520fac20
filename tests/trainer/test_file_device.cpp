// Files as memory of a device: what is written is what is read, in the order of the streams, by each of the
// ways in which a system lets them be read and written.
#include <algorithm>
#include <csignal>
#include <deque>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>
#include <optional>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profiler/recorder/recorder.h"
#include "traces/store/columns/column_sink.h"
#include "traces/store/columns/trace.h"
#include "trainer/executor/cpu_device.h"
#include "trainer/executor/devices.h"
#include "trainer/executor/file_device.h"
#include "trainer/executor/rank_runner.h"
#include "trainer/executor/run.h"
#include "trainer/job/job.h"
#include "trainer/plan/builder.h"

namespace shardscope::trainer::executor {
namespace TEST_FILE {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::int64_t kBlock = 4096;
constexpr int kRank = 3;

std::string empty_folder() {
    std::string folder = fmt::format("{}file_device_{}", ::testing::TempDir(), ::getpid());
    std::filesystem::remove_all(folder);
    std::filesystem::create_directory(folder);
    return folder;
}

std::vector<std::byte> pattern(std::int64_t bytes, unsigned seed) {
    std::vector<std::byte> values(static_cast<std::size_t>(bytes));
    for (std::byte& value : values)
        value = static_cast<std::byte>((seed = seed * 1664525 + 1013904223) >> 24);
    return values;
}

// A device with one rank's two streams of files, a file and as much pinned memory.
class Files {
  public:
    explicit Files(std::int64_t bytes, FileDeviceOptions options = {})
        : folder_(empty_folder()),
          device((options.folder = folder_,
                  std::make_unique<CpuDevice>(plan::Mesh(), CpuDeviceOptions{.workers = 1})),
                 options),
          read_stream(device.add_stream(kRank, plan::Stream::disk_read)),
          write_stream(device.add_stream(kRank, plan::Stream::disk_write)),
          disk(device.take(kRank, plan::MemorySpace::disk, bytes, false)),
          ring(device.take(kRank, plan::MemorySpace::pinned, bytes, false)),
          bytes_(bytes) {}
    ~Files() {
        device.stop();
        device.give_back(kRank, plan::MemorySpace::disk, disk);
        device.give_back(kRank, plan::MemorySpace::pinned, ring);
        std::filesystem::remove(folder_);  // throws if something is left in it
    }

    device::StreamEvent write(std::int64_t disk_at, std::int64_t ring_at, std::int64_t bytes,
                              const device::Waits& waits = {}) {
        return copy(write_stream, {disk + disk_at, ring + ring_at}, bytes, waits);
    }
    device::StreamEvent read(std::int64_t ring_at, std::int64_t disk_at, std::int64_t bytes,
                             const device::Waits& waits = {}) {
        return copy(read_stream, {ring + ring_at, disk + disk_at}, bytes, waits);
    }
    void set(std::int64_t at, const std::vector<std::byte>& values) const {
        std::copy(values.begin(), values.end(), ring + at);
    }
    std::vector<std::byte> get(std::int64_t at, std::int64_t bytes) const {
        return {ring + at, ring + at + bytes};
    }
    void clear() const { std::fill_n(ring, bytes_, std::byte{0}); }
    std::vector<std::byte> in_file(std::int64_t at, std::int64_t bytes) {
        std::vector<std::byte> values(static_cast<std::size_t>(bytes));
        device.copy(kRank, values.data(), disk + at, bytes);
        return values;
    }
    // The descriptors that the process has of files of the folder.
    std::vector<std::string> open_files() const {
        std::vector<std::string> paths;
        for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
            std::error_code gone;
            const std::string target = std::filesystem::read_symlink(entry.path(), gone).string();
            if (!gone && target.starts_with(folder_ + "/")) paths.push_back(entry.path().string());
        }
        return paths;
    }
    const std::string& folder() const { return folder_; }

  private:
    std::string folder_;

  public:
    FileDevice device;
    const device::StreamIndex read_stream, write_stream;
    std::byte *const disk, *const ring;
    profiler::DeviceWork work;  // of the copies

  private:
    device::StreamEvent copy(device::StreamIndex stream, std::vector<std::byte*> data, std::int64_t bytes,
                             const device::Waits& waits) {
        plan::Op& op = ops_.emplace_back();
        op.kind = plan::OpKind::memcpy;
        op.args = {{0, 0, bytes}, {1, 0, bytes}};
        device::Launch launch;
        launch.op = &op;
        launch.data = std::move(data);
        launch.context.step = 7;
        launch.work = work;
        return device.enqueue(stream, waits, launch);
    }

    std::int64_t bytes_;
    std::deque<plan::Op> ops_;
};

struct Way {
    std::string name;
    bool uring, direct;
};

class FileWays : public ::testing::TestWithParam<Way> {
  protected:
    FileDeviceOptions options() const {
        FileDeviceOptions options;
        options.uring = GetParam().uring;
        options.direct = GetParam().direct;
        return options;
    }
};

INSTANTIATE_TEST_SUITE_P(Ways, FileWays,
                         ::testing::Values(Way{"uring_direct", true, true}, Way{"uring_cached", true, false},
                                           Way{"threads_direct", false, true},
                                           Way{"threads_cached", false, false}),
                         [](const auto& way) { return way.param.name; });

// Less than a block, one, one and a bit, several pieces, and several pieces and a bit.
TEST_P(FileWays, WhatIsWrittenIsRead) {
    Files files(16 << 20, options());
    std::int64_t at = 0;
    for (const std::int64_t bytes : {std::int64_t{1}, std::int64_t{511}, kBlock, kBlock + 1,
                                     std::int64_t{1} << 20, (std::int64_t{3} << 20) + 4097}) {
        const std::vector<std::byte> values = pattern(bytes, static_cast<unsigned>(bytes));
        files.set(at, values);
        files.device.wait(files.write(at, at, bytes));
        files.clear();
        files.device.wait(files.read(0, at, bytes));
        EXPECT_EQ(files.get(0, bytes), values) << bytes << " bytes";
        EXPECT_THAT(files.get(bytes, kBlock), Each(std::byte{0})) << "nothing is read beyond " << bytes;
        EXPECT_EQ(files.in_file(at, bytes), values) << bytes << " bytes";
        at += (bytes + kBlock - 1) / kBlock * kBlock;
    }
}

// Regions between which a pinned ring of four slots goes around, each waited for before its slot is used
// again; a region is read while the next ones still are and earlier ones are written.
TEST_P(FileWays, ARingPassesOverAFile) {
    constexpr std::int64_t kSlot = 300 * kBlock, kRegions = 40;
    Files files(kRegions * kSlot, options());
    const auto slot = [](std::int64_t region) { return region % 4 * kSlot; };
    std::map<std::int64_t, device::StreamEvent> written;
    for (int round = 0; round < 2; ++round) {
        std::map<std::int64_t, device::StreamEvent> read;
        for (std::int64_t r = 0; r < kRegions + 2; ++r) {
            if (round == 1 && r < kRegions) {
                if (r >= 4) files.device.wait(written[r - 4]);
                read[r] = files.read(slot(r), r * kSlot, kSlot - 100, {written[r]});
            }
            const std::int64_t now = r - 2;
            if (now < 0) continue;
            if (round == 1) {
                files.device.wait(read[now]);
                ASSERT_EQ(files.get(slot(now), kSlot - 100),
                          pattern(kSlot - 100, static_cast<unsigned>(now)));
            } else if (now >= 4) {
                files.device.wait(written[now - 4]);
            }
            files.set(slot(now), pattern(kSlot - 100, static_cast<unsigned>(round * 1000 + now)));
            written[now] = files.write(now * kSlot, slot(now), kSlot - 100);
        }
    }
    files.device.stop();
    for (std::int64_t r = 0; r < kRegions; ++r)
        EXPECT_EQ(files.in_file(r * kSlot, kSlot - 100),
                  pattern(kSlot - 100, static_cast<unsigned>(1000 + r)));
}

TEST_P(FileWays, EventsOfAStreamHappenInOrder) {
    Files files(64 << 20, options());
    std::vector<device::StreamEvent> events;
    for (std::int64_t i = 0; i < 24; ++i)  // each second one is far shorter than the one before it
        events.push_back(files.write(i * (2 << 20), i * (2 << 20), i % 2 == 0 ? 2 << 20 : 100));
    for (std::size_t i = events.size(); i-- > 0;) {
        files.device.wait(events[i]);
        for (std::size_t before = 0; before < i; ++before) EXPECT_TRUE(files.device.happened(events[before]));
    }
}

TEST_P(FileWays, AReadWaitsForTheWriteBeforeIt) {
    constexpr std::int64_t kBytes = 4 << 20;
    Files files(2 * kBytes, options());
    for (unsigned round = 0; round < 8; ++round) {
        files.set(0, pattern(kBytes, round));
        files.device.wait(files.read(kBytes, 0, kBytes, {files.write(0, 0, kBytes)}));
        EXPECT_EQ(files.get(kBytes, kBytes), pattern(kBytes, round));
    }
}

TEST_P(FileWays, CopiesOfAStreamToTheSameBytesKeepTheirOrder) {
    constexpr std::int64_t kBytes = 2 << 20;
    Files files(8 * kBytes, options());
    for (unsigned i = 0; i < 8; ++i) files.set(i * kBytes, pattern(kBytes, i));
    device::StreamEvent last;
    for (std::int64_t i = 0; i < 8; ++i) last = files.write(0, i * kBytes, kBytes);
    files.device.wait(last);
    EXPECT_EQ(files.in_file(0, kBytes), pattern(kBytes, 7));
    for (std::int64_t i = 0; i < 8; ++i) files.device.wait(files.write(i * kBytes, i * kBytes, kBytes));
    for (std::int64_t i = 0; i < 8; ++i) last = files.read(0, i * kBytes, kBytes);
    files.device.wait(last);
    EXPECT_EQ(files.get(0, kBytes), pattern(kBytes, 7));
}

TEST_P(FileWays, AMarkWaitsForWhatIsBeforeItAndForItsWaits) {
    Files files(8 << 20, options());
    const device::StreamEvent read = files.read(0, 0, 8 << 20);
    const device::StreamEvent write = files.write(0, 0, 100, {read});
    files.device.wait(files.device.mark(files.write_stream, {read}));
    EXPECT_TRUE(files.device.happened(read));
    EXPECT_TRUE(files.device.happened(write));
}

TEST_P(FileWays, AFileThatBecameShorterFailsTheRun) {
    Files files(4 << 20, options());
    const std::vector<std::string> open = files.open_files();
    ASSERT_FALSE(open.empty());
    ASSERT_EQ(::truncate(open[0].c_str(), 1 << 20), 0);
    const auto failure = [&](const auto& wait) {
        try {
            wait();
        } catch (const RunError& error) {
            return std::string(error.what());
        }
        return std::string("nothing failed");
    };
    const auto says_it = AllOf(HasSubstr("step 7, rank 3: cannot read"), HasSubstr(files.folder()),
                               HasSubstr("memory.nvme"), HasSubstr("the file is shorter than it was"));
    EXPECT_THAT(failure([&] { files.device.wait(files.read(0, 0, 4 << 20)); }), says_it);
    EXPECT_THAT(failure([&] { files.read(0, 0, 100); }), says_it) << "nothing more begins";
    const device::StreamIndex compute = files.device.add_stream(kRank, plan::Stream::compute);
    EXPECT_THAT(failure([&] { files.device.mark(compute, {}); }), says_it) << "the device has failed, too";
}

// --- the memory --------------------------------------------------------------------------------------------

TEST(FileDevice, IsNoMemoryThatHostsReadButIsCopied) {
    Files files(3 * kBlock);
    EXPECT_FALSE(files.device.host_reads(plan::MemorySpace::disk));
    EXPECT_TRUE(files.device.host_reads(plan::MemorySpace::pinned));
    std::vector<std::byte> values = pattern(5000, 1);
    files.device.copy(kRank, files.disk + 77, values.data(), 5000);
    EXPECT_EQ(files.in_file(77, 5000), values);
    files.device.copy(kRank, files.disk + 6000, files.disk + 77, 5000);
    EXPECT_EQ(files.in_file(6000, 5000), values) << "from a file into a file";
    files.device.copy(kRank, files.ring, files.ring + kBlock, 10);  // neither is one
}

TEST(FileDevice, FilesHaveNoNamesAndTheirSpaceFromTheStart) {
    const Files files(10 << 20);
    EXPECT_THAT(std::vector(std::filesystem::directory_iterator(files.folder()), {}), IsEmpty());
    struct stat file {};
    ASSERT_FALSE(files.open_files().empty());
    ASSERT_EQ(::stat(files.open_files()[0].c_str(), &file), 0);
    EXPECT_EQ(file.st_size, 10 << 20);
    EXPECT_GE(file.st_blocks * 512, 10 << 20);
}

// As the optimizer's state does; what is left of one later is no number.
TEST(FileDevice, NewFilesAreZeros) {
    Files files(kBlock);
    std::byte* data = files.device.take(kRank, plan::MemorySpace::disk, 5 << 20, true);
    std::vector<std::byte> values(5 << 20, std::byte{1});
    files.device.copy(kRank, values.data(), data, 5 << 20);
    EXPECT_THAT(values, Each(std::byte{0}));
    files.device.give_back(kRank, plan::MemorySpace::disk, data);
    const device::StreamIndex poison = files.device.add_stream(kRank, plan::Stream::compute);
    files.device.wait(files.device.poison(poison, {files.write(0, 0, kBlock)}, files.disk, 100));
    EXPECT_THAT(files.in_file(0, 100), Each(std::byte{0xFF}));
}

TEST(FileDevice, StreamsOfTheDeviceMayWaitForFilesAndFilesForThem) {
    Files files(8 << 20);
    const device::StreamIndex compute = files.device.add_stream(kRank, plan::Stream::compute);
    const device::StreamEvent read = files.read(0, 0, 8 << 20);
    const device::StreamEvent mark = files.device.mark(compute, {read});
    EXPECT_TRUE(files.device.happened(read)) << "the host has waited";
    files.device.wait(files.write(0, 0, 100, {mark}));
    EXPECT_TRUE(files.device.happened(mark));
}

TEST(FileDevice, AFolderThatIsNotThereIsRefused) {
    try {
        const FileDevice device(std::make_unique<CpuDevice>(plan::Mesh(), CpuDeviceOptions{}),
                                {"/nowhere/at/all"});
        ADD_FAILURE();
    } catch (const DeviceError& error) {
        EXPECT_STREQ(error.what(),
                     "memory.nvme: no file can be made in the folder /nowhere/at/all (No such file or "
                     "directory); create it, or name one that this user may write to");
    }
}

// --- a Plan ------------------------------------------------------------------------------------------------

constexpr plan::BufferId kOnDisk = 0, kPinned = 1;

std::vector<plan::Buffer> buffers(std::int64_t bytes) {
    return {{"moments", plan::MemoryCategory::optimizer_state, plan::MemorySpace::disk, bytes},
            {"ring", plan::MemoryCategory::other, plan::MemorySpace::pinned, bytes}};
}

// Writes bytes of 5 to the file, reads them into the ring over bytes of 6, and writes them back doubled.
plan::Plan there_and_back(std::int64_t bytes) {
    plan::PlanBuilder builder(plan::PlanKind::setup, buffers(bytes));
    const plan::Arg file = builder.whole(kOnDisk), ring = builder.whole(kPinned);
    builder.allocate(kOnDisk, plan::Stream::disk_write);
    builder.allocate(kPinned, plan::Stream::host);
    const plan::EventId written = builder.new_event(), read = builder.new_event();
    builder.memset(ring, plan::Stream::host, 5);
    builder.memcpy(file, ring, traces::schema::kCopyHostToDisk, plan::Stream::disk_write);
    builder.record(written, plan::Stream::disk_write);
    builder.host_wait(written);
    builder.memset(ring, plan::Stream::host, 6);
    builder.wait(written, plan::Stream::disk_read);
    builder.memcpy(ring, file, traces::schema::kCopyDiskToHost, plan::Stream::disk_read);
    builder.record(read, plan::Stream::disk_read);
    builder.host_wait(read);
    return builder.take();
}

class FilePlan : public ::testing::Test {
  protected:
    FilePlan()
        : device_(std::make_unique<CpuDevice>(plan::Mesh(), CpuDeviceOptions{.workers = 1}), {folder_}),
          shared_{device_, delays_, {}, job_, false, {}, nullptr, nullptr, nullptr} {
        runner_.emplace(0, shared_, -1, HostCalls());
    }
    ~FilePlan() override { std::filesystem::remove(folder_); }

    const std::string folder_ = empty_folder();
    const job::Job job_;
    collective::Delays delays_{0};
    FileDevice device_;
    Shared shared_;
    std::optional<RankRunner> runner_;  // gives its memory back to the device
};

TEST_F(FilePlan, PassesOverAFile) {
    const plan::Plan plan = there_and_back(3 * kBlock + 5);
    runner_->run(plan, 0);
    runner_->drain();
    EXPECT_THAT(runner_->contents({kPinned, 0, 3 * kBlock + 5}).bytes(), Each(std::byte{5}));
    EXPECT_THAT(runner_->contents({kOnDisk, kBlock, 2 * kBlock + 5}).bytes(), Each(std::byte{5}));
    EXPECT_EQ(runner_->allocator().allocated_bytes(plan::MemorySpace::disk), 3 * kBlock + 5);
}

// No file may be larger than 1 MiB, as if the disk were full.
TEST_F(FilePlan, AFullDiskIsKnownWhereTheFileIsMade) {
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
    const auto handler = std::signal(SIGXFSZ, SIG_IGN);
    const rlimit small{1 << 20, before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
    std::string message = "nothing failed";
    try {
        runner_->run(there_and_back(2 << 20), 0);
    } catch (const OutOfMemory& error) {
        message = error.what();
    }
    EXPECT_NO_THROW(RankRunner(1, shared_, -1, HostCalls()).run(there_and_back(1 << 20), 0)) << "this fits";
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
    std::signal(SIGXFSZ, handler);
    EXPECT_THAT(message, AllOf(HasSubstr("step 0, rank 0: the disk is full: 2097152 bytes for moments"),
                               HasSubstr("into a file in " + folder_ + " (memory.nvme), where "),
                               HasSubstr("bytes are free (File too large)"), HasSubstr("free space there")));
}

// The range of a file's addresses finds no room, which no free space on a disk helps.
TEST_F(FilePlan, AFullAddressSpaceIsNoFullDisk) {
    std::int64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_AS, &before), 0);
    const auto used = static_cast<rlim_t>(pages) * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE));
    const rlimit small{used + (16 << 20), before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_AS, &small), 0);
    std::string message = "nothing failed";
    try {
        device_.take(kRank, plan::MemorySpace::disk, 64 << 20, false);
    } catch (const RunError& error) {
        message = error.what();
    }
    ASSERT_EQ(::setrlimit(RLIMIT_AS, &before), 0);
    EXPECT_EQ(message, "rank 3: memory.nvme: no file of 67108864 bytes can be made in the folder " + folder_ +
                           " (Cannot allocate memory)");
}

// --- rows --------------------------------------------------------------------------------------------------

TEST(FileRows, AreCopiesOfTheirStreamOneAfterTheOther) {
    std::unique_ptr<traces::store::Trace> trace;
    profiler::Recorder recorder(std::make_unique<traces::store::ColumnSink>(),
                                [&](traces::store::EventSink& sink, std::int64_t, std::int64_t) {
                                    trace = static_cast<traces::store::ColumnSink&>(sink).take();
                                });
    {
        FileDeviceOptions options;
        options.recorder = &recorder;
        Files files(8 << 20, options);
        files.work.device = kRank;
        files.work.stream = static_cast<int>(plan::Stream::disk_write);
        files.work.copy_kind = traces::schema::kCopyHostToDisk;
        device::StreamEvent last;
        for (const std::int64_t mib : {2, 3, 1}) {
            files.work.bytes = mib << 20;
            last = files.write((mib - 1) * (2 << 20), 0, mib << 20);
        }
        files.device.wait(last);
    }
    recorder.finish();
    const traces::store::DeviceEvents& rows = trace->device;
    ASSERT_EQ(rows.size(), 3U);
    EXPECT_THAT(std::vector(rows.bytes.begin(), rows.bytes.end()), ElementsAre(2 << 20, 3 << 20, 1 << 20));
    for (std::size_t i = 0; i < 3; ++i) {
        EXPECT_EQ(rows.kind[i], traces::store::DeviceKind::memcpy);
        EXPECT_EQ(rows.copy_kind[i], traces::schema::kCopyHostToDisk);
        EXPECT_EQ(trace->strings[rows.name[i]], "Write of a file");
        EXPECT_TRUE(i == 0 || rows.start[i] >= rows.end[i - 1]);
    }
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::executor
