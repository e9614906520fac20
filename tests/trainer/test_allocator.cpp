// The caching allocator hands a block out again only when nobody can still be using it.
#include <atomic>
#include <chrono>
#include <thread>

#include <gtest/gtest.h>

#include "trainer/executor/allocator.h"

namespace shardscope::trainer {
namespace {

class AllocatorTest : public ::testing::Test {
  protected:
    AllocatorTest() : scheduler_(2, nullptr) {
        for (StreamIndex& stream : streams_) stream = scheduler_.add_stream();
    }
    ~AllocatorTest() override { release_ = true; }

    // Work on `stream` that uses `block` until released.
    void use_until_released(Allocator& allocator, Block* block, Stream stream) {
        const StreamEvent event = scheduler_.enqueue(
            streams_[static_cast<std::size_t>(stream)], Priority::compute, {}, [this](int) {
                while (!release_) std::this_thread::sleep_for(std::chrono::microseconds(100));
            });
        allocator.used(block, stream, event.sequence);
    }
    void release() {
        release_ = true;
        scheduler_.wait_all();
    }

    std::atomic<bool> release_ = false;
    Scheduler scheduler_;
    std::array<StreamIndex, kStreams> streams_{};
};

TEST_F(AllocatorTest, ReusesAFreedBlockOnTheSameStreamAtOnce) {
    Allocator allocator(scheduler_, streams_);
    Block* first = allocator.allocate(1000, MemorySpace::device, Stream::compute);
    use_until_released(allocator, first, Stream::compute);
    allocator.free(first);
    EXPECT_EQ(allocator.allocate(1000, MemorySpace::device, Stream::compute), first);
    EXPECT_FALSE(allocator.grew());
    EXPECT_EQ(allocator.reserved_bytes(MemorySpace::device), 1024);
    release();
}

TEST_F(AllocatorTest, AnotherStreamWaitsForTheLastUse) {
    Allocator allocator(scheduler_, streams_);
    Block* first = allocator.allocate(1000, MemorySpace::device, Stream::compute);
    use_until_released(allocator, first, Stream::compute);
    allocator.free(first);
    Block* second = allocator.allocate(1000, MemorySpace::device, Stream::unshard);
    EXPECT_NE(second, first);
    EXPECT_TRUE(allocator.grew());
    EXPECT_EQ(allocator.reserved_bytes(MemorySpace::device), 2048);
    release();
    EXPECT_EQ(allocator.allocate(1000, MemorySpace::device, Stream::unshard), first);
}

TEST_F(AllocatorTest, TheHostWaitsForEveryStream) {
    Allocator allocator(scheduler_, streams_);
    Block* first = allocator.allocate(64, MemorySpace::pinned, Stream::host);
    use_until_released(allocator, first, Stream::compute);
    allocator.free(first);
    EXPECT_NE(allocator.allocate(64, MemorySpace::pinned, Stream::host), first);
    release();
    EXPECT_EQ(allocator.allocate(64, MemorySpace::pinned, Stream::host), first);
}

TEST_F(AllocatorTest, DoesNotWasteMuchOfABlock) {
    Allocator allocator(scheduler_, streams_);
    Block* large = allocator.allocate(8192, MemorySpace::device, Stream::compute);
    allocator.free(large);
    EXPECT_NE(allocator.allocate(1024, MemorySpace::device, Stream::compute), large);
    EXPECT_EQ(allocator.allocate(7168, MemorySpace::device, Stream::compute), large);
}

TEST_F(AllocatorTest, KeepsSpacesApart) {
    Allocator allocator(scheduler_, streams_);
    Block* device = allocator.allocate(512, MemorySpace::device, Stream::compute);
    allocator.free(device);
    EXPECT_NE(allocator.allocate(512, MemorySpace::pinned, Stream::compute), device);
    EXPECT_EQ(allocator.reserved_bytes(MemorySpace::device), 512);
    EXPECT_EQ(allocator.reserved_bytes(MemorySpace::pinned), 512);
}

}  // namespace
}  // namespace shardscope::trainer
