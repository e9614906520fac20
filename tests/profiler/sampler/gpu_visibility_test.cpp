// CUDA_VISIBLE_DEVICES, as CUDA reads it.
#include "profiler/sampler/gpu_visibility.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shardscope::profiler {
namespace TEST_FILE {

using ::testing::ElementsAre;

std::vector<bool> visible(const std::optional<std::string>& variable) {
    std::vector<nvml::GpuFacts> gpus(4);
    const char* uuids[] = {"GPU-8a56c8f2", "GPU-8a99", "GPU-1b00", "GPU-ffff"};
    for (int i = 0; i < 4; ++i) {
        gpus[static_cast<std::size_t>(i)].number = i;
        gpus[static_cast<std::size_t>(i)].uuid = uuids[i];
    }
    return visible_gpus(gpus, variable);
}

TEST(VisibleGpus, are_all_where_nothing_is_said) {
    EXPECT_THAT(visible(std::nullopt), ElementsAre(true, true, true, true));
}

TEST(VisibleGpus, are_the_numbers_that_are_listed) {
    EXPECT_THAT(visible("2"), ElementsAre(false, false, true, false));
    EXPECT_THAT(visible(" 3 , 0"), ElementsAre(true, false, false, true));
}

TEST(VisibleGpus, may_be_uuids_or_their_beginnings) {
    EXPECT_THAT(visible("GPU-1b,GPU-8a56c8f2"), ElementsAre(true, false, true, false));
    EXPECT_THAT(visible("GPU-8a"), ElementsAre(false, false, false, false));  // two have it
    EXPECT_THAT(visible("MIG-GPU-1b00/1/0"), ElementsAre(false, false, true, false));
}

TEST(VisibleGpus, end_at_the_first_that_there_is_not) {
    EXPECT_THAT(visible(""), ElementsAre(false, false, false, false));
    EXPECT_THAT(visible("-1"), ElementsAre(false, false, false, false));
    EXPECT_THAT(visible("1,-1,2"), ElementsAre(false, true, false, false));
    EXPECT_THAT(visible("0,7,1"), ElementsAre(true, false, false, false));
    EXPECT_THAT(visible("1,two,3"), ElementsAre(false, true, false, false));
    EXPECT_THAT(visible("NoDevFiles"), ElementsAre(false, false, false, false));
}

}  // namespace TEST_FILE
}  // namespace shardscope::profiler
