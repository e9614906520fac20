// How the cores of a host are given to its processes.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include "trainer/executor/devices.h"
#include "trainer/job/job.h"

namespace shardscope::trainer::executor {
namespace TEST_FILE {

using ::testing::HasSubstr;

std::string error_of(int usable, int cores, int processes, int sharing) {
    try {
        cores_of_process(usable, cores, processes, sharing);
    } catch (const DeviceError& error) {
        return error.what();
    }
    return "no error";
}

TEST(Devices, CoresAreDividedAmongProcessesAndThoseOfADeviceShareThem) {
    EXPECT_EQ(cores_of_process(16, 16, 4, 1), 4);
    EXPECT_EQ(cores_of_process(16, 16, 4, 2), 8);   // two devices of 8 cores, two processes on each
    EXPECT_EQ(cores_of_process(16, 16, 4, 4), 16);  // one device
    EXPECT_EQ(cores_of_process(2, 2, 8, 1), 1);
    EXPECT_EQ(cores_of_process(2, 2, 8, 2), 1);  // fewer cores than devices
    EXPECT_EQ(cores_of_process(2, 2, 8, 4), 1);
    EXPECT_EQ(cores_of_process(4, 16, 4, 1), 4);  // bound by the launcher
}

TEST(Devices, AProcessUsesTheCoresThatItIsBoundTo) {
    cpu_set_t before, one;
    ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
    EXPECT_EQ(worker_count({}, nullptr), CPU_COUNT(&before));
    CPU_ZERO(&one);
    for (int core = 0; CPU_COUNT(&one) == 0; ++core)
        if (CPU_ISSET(core, &before)) CPU_SET(core, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_EQ(worker_count({}, nullptr), 1);
    EXPECT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
}

TEST(Devices, ProcessesThatCannotShareCoresAreRefused) {
    EXPECT_THAT(error_of(16, 16, 3, 2),
                HasSubstr("the 3 processes of this host cannot be divided into groups"));
    EXPECT_THAT(error_of(4, 16, 4, 2), HasSubstr("bound to 4 of the 16 cores of its host"));
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::executor
