// Stacks as a signal handler walks them, on memory that the tests lay out.
#include "profiler/preload/stack_walk.h"

#include <cstdint>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

namespace shardscope::profiler::preload {
namespace TEST_FILE {

using ::testing::ElementsAre;

constexpr std::size_t kPage = 4096;

class Walk : public ::testing::Test {
  protected:
    static constexpr std::size_t kPages = 64;

    Walk()
        : memory_(static_cast<char*>(
              ::mmap(nullptr, kPages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {}
    ~Walk() override { ::munmap(memory_, kPages * kPage); }

    std::uintptr_t at(std::size_t offset) const { return reinterpret_cast<std::uintptr_t>(memory_) + offset; }
    void frame(std::size_t offset, std::uintptr_t caller, std::uintptr_t address) {
        *reinterpret_cast<FrameRecord*>(memory_ + offset) = {caller, address};
    }
    static std::vector<std::uint64_t> walk(std::uintptr_t sp, std::uintptr_t fp, std::uint32_t most = 127) {
        std::vector<std::uint64_t> addresses(most);
        addresses.resize(walk_stack({1, sp, fp}, addresses.data(), most));
        return addresses;
    }

    char* memory_;
};

TEST_F(Walk, FollowsFramePointersUp) {
    frame(64, at(256), 2);
    frame(256, at(3 * kPage), 3);
    frame(3 * kPage, at(3 * kPage + 32), 4);
    frame(3 * kPage + 32, 0, 5);
    EXPECT_THAT(walk(at(0), at(64)), ElementsAre(1, 2, 3, 4, 5));
    EXPECT_THAT(walk(at(0), at(64), 3), ElementsAre(1, 2, 3));
    EXPECT_THAT(walk(at(0), 0), ElementsAre(1));
    EXPECT_THAT(walk(at(0), at(64) + 1), ElementsAre(1));  // not aligned
    frame(256, at(3 * kPage), 0);                          // the outermost
    EXPECT_THAT(walk(at(0), at(64)), ElementsAre(1, 2));
}

TEST_F(Walk, EndsWhereAChainTurnsBack) {
    frame(64, at(256), 2);
    frame(256, at(64), 3);
    EXPECT_THAT(walk(at(0), at(64)), ElementsAre(1, 2, 3));
    frame(256, at(256), 3);
    EXPECT_THAT(walk(at(0), at(64)), ElementsAre(1, 2, 3));
}

TEST_F(Walk, ReadsNothingThatIsNotMapped) {
    EXPECT_THAT(walk(at(0), 8), ElementsAre(1));
    EXPECT_THAT(walk(at(0), ~std::uintptr_t{0} - 7), ElementsAre(1));  // its record would go over the end
    EXPECT_THAT(walk(at(0), 0x8000'0000'0000'0000), ElementsAre(1));   // no address at all
    frame(64, at(4 * kPage - 8), 2);                                   // half of the next is on page 4
    frame(4 * kPage - 8, at(5 * kPage), 3);
    frame(5 * kPage, 0, 4);
    EXPECT_THAT(walk(at(0), at(64)), ElementsAre(1, 2, 3, 4));
    ::mprotect(memory_ + 4 * kPage, kPage, PROT_NONE);
    EXPECT_THAT(walk(at(0), at(64)), ElementsAre(1, 2));
    frame(64, at(5 * kPage), 2);  // behind the page that cannot be read: not this stack, but memory
    EXPECT_THAT(walk(at(0), at(64)), ElementsAre(1, 2, 4));
}

// From the alternate stack of a signal's handler to the function that it interrupted, wherever that is.
TEST_F(Walk, ContinuesOnAnotherStack) {
    frame(50 * kPage, at(64), 2);  // above it
    frame(64, at(256), 3);
    frame(256, 0, 4);
    EXPECT_THAT(walk(at(50 * kPage), at(50 * kPage)), ElementsAre(1, 2, 3, 4));
    frame(0, at(40 * kPage), 2);  // below it, and far
    frame(40 * kPage, 0, 3);
    EXPECT_THAT(walk(at(0), at(0)), ElementsAre(1, 2, 3));
}

// Code without frame pointers leaves anything in the register: no chain of it costs much.
TEST_F(Walk, EndsInMemoryThatIsNoStack) {
    for (std::size_t i = 0; i + 1 < 100; ++i) frame(64 + 32 * i, at(64 + 32 * (i + 1)), 7);
    EXPECT_EQ(walk(at(50 * kPage), at(64)).size(), 1U + 32);
}

}  // namespace TEST_FILE
}  // namespace shardscope::profiler::preload
