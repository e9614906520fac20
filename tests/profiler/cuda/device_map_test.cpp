// One device per rank, even if every process calls its device 0.
#include "profiler/record/device_map.h"

#include <gtest/gtest.h>

namespace shardscope::profiler {
namespace TEST_FILE {

TEST(DeviceMap, gives_a_rank_its_own_number) {
    DeviceMap map;
    map.reserve_rank(0);
    map.reserve_rank(1);
    EXPECT_EQ(map.id(200, 0, 1), 1);
    EXPECT_EQ(map.id(100, 0, 0), 0);
    EXPECT_EQ(map.id(200, 0, 1), 1);
}

TEST(DeviceMap, gives_further_devices_the_next_free_number) {
    DeviceMap map;
    map.reserve_rank(0);
    map.reserve_rank(1);
    EXPECT_EQ(map.id(100, 0, 0), 0);
    EXPECT_EQ(map.id(100, 1, 0), 2);  // 1 is reserved for rank 1
    EXPECT_EQ(map.id(200, 3, 1), 1);
    EXPECT_EQ(map.id(300, 0, 1), 3);  // another process that claims to be rank 1
}

TEST(DeviceMap, counts_devices_of_processes_without_ranks) {
    DeviceMap map;
    EXPECT_EQ(map.id(100, 0, -1), 0);
    EXPECT_EQ(map.id(100, 1, -1), 1);
    EXPECT_EQ(map.id(200, 0, -1), 2);
}

}  // namespace TEST_FILE
}  // namespace shardscope::profiler
