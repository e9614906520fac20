// Device work belongs to the part of the run in which it was launched.
#include "profiler/inject/cuda_launches.h"

#include <gtest/gtest.h>

namespace shardscope::profiler::inject {
namespace TEST_FILE {

using Verdict = CudaLaunches::Verdict;

TEST(CudaLaunches, keeps_everything_if_recording_never_switched) {
    CudaLaunches launches;
    launches.begin(true);
    EXPECT_TRUE(launches.always_on());
    EXPECT_EQ(launches.of_launch(5), Verdict::keep);
    launches.begin(false);
    EXPECT_FALSE(launches.always_on());
    EXPECT_EQ(launches.of_launch(5), Verdict::drop);
}

TEST(CudaLaunches, finds_the_switch_from_the_calls_around_it) {
    CudaLaunches launches;
    launches.begin(false);
    launches.turn(RealTime(1000), true);
    launches.turn(RealTime(2000), false);
    EXPECT_EQ(launches.of_launch(10), Verdict::unknown);
    launches.saw_call(10, RealTime(990));
    launches.saw_call(20, RealTime(1010));
    launches.saw_call(30, RealTime(1990));
    launches.saw_call(40, RealTime(2010));
    EXPECT_EQ(launches.of_launch(9), Verdict::drop);
    EXPECT_EQ(launches.of_launch(10), Verdict::drop);
    EXPECT_EQ(launches.of_launch(15), Verdict::unknown);  // between two calls around the switch
    EXPECT_EQ(launches.of_launch(20), Verdict::keep);
    EXPECT_EQ(launches.of_launch(30), Verdict::keep);
    EXPECT_EQ(launches.of_launch(40), Verdict::drop);
    EXPECT_EQ(launches.of_launch(1000), Verdict::drop);
    launches.saw_call(15, RealTime(1001));  // now the verdict is known
    EXPECT_EQ(launches.of_launch(15), Verdict::keep);
}

TEST(CudaLaunches, knows_times_without_calls) {
    CudaLaunches launches;
    launches.begin(true);
    launches.turn(RealTime(1000), false);
    launches.turn(RealTime(2000), true);
    EXPECT_TRUE(launches.was_on(RealTime(999)));
    EXPECT_FALSE(launches.was_on(RealTime(1000)));
    EXPECT_FALSE(launches.was_on(RealTime(1999)));
    EXPECT_TRUE(launches.was_on(RealTime(2000)));
}

TEST(CudaLaunches, counts_calls_seen_before_a_switch_as_before_it) {
    CudaLaunches launches;
    launches.begin(true);
    launches.saw_call(7, RealTime(900));
    launches.turn(RealTime(1000), false);
    EXPECT_EQ(launches.of_launch(7), Verdict::keep);
    EXPECT_EQ(launches.of_launch(8), Verdict::unknown);
}

TEST(CudaLaunches, continues_when_the_numbers_wrap) {
    CudaLaunches launches;
    launches.begin(true);
    launches.turn(RealTime(1000), false);
    launches.saw_call(0xFFFFFFF0, RealTime(900));
    launches.saw_call(0x10, RealTime(1100));
    EXPECT_EQ(launches.of_launch(0xFFFFFF00), Verdict::keep);
    EXPECT_EQ(launches.of_launch(0x20), Verdict::drop);
}

TEST(CudaLaunches, forgets_the_oldest_of_many_switches) {
    CudaLaunches launches;
    launches.begin(false);
    for (std::uint32_t i = 0; i < 1000; ++i) {
        launches.turn(RealTime(i * 100), i % 2 == 0);
        launches.saw_call(i * 10 + 5, RealTime(i * 100 + 50));
    }
    EXPECT_EQ(launches.of_launch(9985), Verdict::keep);  // 998 is even
    EXPECT_EQ(launches.of_launch(9995), Verdict::drop);
}

}  // namespace TEST_FILE
}  // namespace shardscope::profiler::inject
