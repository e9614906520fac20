// The caching allocator reuses a block only when no stream can still be using it.
#include <atomic>
#include <chrono>
#include <thread>

#include <gtest/gtest.h>

#include "trainer/executor/allocator.h"
#include "trainer/executor/cpu_device.h"

namespace shardscope::trainer::executor {
namespace TEST_FILE {

class AllocatorTest : public ::testing::Test {
  protected:
    AllocatorTest() : device_({}, {.workers = 2}), scheduler_(device_.scheduler()) {
        for (device::StreamIndex& stream : streams_) stream = device_.add_stream(0, plan::Stream::compute);
    }
    ~AllocatorTest() override { release_ = true; }

    // Work on `stream` that uses `block` until released.
    void use_until_released(Allocator& allocator, MemoryBlock* block, plan::Stream stream) {
        const device::StreamEvent event = scheduler_.enqueue(
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
    CpuDevice device_;
    Scheduler& scheduler_;
    std::array<device::StreamIndex, plan::kStreams> streams_{};
};

TEST_F(AllocatorTest, ReusesAFreedBlockOnTheSameStreamImmediately) {
    Allocator allocator(device_, 0, streams_);
    MemoryBlock* first = allocator.allocate(1000, plan::MemorySpace::device, plan::Stream::compute);
    use_until_released(allocator, first, plan::Stream::compute);
    allocator.free(first);
    EXPECT_EQ(allocator.allocate(1000, plan::MemorySpace::device, plan::Stream::compute), first);
    EXPECT_FALSE(allocator.grew());
    EXPECT_EQ(allocator.reserved_bytes(plan::MemorySpace::device), 1024);
    release();
}

TEST_F(AllocatorTest, AnotherStreamWaitsForTheLastUse) {
    Allocator allocator(device_, 0, streams_);
    MemoryBlock* first = allocator.allocate(1000, plan::MemorySpace::device, plan::Stream::compute);
    use_until_released(allocator, first, plan::Stream::compute);
    allocator.free(first);
    MemoryBlock* second = allocator.allocate(1000, plan::MemorySpace::device, plan::Stream::unshard);
    EXPECT_NE(second, first);
    EXPECT_TRUE(allocator.grew());
    EXPECT_EQ(allocator.reserved_bytes(plan::MemorySpace::device), 2048);
    release();
    EXPECT_EQ(allocator.allocate(1000, plan::MemorySpace::device, plan::Stream::unshard), first);
}

TEST_F(AllocatorTest, TheHostWaitsForEveryStream) {
    Allocator allocator(device_, 0, streams_);
    MemoryBlock* first = allocator.allocate(64, plan::MemorySpace::pinned, plan::Stream::host);
    use_until_released(allocator, first, plan::Stream::compute);
    allocator.free(first);
    EXPECT_NE(allocator.allocate(64, plan::MemorySpace::pinned, plan::Stream::host), first);
    release();
    EXPECT_EQ(allocator.allocate(64, plan::MemorySpace::pinned, plan::Stream::host), first);
}

TEST_F(AllocatorTest, DoesNotWasteMuchOfABlock) {
    Allocator allocator(device_, 0, streams_);
    MemoryBlock* large = allocator.allocate(8192, plan::MemorySpace::device, plan::Stream::compute);
    allocator.free(large);
    EXPECT_NE(allocator.allocate(1024, plan::MemorySpace::device, plan::Stream::compute), large);
    EXPECT_EQ(allocator.allocate(7168, plan::MemorySpace::device, plan::Stream::compute), large);
}

TEST_F(AllocatorTest, KeepsSpacesApart) {
    Allocator allocator(device_, 0, streams_);
    MemoryBlock* device = allocator.allocate(512, plan::MemorySpace::device, plan::Stream::compute);
    allocator.free(device);
    EXPECT_NE(allocator.allocate(512, plan::MemorySpace::pinned, plan::Stream::compute), device);
    EXPECT_EQ(allocator.reserved_bytes(plan::MemorySpace::device), 512);
    EXPECT_EQ(allocator.reserved_bytes(plan::MemorySpace::pinned), 512);
}

// The host decides what is allocated, the streams what is active, the system what is reserved.
TEST_F(AllocatorTest, CountsAllocatedActiveAndReservedBytesApart) {
    Allocator allocator(device_, 0, streams_);
    const auto expect = [&](std::int64_t allocated, std::int64_t active, std::int64_t reserved) {
        allocator.settle();
        EXPECT_EQ(allocator.allocated_bytes(plan::MemorySpace::device), allocated);
        EXPECT_EQ(allocator.active_bytes(plan::MemorySpace::device), active);
        EXPECT_EQ(allocator.reserved_bytes(plan::MemorySpace::device), reserved);
    };
    MemoryBlock* first = allocator.allocate(1000, plan::MemorySpace::device, plan::Stream::compute);
    expect(1000, 1000, 1024);
    use_until_released(allocator, first, plan::Stream::compute);
    use_until_released(allocator, first, plan::Stream::unshard);
    allocator.free(first);
    expect(0, 1000, 1024);
    MemoryBlock* second = allocator.allocate(2000, plan::MemorySpace::device, plan::Stream::compute);
    expect(2000, 3000, 1024 + 2048);
    release();
    expect(2000, 2000, 3072);
    allocator.free(second);
    expect(0, 0, 3072);
    EXPECT_EQ(allocator.peak_active_bytes(plan::MemorySpace::device), 3000);
    EXPECT_EQ(allocator.peak_reserved_bytes(plan::MemorySpace::device), 3072);
}

TEST_F(AllocatorTest, AReusedBlockIsActiveOnce) {
    Allocator allocator(device_, 0, streams_);
    MemoryBlock* block = allocator.allocate(1000, plan::MemorySpace::device, plan::Stream::compute);
    use_until_released(allocator, block, plan::Stream::compute);
    allocator.free(block);
    ASSERT_EQ(allocator.allocate(900, plan::MemorySpace::device, plan::Stream::compute), block);
    EXPECT_EQ(allocator.active_bytes(plan::MemorySpace::device), 900);
    release();
    allocator.settle();
    EXPECT_EQ(allocator.active_bytes(plan::MemorySpace::device), 900) << "the free before counts no more";
}

TEST_F(AllocatorTest, ReturnsCachedBlocksBeforeItGrowsBeyondItsLimit) {
    Allocator allocator(device_, 0, streams_, {4096, -1});
    MemoryBlock* first = allocator.allocate(3072, plan::MemorySpace::device, plan::Stream::compute);
    allocator.used(first, plan::Stream::compute,
                   scheduler_
                       .enqueue(streams_[0], Priority::compute, {},
                                [](int) { std::this_thread::sleep_for(std::chrono::milliseconds(10)); })
                       .sequence);
    allocator.free(first);
    allocator.allocate(1536, plan::MemorySpace::device,
                       plan::Stream::compute);  // 3072 cannot serve it: too large
    EXPECT_EQ(allocator.reserved_bytes(plan::MemorySpace::device), 1536)
        << "3072 + 1536 > 4096: the 3072 went";
    EXPECT_EQ(allocator.peak_reserved_bytes(plan::MemorySpace::device), 3072);
    allocator.allocate(2560, plan::MemorySpace::device, plan::Stream::compute);  // 1536 + 2560 = 4096
    EXPECT_EQ(allocator.reserved_bytes(plan::MemorySpace::device), 4096);
    try {
        allocator.allocate(1, plan::MemorySpace::device, plan::Stream::compute);
        FAIL() << "4096 + 512 > 4096";
    } catch (const PoolExhausted& error) {
        EXPECT_TRUE(error.by_limit());
    }
    EXPECT_EQ(allocator.allocated_bytes(plan::MemorySpace::device), 1536 + 2560);
    allocator.allocate(8192, plan::MemorySpace::pinned,
                       plan::Stream::host);  // the limit applies to the device only
}

TEST_F(AllocatorTest, ARequestThatNoSystemCanMeetIsRefused) {
#ifdef SHARDSCOPE_SANITIZED
    GTEST_SKIP() << "sanitizers end the program at such a request";
#endif
    Allocator allocator(device_, 0, streams_);
    try {
        allocator.allocate(std::int64_t{1} << 60, plan::MemorySpace::device, plan::Stream::compute);
        FAIL() << "2^60 bytes";
    } catch (const PoolExhausted& error) {
        EXPECT_FALSE(error.by_limit());
    }
    EXPECT_EQ(allocator.allocated_bytes(plan::MemorySpace::device), 0);
    EXPECT_EQ(allocator.reserved_bytes(plan::MemorySpace::device), 0);
}

TEST_F(AllocatorTest, PoisonsAFreedBlockOnceItsLastUseIsOver) {
    const device::StreamIndex poisoner = device_.add_stream(0, plan::Stream::compute);
    Allocator allocator(device_, 0, streams_, {0, poisoner});
    MemoryBlock* block = allocator.allocate(512, plan::MemorySpace::device, plan::Stream::compute);
    EXPECT_EQ(block->data[17], std::byte{0xFF}) << "nothing may count on zeros";
    block->data[17] = std::byte{1};
    use_until_released(allocator, block, plan::Stream::compute);
    allocator.free(block);
    EXPECT_NE(allocator.allocate(512, plan::MemorySpace::device, plan::Stream::compute), block)
        << "not even the same stream may have it before it is poisoned";
    EXPECT_EQ(block->data[17], std::byte{1});
    release();
    EXPECT_EQ(block->data[17], std::byte{0xFF});
    EXPECT_EQ(allocator.allocate(512, plan::MemorySpace::device, plan::Stream::unshard), block);
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::executor
