// How ranges of a thread nest. Written as: thread, start, end.
#include "traces/store/columns/nesting.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "traces/store/columns/names.h"

namespace shardscope::traces::store {
namespace TEST_FILE {

using ::testing::ElementsAre;

struct Range {
    std::uint16_t thread;
    std::int64_t start, end;
};
struct Instant {
    std::uint16_t thread;
    std::int64_t time;
};

Nesting nest_of(std::initializer_list<Range> ranges, std::initializer_list<Instant> instants = {}) {
    std::vector<std::int64_t> start, end, times;
    std::vector<std::uint16_t> thread, instant_thread;
    for (const Range& r : ranges) {
        start.push_back(r.start);
        end.push_back(r.end);
        thread.push_back(r.thread);
    }
    for (const Instant& i : instants) {
        times.push_back(i.time);
        instant_thread.push_back(i.thread);
    }
    return nest(start, end, thread, times, instant_thread);
}

TEST(Nesting, FindsTheInnermostEnclosingRange) {
    const Nesting n = nest_of({{0, 0, 100}, {0, 10, 50}, {0, 20, 30}, {0, 60, 90}});
    EXPECT_THAT(n.parent, ElementsAre(-1, 0, 1, 0));
    EXPECT_THAT(n.depth, ElementsAre(0, 1, 2, 1));
}

TEST(Nesting, KeepsThreadsApart) {
    const Nesting n = nest_of({{0, 0, 100}, {1, 10, 50}, {0, 20, 30}});
    EXPECT_THAT(n.parent, ElementsAre(-1, -1, 0));
    EXPECT_THAT(n.depth, ElementsAre(0, 0, 1));
}

TEST(Nesting, TakesIntervalsAsHalfOpen) {
    // One ends where the next begins: they are siblings, and an instant there belongs to the second.
    const Nesting n = nest_of({{0, 0, 10}, {0, 10, 20}}, {{0, 10}, {0, 20}});
    EXPECT_THAT(n.parent, ElementsAre(-1, -1));
    EXPECT_THAT(n.innermost, ElementsAre(1, -1));
}

TEST(Nesting, EqualRangesNestInTheirOrder) {
    const Nesting n = nest_of({{0, 0, 10}, {0, 0, 10}});
    EXPECT_THAT(n.parent, ElementsAre(-1, 0));
}

TEST(Nesting, OverlapWithoutNestingHasNoParentButADepth) {
    const Nesting n = nest_of({{0, 0, 50}, {0, 20, 80}, {0, 60, 70}}, {{0, 55}});
    EXPECT_THAT(n.parent, ElementsAre(-1, -1, 1));
    EXPECT_THAT(n.depth, ElementsAre(0, 1, 2));
    EXPECT_THAT(n.innermost, ElementsAre(1));
}

// PyTorch opens the next step like this, inside the frames of prof.step().
TEST(Nesting, RangesThatOutlastThoseAroundThemDoNotDescend) {
    const Nesting n = nest_of({{0, 10, 20},
                               {0, 15, 115},
                               {0, 110, 120},
                               {0, 115, 215},
                               {0, 150, 160},
                               {0, 210, 220},
                               {0, 215, 300}});
    EXPECT_THAT(n.depth, ElementsAre(0, 1, 0, 1, 2, 0, 1));
    EXPECT_THAT(n.parent, ElementsAre(-1, -1, -1, -1, 3, -1, -1));
}

TEST(Nesting, InstantsFindTheInnermostRangeOfTheirThread) {
    const Nesting n = nest_of({{0, 0, 100}, {0, 10, 50}, {1, 10, 20}},
                              {{0, 0}, {0, 10}, {1, 15}, {0, 49}, {0, 50}, {2, 60}, {0, 100}});
    EXPECT_THAT(n.innermost, ElementsAre(0, 1, 2, 1, 0, -1, -1));
}

// The parent is the latest earlier range that is open at the start and ends no earlier; here each of a few
// hundred ranges overlaps many.
TEST(Nesting, IsThatOfTheDefinitionHoweverRangesOverlap) {
    std::mt19937 random(5);
    std::vector<std::int64_t> start, end, times;
    for (int i = 0; i < 400; ++i) {
        start.push_back(i / 3);
        end.push_back(start.back() + static_cast<int>(random() % 40));
        times.push_back(i / 2);
    }
    const std::vector<std::uint16_t> one(start.size(), 0);
    const Nesting n = nest(start, end, one, times, one);
    const auto latest = [&](std::size_t before, std::int64_t time, std::int64_t until) {
        while (before > 0 && (end[before - 1] <= time || end[before - 1] < until)) --before;
        return static_cast<std::int32_t>(before) - 1;
    };
    for (std::size_t i = 0; i < start.size(); ++i) {
        EXPECT_EQ(n.parent[i], latest(i, start[i], end[i])) << i;
        const auto begun = std::upper_bound(start.begin(), start.end(), times[i]) - start.begin();
        EXPECT_EQ(n.innermost[i], latest(static_cast<std::size_t>(begun), times[i], times[i])) << i;
    }
}

// Each range begins before the previous one ends, like those of a loader that is always busy: comparing each
// with all earlier ones would take minutes.
TEST(Nesting, IsFoundQuicklyInAChainOfManyRanges) {
    std::vector<std::int64_t> start, end;
    for (int i = 0; i < 1'000'000; ++i) {
        start.push_back(10 * i);
        end.push_back(10 * i + 15);
    }
    const std::vector<std::uint16_t> one(start.size(), 0);
    const Nesting n = nest(start, end, one, {}, {});
    EXPECT_EQ(n.parent, std::vector<std::int32_t>(start.size(), -1));
    EXPECT_EQ(*std::max_element(n.depth.begin(), n.depth.end()), 1);
}

TEST(Nesting, OfNoRangesIsEmpty) {
    const Nesting n = nest_of({}, {{3, 5}});
    EXPECT_TRUE(n.parent.empty());
    EXPECT_THAT(n.innermost, ElementsAre(-1));
}

TEST(Names, KnowCommunicationKernelsOldAndNew) {
    for (const char* name :
         {"ncclDevKernel_AllGather_RING_LL", "ncclKernel_AllReduce_RING_LL_Sum_float",
          "ncclAllReduceRingLLKernel_sum_f32", "rcclGeneric", "oneccl_allreduce", "void ncclKernel<1>"}) {
        EXPECT_TRUE(schema::is_communication_kernel(name)) << name;
    }
    for (const char* name : {"sgemm", "my_nccl", "", "cclKernel"})
        EXPECT_FALSE(schema::is_communication_kernel(name)) << name;
}

TEST(Names, LoseCudasVersionSuffixOnly) {
    EXPECT_EQ(without_version_suffix("cudaLaunchKernel_v7000"), "cudaLaunchKernel");
    EXPECT_EQ(without_version_suffix("cudaLaunchKernelExC_v11060"), "cudaLaunchKernelExC");
    EXPECT_EQ(without_version_suffix("cuMemcpyHtoDAsync_v2"), "cuMemcpyHtoDAsync_v2");
    EXPECT_EQ(without_version_suffix("cudaFoo_v70x0"), "cudaFoo_v70x0");
    EXPECT_EQ(without_version_suffix("_v7000"), "_v7000");
    EXPECT_EQ(without_version_suffix(""), "");
}

TEST(Names, DistinguishKindsOfRange) {
    EXPECT_EQ(range_kind("ncclAllGather", "NCCL", false), RangeKind::communication);
    EXPECT_EQ(range_kind("nn.Module: Linear_0", "", true), RangeKind::module);
    EXPECT_EQ(range_kind("nn.Module: Linear_0 (backward)", "", false), RangeKind::backward);
    EXPECT_EQ(range_kind("ProfilerStep#3", "", false), RangeKind::step);
    EXPECT_EQ(range_kind("enumerate(DataLoader)#_SingleProcess.__next__", "", false), RangeKind::data_loader);
    EXPECT_EQ(range_kind("enumerate(DataPipe)#Shuffler", "", false), RangeKind::data_loader);
    EXPECT_EQ(range_kind("autograd::engine::evaluate_function: AddmmBackward0", "", true),
              RangeKind::backward);
    EXPECT_EQ(range_kind("autograd::engine::evaluate_function: AddmmBackward0", "", false),
              RangeKind::annotation);
    EXPECT_EQ(range_kind("aten::linear", "", true), RangeKind::annotation);
}

TEST(Names, ReadTheStepsNumber) {
    EXPECT_EQ(profiler_step("ProfilerStep#12"), 12);
    EXPECT_EQ(profiler_step("ProfilerStep#"), std::nullopt);
    EXPECT_EQ(profiler_step("ProfilerStep#1x"), std::nullopt);
    EXPECT_EQ(profiler_step("Step#1"), std::nullopt);
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::store
