// Streams of files over a way to read and write that does only what a test wants.
#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "trainer/disk/disk_streams.h"

namespace shardscope::trainer::disk {
namespace TEST_FILE {

using ::testing::ElementsAre;

constexpr std::int64_t kMiB = 1 << 20;

// What a HeldIo has been given and may do; outlives it.
struct Held {
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<DiskPiece*> begun;  // all of them, in order
    std::vector<int> ranks;         // of these, by their memory
    std::size_t may_end = 0, ended = 0;
    bool woken = false, breaks = false, destroyed = false;

    void set(const std::function<void()>& change) {
        const std::lock_guard lock(mutex);
        change();
        changed.notify_all();
    }
    void wait_for_begun(std::size_t count) {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return begun.size() >= count; });
    }
};

// Ends one piece at a time, the oldest, and only those that may end.
class HeldIo final : public DiskIo {
  public:
    explicit HeldIo(Held& held) : held_(held) {}
    ~HeldIo() override {
        held_.set([&] { held_.destroyed = true; });
    }
    HeldIo(const HeldIo&) = delete;
    HeldIo& operator=(const HeldIo&) = delete;

    void begin(DiskPiece& piece) override {
        held_.set([&] {
            held_.begun.push_back(&piece);
            held_.ranks.push_back(static_cast<int>(piece.offset / (64 * kMiB)));
        });
    }
    std::vector<EndedPiece> wait() override {
        std::unique_lock lock(held_.mutex);
        const auto ends = [&] { return held_.ended < std::min(held_.may_end, held_.begun.size()); };
        held_.changed.wait(lock, [&] { return held_.woken || held_.breaks || ends(); });
        if (held_.breaks) throw std::system_error(ENOMEM, std::generic_category(), "a test");
        held_.woken = false;
        if (!ends()) return {};
        DiskPiece* piece = held_.begun[held_.ended++];
        return {{piece, static_cast<std::int64_t>(piece->bytes)}};
    }
    void wake() override {
        held_.set([&] { held_.woken = true; });
    }

  private:
    Held& held_;
};

// A stream for each of some ranks; what they read is never accessed.
class DiskStreamsTest : public ::testing::Test {
  protected:
    device::StreamEvent read(device::StreamIndex stream, int rank, std::int64_t bytes) {
        DiskTransfer transfer;
        transfer.file = &file_;
        transfer.offset = rank * 64 * kMiB;
        transfer.memory = reinterpret_cast<std::byte*>((std::uintptr_t{1} << 40) +
                                                       static_cast<std::uintptr_t>(transfer.offset));
        transfer.bytes = bytes;
        transfer.rank = rank;
        transfer.step = 7;
        return streams_.enqueue(stream, {}, transfer);
    }
    void failed(const DiskTransfer& transfer, const std::string& reason) {
        failures_.push_back(fmt::format("step {}, rank {}: {}{}", transfer.step, transfer.rank, reason,
                                        held_.destroyed ? "" : ", while pieces are under way"));
        streams_.fail(std::make_exception_ptr(std::runtime_error(failures_.back())));
    }

    Held held_;
    const DiskFile file_{::testing::TempDir(), 1, false};
    std::vector<std::string> failures_;
    DiskStreams streams_{
        std::make_unique<HeldIo>(held_),
        {[](const DiskTransfer&, profiler::Ticks, profiler::Ticks) {},
         [this](const DiskTransfer& transfer, const std::string& reason) { failed(transfer, reason); }}};
};

// More streams than all pieces suffice for, of which each wants as many as it may have.
TEST_F(DiskStreamsTest, HaveTheDiskInTurn) {
    constexpr int kRanks = 20, kPieces = 16, kWith = static_cast<int>(kMostPieces) / kPieces;
    for (int rank = 0; rank < kRanks; ++rank) {
        read(streams_.add_stream(), rank, 2 * kPieces * kMiB);
        held_.wait_for_begun(static_cast<std::size_t>(std::min(rank + 1, kWith) * kPieces));
    }
    for (std::size_t next = kMostPieces; next < kMostPieces + 5; ++next) {
        held_.set([&] { ++held_.may_end; });
        held_.wait_for_begun(next + 1);
    }
    held_.set([&] { held_.may_end = kRanks * 2 * kPieces; });
    streams_.stop();
    const auto after = held_.ranks.begin() + kMostPieces;
    EXPECT_THAT(std::vector(after, after + 5), ElementsAre(0, 16, 17, 18, 19));
}

// Nothing is read into memory that the run has given back.
TEST_F(DiskStreamsTest, EndWhatIsUnderWayBeforeTheyFail) {
    const device::StreamIndex stream = streams_.add_stream();
    const device::StreamEvent event = read(stream, 3, 2 * kMiB);
    held_.wait_for_begun(2);
    held_.set([&] { held_.breaks = true; });
    EXPECT_THROW(streams_.wait(event), std::runtime_error);
    EXPECT_THROW(read(stream, 3, kMiB), std::runtime_error);
    streams_.stop();
    ASSERT_EQ(failures_.size(), 1U);
    EXPECT_EQ(failures_[0], "step 7, rank 3: files can no longer be read or written (a test: " +
                                std::generic_category().message(ENOMEM) + ")");
}

// Reads of a whole file are under way when the way to read it is destroyed.
TEST(DiskIo, HasEndedWhatItHasBegunWhenItIsDestroyed) {
    constexpr std::size_t kBytes = 16 * kMiB;
    const DiskFile file(::testing::TempDir(), kBytes, true);
    const std::vector<std::byte> ones(kBytes, std::byte{1});
    file.write(ones.data(), 0, kBytes);
    for (std::unique_ptr<DiskIo> (*make)() :
         {+[] { return make_uring_io(); }, +[] { return make_threaded_io(); }}) {
        std::unique_ptr<DiskIo> io = make();
        if (!io) continue;  // no io_uring here
        std::vector<std::byte> memory(kBytes + kDiskBlock);
        auto* start =
            memory.data() + kDiskBlock - reinterpret_cast<std::uintptr_t>(memory.data()) % kDiskBlock;
        std::vector<DiskPiece> pieces(kBytes / kMiB);
        for (std::size_t i = 0; i < pieces.size(); ++i) {
            const auto at = static_cast<std::int64_t>(i) * kMiB;
            pieces[i] = {file.descriptor(start + at, at, kMiB), false, start + at, kMiB, at};
            io->begin(pieces[i]);
        }
        io->wake();
        io->wait();
        io.reset();
        EXPECT_TRUE(std::equal(ones.begin(), ones.end(), start));
    }
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::disk
