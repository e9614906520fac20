// The ring between programs that sample themselves and the tool. The tests put samples in, as programs do.
#include "profiler/stacks/timer_ring.h"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/traces/temporary_folder.h"

namespace shardscope::profiler {
namespace TEST_FILE {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A program's end of the ring.
class Program {
  public:
    explicit Program(const std::string& folder) {
        const int file = ::open((folder + "/" + kRingFile).c_str(), O_RDWR);
        struct stat facts {};
        if (file < 0 || ::fstat(file, &facts) != 0) throw std::runtime_error("there is no ring");
        bytes_ = static_cast<std::size_t>(facts.st_size);
        ring_ =
            static_cast<RingHeader*>(::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
        ::close(file);
        slots_ = ring_->slots;
    }
    ~Program() { ::munmap(ring_, bytes_); }
    Program(const Program&) = delete;
    Program& operator=(const Program&) = delete;

    RingHeader& ring() { return *ring_; }
    std::uint32_t slots() const { return slots_; }
    bool put(std::int32_t pid, std::vector<std::uint64_t> addresses, std::uint64_t image = 1000) {
        std::uint64_t turn = 0;
        RingSlot* slot = take_slot(ring_, slots_, &turn);
        if (slot == nullptr) return false;
        TimerSample& sample = slot->sample;
        sample.pid = pid;
        sample.tid = pid + 1;
        sample.cpu = 3;
        sample.time = 2000;
        sample.weight = 50;
        sample.image = image;
        std::strcpy(sample.name, "worker");
        sample.frames = static_cast<std::uint32_t>(addresses.size());
        std::copy(addresses.begin(), addresses.end(), sample.addresses);
        publish_slot(slot, turn);
        return true;
    }

  private:
    RingHeader* ring_;
    std::size_t bytes_;
    std::uint32_t slots_;
};

class TimerRingTest : public ::testing::Test {
  protected:
    std::vector<StackRecord> drained() {
        std::vector<StackRecord> records;
        ring_->drain([&](StackRecord&& record) { records.push_back(std::move(record)); });
        return records;
    }
    // The innermost addresses of the samples that have arrived.
    std::vector<std::uint64_t> innermost() {
        std::vector<std::uint64_t> addresses;
        for (const StackRecord& record : drained())
            if (const auto* stack = std::get_if<SampledStack>(&record))
                addresses.push_back(stack->addresses.at(0));
        return addresses;
    }

    const traces::TemporaryFolder folder_;
    std::optional<TimerRing> ring_{std::in_place, folder_.path(), 997};
    Program program_{folder_.path()};
};

TEST_F(TimerRingTest, HandsOverSamplesAndWhereAProgramHasItsCode) {
    const std::string maps = folder_ / "7-1000.maps";
    std::ofstream(maps) << "5000-6000 r-xp 00000000 08:01 77   /bin/job\n";
    ASSERT_TRUE(program_.put(7, {0x5001, 0x5002}));
    ASSERT_TRUE(program_.put(7, {0x5003}));
    ASSERT_TRUE(program_.put(7, {0x5004}, 1500));  // another program in the same process
    const std::vector<StackRecord> records = drained();
    ASSERT_EQ(records.size(), 6U);
    EXPECT_EQ(std::get<ProgramStart>(records[0]).pid, 7);
    EXPECT_EQ(std::get<ProgramStart>(records[0]).time, MonotonicTime(1000));
    EXPECT_EQ(std::get<CodeMapping>(records[1]).file, "/bin/job");
    EXPECT_EQ(std::get<CodeMapping>(records[1]).time, MonotonicTime(1000));
    const auto& stack = std::get<SampledStack>(records[2]);
    EXPECT_EQ(stack.pid, 7);
    EXPECT_EQ(stack.tid, 8);
    EXPECT_EQ(stack.cpu, 3);
    EXPECT_EQ(stack.time, MonotonicTime(2000));
    EXPECT_EQ(stack.weight, 50);
    EXPECT_EQ(stack.thread, "worker");
    EXPECT_THAT(stack.addresses, ElementsAre(0x5001, 0x5002));
    EXPECT_THAT(std::get<SampledStack>(records[3]).addresses, ElementsAre(0x5003));
    EXPECT_EQ(std::get<ProgramStart>(records[4]).time, MonotonicTime(1500));
    EXPECT_NE(::access(maps.c_str(), F_OK), 0);  // removed once it is read
    EXPECT_TRUE(drained().empty());
}

TEST_F(TimerRingTest, ReadsTheMappingsOfALivingProcess) {
    program_.put(::getpid(), {1});
    drained();
    EXPECT_FALSE(ring_->mappings(::getpid(), true).empty());
    EXPECT_FALSE(ring_->mappings(::getpid(), true).empty());
    EXPECT_FALSE(ring_->mappings(::getpid(), false).empty());
    EXPECT_TRUE(ring_->mappings(::getpid(), false).empty());  // not again so soon
}

TEST_F(TimerRingTest, CountsWhatItHasNoRoomFor) {
    const std::uint32_t slots = program_.slots();
    for (std::uint32_t i = 0; i < slots; ++i) ASSERT_TRUE(program_.put(7, {i}));
    EXPECT_FALSE(program_.put(7, {0}));
    EXPECT_FALSE(program_.put(7, {0}));
    EXPECT_EQ(ring_->lost(), 2);
    EXPECT_EQ(innermost().size(), slots);
    EXPECT_TRUE(program_.put(7, {77}));
    EXPECT_THAT(innermost(), ElementsAre(77));
    EXPECT_EQ(ring_->lost(), 2);
}

// A process was killed while it put a sample in.
TEST_F(TimerRingTest, GoesOnWithoutASampleThatIsNeverFilled) {
    std::uint64_t turn = 0;
    RingSlot* taken = take_slot(&program_.ring(), program_.slots(), &turn);
    program_.put(7, {5});
    EXPECT_TRUE(drained().empty());
    std::this_thread::sleep_for(std::chrono::nanoseconds(TimerRing::kFillingNs + 50'000'000));
    EXPECT_THAT(innermost(), ElementsAre(5));
    EXPECT_EQ(ring_->lost(), 1);
    publish_slot(taken, turn);  // it was only slow, and is too late
    program_.put(7, {6});
    EXPECT_THAT(innermost(), ElementsAre(6));
}

TEST_F(TimerRingTest, SurvivesWhatAProgramWritesOverIt) {
    program_.put(7, {5});
    ring_slots(&program_.ring())[0].sample.frames = ~0U;
    std::memset(ring_slots(&program_.ring())[0].sample.name, 'x', 16);
    program_.ring().slots = 0;
    std::vector<StackRecord> records = drained();
    ASSERT_EQ(records.size(), 2U);
    EXPECT_EQ(std::get<SampledStack>(records[1]).addresses.size(), TimerSample::kMostFrames);
    EXPECT_EQ(std::get<SampledStack>(records[1]).thread.size(), 16U);
    ring_slots(&program_.ring())[1].turn = 99;  // no number fits
    EXPECT_FALSE(program_.put(7, {6}));
    std::memset(static_cast<void*>(&program_.ring()), 0xFF, sizeof(RingHeader));
    EXPECT_TRUE(drained().empty());
}

TEST_F(TimerRingTest, TakesSamplesOfManyThreads) {
    constexpr int kThreads = 4, kEach = 20'000;
    std::atomic<int> put{0}, running{kThreads};
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
        threads.emplace_back([&, t] {
            for (std::uint64_t i = 0; i < kEach; ++i) {
                const auto thread = static_cast<std::uint64_t>(t);
                put += program_.put(t, {thread << 32 | i, ~i}) ? 1 : 0;
            }
            --running;
        });
    }
    std::vector<std::uint64_t> last(kThreads);
    int got = 0, wrong = 0;
    const auto take = [&] {
        ring_->drain([&](StackRecord&& record) {
            const auto* stack = std::get_if<SampledStack>(&record);
            if (stack == nullptr) return;
            ++got;
            const std::uint64_t i = stack->addresses.at(0) & 0xFFFFFFFF;
            std::uint64_t& before = last.at(static_cast<std::size_t>(stack->pid));
            wrong += stack->addresses[0] >> 32 != static_cast<std::uint64_t>(stack->pid) ||
                             stack->addresses.at(1) != ~i || (i != 0 && i <= before)
                         ? 1
                         : 0;
            before = i;
        });
    };
    while (running > 0) take();
    for (std::thread& thread : threads) thread.join();
    take();
    EXPECT_EQ(got, put);
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(ring_->lost(), kThreads * kEach - put);
}

TEST_F(TimerRingTest, SaysWhichThreadsWereNotSampled) {
    EXPECT_EQ(ring_->incomplete(), "");
    program_.ring().untimed = 1;
    program_.ring().no_timer = EAGAIN;
    EXPECT_EQ(ring_->incomplete(), "1 thread was not sampled: a higher ulimit -i permits more timers");
    program_.ring().untimed = 3;
    program_.ring().no_timer = EXDEV;
    EXPECT_THAT(ring_->incomplete(), HasSubstr("3 threads were not sampled: they are in a pid namespace"));
}

TEST_F(TimerRingTest, TellsProgramsWhenItEnds) {
    EXPECT_EQ(program_.ring().closed, 0U);
    ring_.reset();
    EXPECT_EQ(program_.ring().closed, 1U);
}

TEST(TimerRingRefusal, SaysThatThereIsNoRoom) {
    EXPECT_THAT(TimerRing("/none", 997).refusal(), HasSubstr("/none has no room"));
    const traces::TemporaryFolder folder;
    EXPECT_EQ(TimerRing(folder.path(), 997).refusal(), "");
}

}  // namespace TEST_FILE
}  // namespace shardscope::profiler
